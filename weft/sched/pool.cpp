#include "weft/sched/pool.hpp"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <optional>
#include <thread>

#include "weft/base/detail/system_error.hpp"
#include "weft/sched/detail/fork_deque.hpp"
#include "weft/sched/detail/parking.hpp"
#include "weft/sched/detail/quiet.hpp"
#include "weft/sched/detail/schedule_inbox.hpp"
#include "weft/wait/flow.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::fork_deque*, weft_tls_fork_place);

namespace weft {
namespace {

constexpr duration end_patience = std::chrono::seconds(1);

unsigned processor_count() noexcept {
    ::cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
        return std::max(1u, static_cast<unsigned>(CPU_COUNT(&set)));
    return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

// Invariants:
// P1  launched work is in one deque or in the inbox until one worker takes it
// P2  a worker sleeps only after it has announced itself and then found P1's places empty
// P3  a loop is destroyed by its own thread, when no worker runs anything any more
// P4  one of every fair_takes takes is from the inbox, and one of every clock_takes is the oldest
//     of the deque, if eldest_period has passed since the last such take; the take after a strand's
//     turn is one of these, alternately: nothing in P1's places waits for ever behind work that
//     launches itself again
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

// -- a worker -------------------------------------------------------------------------------------

ready_turn pool::core::worker::take(bool busy) noexcept {
    if (busy) {
        // The loop was woken for work that is not its own, and has its own to do.
        stop_searching();
        if (const ready_turn t = take_in_turn(); t.handle != nullptr) return t;
        if (own().is_overloaded() && core_.idle.idle_count() != 0) own().offload_ready();
        return {};
    }
    ready_turn t;
    ++takes_;
    if (std::exchange(fair_next_, false))  // P4
        t = take_in_turn();
    else if (takes_ % fair_takes == 0)
        t = eldest_is_due() ? take_eldest() : take_from_outside();
    if (t.handle == nullptr) t = pop();
    if (t.handle == nullptr) t = take_from_outside();
    if (t.handle == nullptr) return search();
    stop_searching();
    return t;
}

bool pool::core::worker::eldest_is_due() noexcept {
    if (takes_ % clock_takes != 0) return false;
    const time_point now = steady_now();
    if (now < after(eldest_taken_, eldest_period)) return false;
    eldest_taken_ = now;
    return true;
}

ready_turn pool::core::worker::take_from_outside() noexcept {
    const ready_turn t = core_.inbox.pop();
    if (t.handle != nullptr) count(remote_schedule_count);
    return t;
}

// Takes what has waited longest: alternately from outside and from its own deque, so that neither
// hides the other.
ready_turn pool::core::worker::take_in_turn() noexcept {
    outside_first_ = !outside_first_;
    ready_turn t = outside_first_ ? take_from_outside() : take_eldest();
    if (t.handle == nullptr) t = outside_first_ ? take_eldest() : take_from_outside();
    return t;
}

void pool::core::worker::receive(flow& f) noexcept {
    count(offload_count);
    if (push(f.turn)) return;
    core_.inbox.push(f.turn);
    detail::parking::offer(core_.idle, [this](unsigned i) { wake(i); });
}

void pool::core::worker::stop_searching() noexcept {
    if (parking_.end_search([this](unsigned i) { wake(i); })) found_lately_ = true;
}

ready_turn pool::core::worker::search() noexcept {
    if (core_.workers.size() == 1) return {};
    if (!parking_.begin_search()) return {};
    // A worker that found something recently searches for longer: a sleep and a wake cost more.
    const int rounds = found_lately_ ? 64 : 1;
    for (int n = 0; n != rounds; ++n) {
        ready_turn t = steal_one();
        if (t.handle != nullptr)
            count(steal_count);
        else
            t = take_from_outside();
        if (t.handle != nullptr) {
            stop_searching();
            return t;
        }
        for (int i = 0; i != 16; ++i) detail::spin_pause();
    }
    return {};
}

// One pass over all others, from a different start each time, with one fence.
ready_turn pool::core::worker::steal_one() noexcept {
    const auto& all = core_.workers;
    const std::size_t n = all.size();
    bool any = false;
    for (std::size_t i = 0; i != n; ++i) {
        marks_[i] = i == index_ ? detail::steal_mark() : all[i]->mark();
        any |= !marks_[i].empty();
    }
    if (!any) return {};
    detail::asymmetric_fence::heavy();
    random_ = random_ * 1664525u + 1013904223u;
    const std::size_t first = random_ >> 8;
    for (std::size_t i = 0; i != n; ++i) {
        const std::size_t at = (first + i) % n;
        if (marks_[at].empty()) continue;
        if (const ready_turn t = all[at]->steal(marks_[at]); t.handle != nullptr) return t;
    }
    return {};
}

bool pool::core::worker::rest() noexcept {
    found_lately_ = false;
    flow_count.store(own().flow_count(), std::memory_order_relaxed);  // released by announce()
    if (!parking_.begin_sleep([this] { return core_.has_work(); })) return false;  // P2
    count(park_count);
    core_.quiet.worker_rests();
    return true;
}

void pool::core::worker::rested() noexcept { parking_.end_sleep(); }

void pool::core::worker::run() noexcept {
    detail::this_thread_forks() = this;
    while (!core_.leaving.load(std::memory_order_acquire))  // pairs with end()
        static_cast<void>(own().run_once(never));
    core_.all_out.arrive_and_wait();
    own().kill_all();
    core_.all_out.arrive_and_wait();
    own().kill_all();  // for messages sent by the ends of others
    core_.all_out.arrive_and_wait();
    core_.all_out.arrive_and_wait();  // the watchdog has stopped
    drop_loop();                      // P3
    detail::this_thread_forks() = nullptr;
}

// Work that was launched too late to start is destroyed; it was asked to stop, like all.
void pool::core::worker::drop_loop() noexcept {
    for (ready_turn t; (t = pop()).handle != nullptr || (t = core_.inbox.pop()).handle != nullptr;)
        t.handle.destroy();
    loop_.reset();
}

// -- the pool -------------------------------------------------------------------------------------

// All workers sleep, nothing is left to start and no flow is live. Called when all are idle.
// Relaxed, all: idle_set's look has acquired what the workers wrote before.
bool pool::core::has_nothing_left() const noexcept {
    if (has_work() || strand_flow_count.load(std::memory_order_relaxed) != 0) return false;
    return std::none_of(workers.begin(), workers.end(), [](const auto& w) {
        return w->flow_count.load(std::memory_order_relaxed) != 0 || w->own().has_posted();
    });
}

bool pool::core::wait_until_quiet(time_point until) {
    return quiet.wait_until(until, [this] { return has_nothing_left(); });
}

void pool::core::begin(const pool_options& options) {
    if (options.stall_threshold != no_timeout) {
        std::vector<loop*> loops;
        for (const auto& w : workers) loops.push_back(&w->own());
        watched.emplace(loops, options.stall_threshold, options.on_stall);
    }
    for (unsigned i = 0; i != options_count; ++i) {
        worker& w = *workers[i];
        w.thread = std::thread([&w] { w.run(); });
        begun_count = i + 1;
        char name[16];
        std::snprintf(name, sizeof name, "%.10s/%u", options.name.c_str(), i);
        ::pthread_setname_np(w.thread.native_handle(), name);
        if (options.processors.empty()) continue;
        const int p = options.processors[i % options.processors.size()];
        ::cpu_set_t set;
        CPU_ZERO(&set);
        if (p >= 0 && p < CPU_SETSIZE) CPU_SET(p, &set);
        const int e = ::pthread_setaffinity_np(w.thread.native_handle(), sizeof set, &set);
        if (e != 0) detail::throw_system_error(e, "weft::pool: a processor that it is to run on");
    }
}

void pool::core::end() noexcept {
    // If a thread could not be created, the others have run nothing yet.
    for (unsigned i = begun_count; i != options_count; ++i) all_out.arrive_and_drop();
    for (const auto& w : workers) w->order_end();
    if (begun_count == options_count)
        static_cast<void>(wait_until_quiet(after(steady_now(), end_patience)));
    leaving.store(true, std::memory_order_release);  // pairs with run()
    for (const auto& w : workers) w->own().stop();
    for (int phase = 0; phase != 3; ++phase) all_out.arrive_and_wait();
    watched.reset();
    all_out.arrive_and_drop();  // no loop is destroyed earlier
    for (const auto& w : workers)
        if (w->thread.joinable())
            w->thread.join();
        else
            w->drop_loop();
}

pool::pool(pool_options options) {
    const unsigned n = options.thread_count != 0 ? options.thread_count : processor_count();
    core_ = std::make_unique<core>(*this, n);
    for (unsigned i = 0; i != n; ++i)
        core_->workers.push_back(std::make_unique<core::worker>(*core_, i));
#if WEFT_EXCEPTIONS
    try {
#endif
        core_->begin(options);
#if WEFT_EXCEPTIONS
    } catch (...) {
        core_->end();
        throw;
    }
#endif
}

pool::~pool() {
    WEFT_ASSERT_AT(!running_in_this_thread(), "destruction of a pool by what it runs",
                   unknown_caller);
    core_->end();
    // Relaxed: a thread that made or ended a strand has been joined, or is the caller.
    if (core_->strand_count.load(std::memory_order_relaxed) != 0)
        fail("destruction of a pool while there are strands in it", {}, unknown_caller);
}

void pool::schedule(runnable& r) noexcept {
    detail::fork_deque* const here = detail::fork_place_here();
    if (here != nullptr && &here->home()->default_scheduler() == this && here->push(r)) return;
    core_->inbox.push(r);
    detail::parking::offer(core_->idle,
                           [this](unsigned i) { core_->workers[i]->own().look_round(); });
}

void pool::launch_again(runnable& r) noexcept {
    detail::fork_deque* const here = detail::fork_place_here();
    if (here != nullptr && &here->home()->default_scheduler() == this)
        static_cast<core::worker*>(here)->be_fair();
    schedule(r);
}

unsigned pool::thread_count() const noexcept {
    return static_cast<unsigned>(core_->workers.size());
}
executor& pool::worker(unsigned i) noexcept { return core_->workers[i]->own(); }

bool pool::running_in_this_thread() const noexcept {
    const detail::fork_deque* const p = detail::this_thread_forks();  // also within a strand
    return p != nullptr && &p->home()->default_scheduler() == this;
}

// Relaxed: the numbers only have to differ.
unsigned pool::next_strand_clock() noexcept {
    return core_->strand_number.fetch_add(1, std::memory_order_relaxed) % thread_count();
}
void pool::count_strand(int more) noexcept {
    core_->strand_count.fetch_add(more, std::memory_order_relaxed);  // see ~pool
}
// Relaxed: a worker announces itself idle after this, see has_nothing_left.
void pool::count_strand_flow(int more) noexcept {
    core_->strand_flow_count.fetch_add(more, std::memory_order_relaxed);
}

void pool::wait_until_idle(std::source_location caller) {
    WEFT_ASSERT_AT(!running_in_this_thread(), "a pool is waited for by what it runs", caller);
    static_cast<void>(core_->wait_until_quiet(never));
}

pool_stats pool::stats() const noexcept {
    pool_stats s;
    for (const auto& w : core_->workers) {
        // Relaxed: counts.
        s.steal_count += w->steal_count.load(std::memory_order_relaxed);
        s.offload_count += w->offload_count.load(std::memory_order_relaxed);
        s.remote_schedule_count += w->remote_schedule_count.load(std::memory_order_relaxed);
        s.park_count += w->park_count.load(std::memory_order_relaxed);
    }
    return s;
}

}  // namespace weft
