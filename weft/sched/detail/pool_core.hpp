// pool::core: the state of a pool that its workers share, and a worker, which is a loop and a
// deque.
//
// Design: a worker runs its own loop, and asks the pool for work when the loop has none that is
// ready: its own deque first, then the inbox, then the deques of others. What a worker does is in
// pool_worker.cpp; the begin and the end of the pool, and its interface, are in pool.cpp.
//
// Invariants:
// P1  launched work is in one deque or in the inbox until one worker takes it
// P2  a worker sleeps only after it has announced itself and then found P1's places empty
// P3  a loop is destroyed by its own thread, when no worker runs anything any more
// P4  one of every fair_takes takes is from the inbox, and one of every clock_takes is the oldest
//     of the deque, if eldest_period has passed since the last such take; the take after a strand's
//     turn is one of these, alternately: nothing in P1's places waits for ever behind work that
//     launches itself again
//
// Model: none, it is made of parts that have models: parking, schedule_inbox, fork_deque, quiet.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "weft/sched/detail/fork_deque.hpp"
#include "weft/sched/detail/parking.hpp"
#include "weft/sched/detail/quiet.hpp"
#include "weft/sched/detail/schedule_inbox.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/watchdog.hpp"

namespace weft {

struct pool::core {
    // Constructed before what refers to it, and destroyed when the worker decides.
    struct has_loop {
        std::optional<loop> loop_{std::in_place};
    };
    class worker final : has_loop, public detail::fork_deque, public steal_source {
    public:
        worker(core& c, unsigned index)
            : fork_deque(*loop_, c.idle),
              core_(c),
              index_(index),
              parking_(c.idle, index),
              marks_(c.options_count) {
            loop_->set_source(this);
        }

        loop& own() noexcept { return *loop_; }
        void run() noexcept;
        void order_end() noexcept { own().post(end_order_.node); }

        // The interface steal_source.
        ready_turn take(bool busy) noexcept override;
        void receive(flow& f) noexcept override;
        bool rest() noexcept override;
        void rested() noexcept override;
        scheduler& default_scheduler() noexcept override { return *core_.owner; }

        // The next take is of work that has waited longest.
        void be_fair() noexcept { fair_next_ = true; }

        // Read by other threads.
        atomic<std::size_t> flow_count{0};  // as of its last announcement
        atomic<std::size_t> steal_count{0};
        atomic<std::size_t> remote_schedule_count{0};
        atomic<std::size_t> offload_count{0};
        atomic<std::size_t> park_count{0};
        std::thread thread;

        void drop_loop() noexcept;

    private:
        // One of every fair_takes takes is work from outside. The oldest entry of the worker's own
        // deque is taken at most once per eldest_period: starting it before the newest is through
        // keeps both alive at a time, and the same holds for each fork of a tree, whose oldest
        // entry is the branch next to the root; within this period, most of such a branch is
        // through. The clock is read once in clock_takes takes: where takes are long, they are what
        // the oldest waits for.
        static constexpr unsigned fair_takes = 16;
        static constexpr unsigned clock_takes = 256;
        static constexpr duration eldest_period = std::chrono::milliseconds(10);

        bool eldest_is_due() noexcept;
        void wake(unsigned i) noexcept override { core_.workers[i]->own().look_round(); }
        ready_turn take_from_outside() noexcept;
        ready_turn take_in_turn() noexcept;
        ready_turn search() noexcept;
        ready_turn steal_one() noexcept;
        void stop_searching() noexcept;
        static void count(atomic<std::size_t>& c) noexcept {
            c.store(c.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // own count
        }

        // Runs on the worker's thread when the pool ends.
        struct end_order : detail::frame {
            runnable node;
            loop* asked;
            explicit end_order(loop& l) noexcept
                : frame{[](frame* f) { static_cast<end_order*>(f)->asked->request_stop(); },
                        [](frame*) {}},
                  asked(&l) {
                node.handle = handle();
            }
        };

        core& core_;
        const unsigned index_;
        detail::parking parking_;
        bool found_lately_ = false;   // since its last sleep
        bool fair_next_ = false;      // the next take is a fair one
        bool outside_first_ = false;  // in the last fair take
        unsigned takes_ = 0;
        time_point eldest_taken_ = time_point::min();
        std::uint32_t random_ = index_ * 2654435761u + 1;
        std::vector<detail::steal_mark> marks_;
        end_order end_order_{*loop_};
    };

    core(pool& p, unsigned count)
        : owner(&p),
          options_count(count),
          idle(count),
          all_out(static_cast<std::ptrdiff_t>(count) + 1) {}

    bool has_work() const noexcept {
        return !inbox.empty() || std::any_of(workers.begin(), workers.end(),
                                             [](const auto& w) { return !w->empty(); });
    }
    bool has_nothing_left() const noexcept;
    bool wait_until_quiet(time_point until);
    void begin(const pool_options& options);
    void end() noexcept;

    pool* const owner;
    const unsigned options_count;
    detail::idle_set idle;
    detail::schedule_inbox inbox;  // work that other threads launch
    std::vector<std::unique_ptr<worker>> workers;

    detail::quiet quiet{idle};

    atomic<unsigned> strand_number{0};
    atomic<int> strand_count{0};
    atomic<int> strand_flow_count{0};

    atomic<bool> leaving{false};
    std::barrier<> all_out;    // the workers, and the thread that ends them
    unsigned begun_count = 0;  // threads that were started
    std::optional<watchdog> watched;
};

}  // namespace weft
