// pool: loops on several threads, which steal from each other work that has not started.
//
// Design: a worker is a loop with a deque beside it, of work that it was asked to start. A worker
// that runs dry takes from its own deque, then from the inbox, and then from the other workers.
//
// Work that has started stays where it is, with its timers and its sockets, unless that worker is
// overloaded while another sleeps: then it puts some of its ready work into its deque. Tasks
// migrate in this way, between two turns, and so do fibers that are `migratable`; work that was
// launched on one worker (worker(i)) stays. An awaited object sees nothing new in this: any thread
// may end a wait.
//
//        launch, on a worker                             launch, on any other thread
//               |                                                     |
//               v                                                     v
//      worker 0: [deque] ---> loop      steal       worker 1: loop <--- [inbox of the pool]
//                   ^ ------------------------------------------ +
//
// A worker with nothing to do sleeps on the driver of its own loop, and costs nothing. A launch
// wakes a sleeping worker, unless a worker is searching for work already (idle_set.hpp).
//
// Work that is started within the pool and names no place starts on any worker. The order of
// starting is not the order of launching. A worker starts the newest first, but one of every
// sixteen is from outside, and one of every 256 is the oldest of its own, if ten milliseconds have
// passed since the last such. One of these two, alternately, is also taken in each iteration of its
// loop (64 turns at most, fewer where turns are long) in which the loop has something to run
// already. Before a strand that has more to run continues, its worker takes some work that has
// waited longest.
//
// A process may have many pools, which come and go. A pool is not destroyed by what it runs. Its
// destructor asks all live flows to stop, waits a second, and ends what is left by unwinding it.
//
// Limits: a flow that has to be unwound when its pool ends, and that waits for a task on another
// worker that swallows its stop, ends the program (schedule_on.hpp).
//
//   weft::pool p;                                        // a worker for each processor
//   weft::spawn([] { serve(); }, {.on = p}).get();      // from anywhere; on any worker
//   weft::fiber f([] { ... }, {.on = p.worker(0)});     // on this worker
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

// How many workers a pool has, and where they run.
struct pool_options {
    std::string name = "weft";         // of its threads: name/0, ...; the system shows 15 letters
    std::vector<int> processors = {};  // worker i is bound to [i modulo the size]; empty: not bound
    unsigned thread_count = 0;         // 0: as many as this process has processors
    duration stall_threshold = no_timeout;  // longer turns are reported (watchdog.hpp)
    watchdog::handler on_stall = watchdog::print;
};

// What the workers of a pool have done so far.
struct pool_stats {
    std::size_t steal_count = 0;            // taken from another worker
    std::size_t offload_count = 0;          // given away after the start
    std::size_t remote_schedule_count = 0;  // launched by other threads, and started
    std::size_t park_count = 0;             // how often a worker went to sleep
};

class pool final : public scheduler {
public:
    // Throws bad_alloc, and system_error if a thread cannot be created or a processor does not
    // exist.
    explicit pool(const pool_options& options = {});
    explicit pool(unsigned thread_count) : pool(pool_options{.thread_count = thread_count}) {}
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;
    // Asks the live flows to stop, waits a second, unwinds what is left, and joins the workers.
    // Aborts in a worker of the pool, and if the pool has strands.
    ~pool();

    void schedule(runnable& r) noexcept override;
    executor* fixed_executor() noexcept override { return nullptr; }

    // Runs f() once on one of its threads, outside any flow. It must not throw. Any thread. Throws
    // bad_alloc.
    template <callable_without_arguments F>
    void post(F&& f) {
        auto* p = new detail::posted_function<std::decay_t<F>>(std::forward<F>(f));
        schedule(p->node);
    }

    unsigned thread_count() const noexcept;
    // To run something on that worker and no other.
    executor& worker(unsigned i) noexcept;
    // Whether the caller runs on one of its threads.
    bool running_in_this_thread() const noexcept;

    // Blocks the calling thread, which is none of the pool's, until no flow is live in the pool and
    // nothing is left to start.
    void wait_until_idle(std::source_location caller = std::source_location::current());

    // Since the pool was made; each count by itself is exact once the pool is idle.
    pool_stats stats() const noexcept;

private:
    friend class strand;
    struct core;

    // For strands.
    void launch_again(runnable& r) noexcept;  // after some work that has waited longest
    unsigned next_strand_clock() noexcept;
    void count_strand(int more) noexcept;
    void count_strand_flow(int more) noexcept;  // called by what a worker runs

    std::unique_ptr<core> core_;
};

}  // namespace weft
