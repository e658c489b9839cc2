// 06: C++20 tasks and fibers await each other.
//
// A task is lazy: it runs when it is awaited. In a fiber, await() suspends only the fiber, however
// deep the call; in a task, co_await waits for the fiber's end. A stop, a deadline and the bindings
// of a context_local hold across the boundary, in both directions.
//
//   build/release/examples/tour_06_tasks

#include <chrono>
#include <cstdio>
#include <string>

#include "weft/fiber/spawn.hpp"
#include "weft/run/run.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"
#include "weft/wait/context_local.hpp"
#include "weft/wait/timeout_scope.hpp"

using namespace std::chrono_literals;

weft::task<int> price(std::string item) {
    co_await weft::sleep_for(5ms);
    co_return static_cast<int>(item.size());
}

// An ordinary function, some frames deep in a fiber.
int total(const std::string& a, const std::string& b) {
    auto [x, y] = weft::await(weft::when_all(price(a), price(b)));
    return x + y;
}

// A stackful island in a task.
weft::task<int> checkout() {
    auto sum = weft::spawn([] { return total("apple", "pear"); });
    co_return co_await sum.async_get();
}

weft::context_local<std::string> customer("nobody");

// Reads which customer is bound; then waits for something that never comes.
weft::task<std::string> serve(std::string& said) {
    said = *customer;
    co_await weft::sleep_for(1h);
    co_return said;
}

int main() {
    return weft::run([] {
        const int sum = weft::await(checkout());
        std::printf("total: %d\n", sum);

        std::string said;
        const auto bound = customer.bind("Ada");
        weft::fiber f([&] { weft::await(serve(said)); });
        weft::this_fiber::yield();
        f.request_stop();  // reaches the wait of the task
        const bool stopped = f.join().is_stopped();

        const weft::timeout_scope limit(5ms);  // the fiber's, and so the task's
        weft::stop_reason why = weft::stop_reason::none;
        try {
            weft::await(serve(said));
        } catch (const weft::stopped& s) {
            why = s.reason;
        }
        const bool late = why == weft::stop_reason::deadline;
        std::printf("for %s, stopped: %d, late: %d\n", said.c_str(), stopped, late);
        const bool well = said == "Ada" && stopped && late;
        return sum == 9 && well ? 0 : 1;
    });
}
