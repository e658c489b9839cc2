// poll_bridge: a stackful coroutine and a C++20 one give each other their values.
//
// Shows: a fiber that waits for a value that other code sets; a task that awaits the fiber's value;
// a fiber that awaits a task's value; and a caller without any coroutine, which polls.
//
//   build/release/examples/poll_bridge
#include <cstdio>

#include "weft/fiber/spawn.hpp"
#include "weft/poll/poll_task.hpp"
#include "weft/run/run.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/task.hpp"

weft::eager_task<int> awaits_fiber(weft::join_handle<int>& stackful) {
    weft::poll_task value(stackful.async_get());
    co_return co_await value + 1;
}

weft::task<int> doubles(int n) {
    co_await weft::sleep_for(std::chrono::milliseconds(5));
    co_return 2 * n;
}

int main() {
    return weft::run([] {
        weft::poll_future<int> given;  // has no context of its own; given.set() makes it ready
        auto stackful = weft::spawn([&] { return weft::await(given); });
        auto stackless = awaits_fiber(stackful);
        weft::this_fiber::yield();  // both wait now
        const bool waited = !stackless.done();
        given.set(345);
        const int from_fiber = weft::await(stackless);
        std::printf("a task has awaited a fiber: %d\n", from_fiber);

        const int from_task = weft::await(weft::poll_task(doubles(21)));
        std::printf("a fiber has awaited a task: %d\n", from_task);

        int frames = 0;
        weft::poll_task polled(doubles(4));
        for (; !polled.poll(); ++frames) weft::this_fiber::sleep_for(std::chrono::milliseconds(1));
        const int by_hand = polled.take();
        std::printf("polled in the frames of a game: %d\n", by_hand);

        return waited && from_fiber == 346 && from_task == 42 && by_hand == 8 && frames > 0 ? 0 : 1;
    });
}
