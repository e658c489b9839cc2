// 05: channels, and select over several of them.
//
// A full channel makes its sender wait; a closed one drains. select waits for whichever comes
// first, and exactly one of its cases happens: in a fiber, and with co_await in a task.
//
//   build/release/examples/tour_05_channels

#include <chrono>
#include <cstdio>
#include <string>

#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/select.hpp"
#include "weft/task/sync_wait.hpp"

using namespace std::chrono_literals;

// The same in a task, until the channel is closed and empty.
// [select]
weft::task<int> sum_of(weft::channel<int>& orders) {
    int sum = 0;
    bool closed = false;
    while (!closed)
        co_await weft::async_select(weft::on_recv(orders, [&](int o) { sum += o; }),
                                    weft::on_closed(orders, [&] { closed = true; }));
    co_return sum;
}
// [/select]

int main() {
    return weft::run([] {
        weft::channel<int> orders(4);
        weft::channel<std::string> control;  // no capacity: sender and receiver meet
        weft::fiber producer([&] {
            for (int i = 1; i <= 10; ++i) orders.send(i).value();
            control.send("enough").value();
        });
        int sum = 0;
        bool run = true;
        while (run) {
            weft::select(weft::on_recv(orders, [&](int o) { sum += o; }),
                         weft::on_recv(control,
                                       [&](const std::string& word) {
                                           std::printf("%s\n", word.c_str());
                                           run = false;
                                       }),
                         weft::on_timeout(1s, [] { std::puts("nothing for a second"); }));
        }
        orders.close();
        sum += weft::await(sum_of(orders));  // the remaining orders
        std::printf("sum: %d\n", sum);
        return sum == 55 ? 0 : 1;
    });
}
