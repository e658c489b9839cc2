// pool: loops on several threads, which take from each other what has not begun.
//
// Its one idea: a worker is a loop, and beside it lies a deque of what it was asked to begin. A
// worker that runs dry takes from its own, then from what came from outside, and then from the
// others.
//
// What has begun somewhere stays there, with its timers and its sockets, unless that worker is
// behind while another sleeps: then it puts some of what is ready there into its deque. Tasks go
// over like this, between two turns, and fibers that are `migratable`; what was launched on one
// worker (worker(i)), stays. A wait that another thread ends is nothing new to what it waits for.
//
//        launch, on a worker                             launch, on any other thread
//               |                                                     |
//               v                                                     v
//      worker 0: [deque] ---> loop      steal       worker 1: loop <--- [inbox of the pool]
//                   ^ ------------------------------------------ +
//
// A worker with nothing to do sleeps on its own loop's driver, and costs nothing. Whoever launches
// wakes one that sleeps, unless one looks for work already (idle_set.hpp).
//
//   weft::pool p;                                        // a worker for each processor
//   weft::spawn([] { serve(); }, {.on = &p}).get();      // from anywhere; on any of its threads
//   weft::fiber f([] { ... }, {.on = &p.worker(0)});     // on this one
//
// What begins within it without saying where, begins anywhere in it. The order in which things
// begin is not that of launching: a worker begins the latest first, but of sixteen that it begins
// one is of what came from outside, and of 256 one is the eldest of its own, if ten milliseconds
// have passed since the last such; and one of these two, by turns, in each round of its loop (64
// turns at most, fewer where they are long), where that has something to run already.
// Before a strand that has more to run goes on, its worker takes one of those that wait longest.
//
// Many may be in a process, and come and go. Not from what it runs: its destructor asks all that
// lives in it to stop, waits a second, and ends what is left by unwinding it.
//
// Limit: what has to be unwound then and waits for a task that swallows its stop on another worker,
// ends the program (schedule_on.hpp).
//
// Model: test/model/parking_test.cpp, test/model/steal_deque_test.cpp, test/model/quiet_test.cpp
#pragma once

#include <concepts>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/sched/loop.hpp"
#include "weft/sched/watchdog.hpp"

namespace weft {

struct pool_options {
    unsigned thread_count = 0;         // 0: as many as there are processors for this process
    std::vector<int> processors = {};  // worker i stays on [i modulo the size]; empty: nowhere
    std::string name = "weft";         // of its threads: name/0, ...; the system shows 15 letters
    duration hold_limit = {};          // longer turns are reported (watchdog.hpp); zero: none
    watchdog::handler on_hold = watchdog::print;
};

struct pool_stats {
    std::size_t stolen_count = 0;   // taken from another worker
    std::size_t given_count = 0;    // given away after they had begun
    std::size_t outside_count = 0;  // launched by other threads, and begun
    std::size_t rest_count = 0;     // how often a worker has gone to sleep
};

class pool final : public launcher {
public:
    // Throws bad_alloc, and system_error if a thread cannot be made, or a processor is not there.
    explicit pool(pool_options options = {});
    explicit pool(unsigned thread_count) : pool(pool_options{.thread_count = thread_count}) {}
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;
    ~pool();

    void launch(runnable& r) noexcept override;
    executor* only_executor() noexcept override { return nullptr; }

    // Has f() run once on one of its threads, in no flow. It must not throw. Any thread. Throws
    // bad_alloc.
    template <std::invocable F>
    void post(F&& f) {
        auto* p = new detail::posted_function<std::decay_t<F>>(std::forward<F>(f));
        launch(p->node);
    }

    unsigned thread_count() const noexcept;
    // To run something on that one and no other.
    executor& worker(unsigned i) noexcept;
    // Whether the caller runs on one of its threads.
    bool is_here() const noexcept;

    // Blocks the calling thread, which is none of its own, until nothing lives in it and nothing is
    // to be begun.
    void wait_until_idle(std::source_location place = std::source_location::current());

    // Since the beginning; each count by itself is exact once the pool is idle.
    pool_stats stats() const noexcept;

private:
    friend class strand;
    struct core;

    // For strands.
    void launch_again(runnable& r) noexcept;  // after one of what waits longest
    unsigned next_strand_clock() noexcept;
    void count_strand(int more) noexcept;
    void count_strand_flow(int more) noexcept;  // by what a worker runs

    std::unique_ptr<core> core_;
};

}  // namespace weft
