// 09: many threads.
//
// A pool starts work on any of its threads. Started work stays on its thread unless that worker is
// overloaded, and waits for the same locks and channels as everywhere. fork_join is for work that
// computes.
//
//   build/release/examples/tour_09_pool
#include <cstdio>
#include <mutex>

#include "weft/fiber/nursery.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/parallel/fork_join.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/strand.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/sync_wait.hpp"

// [fork_join]
weft::task<long> fib(int n) {
    if (n < 2) co_return n;
    auto [a, b] = co_await weft::fork_join(fib(n - 1), fib(n - 2));  // at the same time, perhaps
    co_return a + b;
}
// [/fork_join]

int main() {
    weft::pool pool(2);

    // A thread waits for a computation of the pool; a fiber or a task can do so as well.
    const long f = weft::sync_wait(weft::schedule_on(pool, fib(25)));

    // Fibers on all of its threads, with one lock among them.
    weft::mutex m;
    int ran = 0;
    weft::spawn(
        [&] {
            weft::nursery n;
            for (int i = 0; i != 1000; ++i)
                n.spawn([&] {
                    const std::lock_guard held(m);
                    ++ran;
                });
            n.join();
        },
        {.on = pool})
        .get();

    // Functions in one strand never run at the same time, and need no lock.
    int counted = 0;
    {
        weft::strand one_at_a_time(pool);
        for (int i = 0; i != 1000; ++i) one_at_a_time.post([&] { ++counted; });
        one_at_a_time.wait_until_idle();
    }

    std::printf("fib(25) is %ld, %d fibers have run, and %d were counted\n", f, ran, counted);
    return f == 75025 && ran == 1000 && counted == 1000 ? 0 : 1;
}
