// 03: deadlines that reach down, and timers.
//
// A timeout_scope bounds every wait of the flow below it, however deep the calls; nested ones
// cannot reach further than those around them.
//
//   build/release/examples/tour_03_time

#include <chrono>
#include <cstdio>

#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/timer.hpp"
#include "weft/wait/timeout_scope.hpp"

using namespace std::chrono_literals;

void query() { weft::this_fiber::sleep_for(1h); }  // knows nothing of deadlines

bool query_in_time() {
    weft::timeout_scope limit(20ms);
    try {
        query();
        return true;
    } catch (const weft::stopped&) {
        if (!limit.has_expired()) throw;  // a stop with another cause
        return false;
    }
}

int main() {
    return weft::run([] {
        int ticks = 0;
        weft::timer every(*weft::current_executor(), 0ms, 5ms, [&] { ++ticks; });
        const bool in_time = query_in_time();
        every.stop();
        std::printf("in time: %d, ticks meanwhile: %d\n", in_time, ticks);
        return !in_time && ticks > 0 ? 0 : 1;
    });
}
