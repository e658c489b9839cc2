// 06: C++20 tasks and fibers await each other.
//
// A task is lazy: it runs when it is awaited. In a fiber await() suspends the fiber alone, however
// deep the call; in a task one awaits the fiber's end.
//
//   build/release/examples/tour_06_tasks

#include <chrono>
#include <cstdio>
#include <string>

#include "weft/fiber/spawn.hpp"
#include "weft/run/run.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"

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

int main() {
    return weft::run([] {
        const int sum = weft::await(checkout());
        std::printf("total: %d\n", sum);
        return sum == 9 ? 0 : 1;
    });
}
