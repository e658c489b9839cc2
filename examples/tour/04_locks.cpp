// 04: a lock and a condition, for fibers, tasks and threads alike.
//
// Both have std's names and std's meanings. A waiter is suspended: a fiber leaves its thread to
// others, a thread sleeps, a coroutine writes co_await.
//
//   build/release/examples/tour_04_locks

#include <cstdio>
#include <mutex>
#include <thread>

#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/mutex.hpp"

int main() {
    return weft::run([] {
        weft::mutex m;
        weft::condition_variable changed;
        int count = 0;
        const auto add = [&] {
            for (int i = 0; i < 1000; ++i) {
                const std::lock_guard held(m);
                ++count;
                changed.notify_one();
            }
        };
        weft::fiber fiber(add);
        std::thread thread(add);  // the same lock
        {
            std::unique_lock held(m);
            changed.wait(held, [&] { return count == 2000; });
        }
        thread.join();
        std::printf("count: %d\n", count);
        return count == 2000 ? 0 : 1;
    });
}
