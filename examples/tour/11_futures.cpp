// 11: futures: functions that run when a value is ready, and that may wait.
//
// The function of then() runs on the future's executor when the value is ready. The function may
// wait like any fiber; a function that promises not to wait costs less. An error goes down the
// chain, to the function that takes the future itself.
//
//   build/release/examples/tour_11_futures

#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/future/shared_future.hpp"
#include "weft/future/when.hpp"
#include "weft/run/run.hpp"

using namespace std::chrono_literals;

// A foreign interface, with a callback on a thread of its own.
weft::future<int> measure(int sensor) {
    weft::promise<int> p;  // its continuations run on the caller's loop
    weft::future<int> f = p.get_future();
    std::thread([sensor, p = std::move(p)]() mutable { p.set_value(sensor * 10); }).detach();
    return f;
}

int main() {
    return weft::run([] {
        // A chain: the first function waits, the second promises not to wait.
        auto text = measure(2)
                        .then([](int n) { return weft::this_fiber::sleep_for(1ms), n + 1; })
                        .then(weft::plain, [](int n) { return std::to_string(n); });

        // Waits for all of several futures; or for the first, and the others are stopped.
        auto [a, b] = weft::when_all(measure(3), measure(4)).get();
        std::vector<weft::future<int>> replicas;
        replicas.push_back(weft::make_ready_future(1).delay(1h));
        replicas.push_back(measure(5));
        const auto first = weft::when_any(std::move(replicas)).get();

        // The function is called every millisecond until it returns true, for at most a second.
        int level = 0;
        weft::make_ready_future()
            .poll_every(1ms, [&] { return ++level == 3; })
            .with_timeout(1s)
            .get();

        // An error skips the functions, until a function takes the future.
        std::string said;
        measure(6)
            .then([](int) -> int {
                throw std::system_error(std::make_error_code(std::errc::io_error));
            })
            .then([](int n) { return n; })
            .then([&](weft::future<int> f) { said = f.error().message(); })
            .get();

        std::printf("%s, %d, replica %zu, level %d, %s\n", text.get().c_str(), a + b, first.index,
                    level, said.c_str());
        return a + b == 70 && first.value == 50 && level == 3 && !said.empty() ? 0 : 1;
    });
}
