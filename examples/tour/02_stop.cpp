// 02: a fiber is asked to stop, and its destructors run.
//
// A stop ends the present wait of the fiber, and each later wait, by throwing weft::stopped. A stop
// is a state and not an event: code that swallows the exception gets it again at the next wait.
//
//   build/release/examples/tour_02_stop

#include <chrono>
#include <cstdio>
#include <mutex>

#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"
#include "weft/sync/mutex.hpp"

using namespace std::chrono_literals;

struct noisy {
    ~noisy() { std::puts("destroyed"); }
};

int main() {
    return weft::run([] {
        weft::mutex m;
        weft::fiber f([&] {
            noisy n;
            const std::lock_guard held(m);    // released as the stack unwinds
            weft::this_fiber::sleep_for(1h);  // a wait, so a stop can end it
        });
        weft::this_fiber::sleep_for(10ms);
        f.request_stop();  // ~fiber() would do the same, and join
        const weft::join_result how = f.join();
        const bool is_free = m.try_lock();
        if (is_free) m.unlock();
        return is_free && how.is_stopped() && how.reason() == weft::stop_reason::user ? 0 : 1;
    });
}
