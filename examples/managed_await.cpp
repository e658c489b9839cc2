// managed_await: a C++20 task awaits a managed stackful task, and the reverse, by their ids.
//
// Shows: a stackful task that suspends until it is resumed with a value; an awaiter that gets the
// value that the stackful task returned, and not only its status; the reverse; and that the kill of
// a task is reported as an error.
//
//   build/release/examples/managed_await
#include <cstdio>

#include "weft/manager/task_manager.hpp"
#include "weft/sched/loop.hpp"

using tasks = weft::task_manager<>;

weft::task<int> awaits(tasks& all, tasks::id stackful) {
    const auto value = co_await all.async_join<int>(stackful);
    co_return value.value_or(0);
}

weft::task<int> doubles(int n) {
    co_await weft::sleep_for(std::chrono::milliseconds(5));
    co_return 2 * n;
}

int main() {
    weft::loop loop;
    tasks all({.on = loop});

    const auto stackful = all.spawn([] { return weft::this_managed::suspend<int>(); }).value();
    const auto stackless = all.spawn_with_handle(awaits(all, stackful)).value();
    loop.run_until_idle();  // both wait now
    const bool waited = stackless.status() == weft::managed_status::waiting;
    all.resume(stackful, 345);

    const auto doubled = all.spawn(doubles(21)).value();
    const auto reverse =
        all.spawn_with_handle([&] { return all.join<int>(doubled).value(); }).value();
    loop.run();
    const int from_stackful = stackless.join<int>().value();
    const int from_stackless = reverse.join<int>().value();
    std::printf("a task has awaited a fiber: %d\n", from_stackful);
    std::printf("a fiber has awaited a task: %d\n", from_stackless);

    const auto endless = all.spawn_with_handle([] {
        for (;;) weft::this_fiber::yield();
    });
    loop.run_once(weft::never);
    all.kill(endless->id());
    loop.run();
    const auto how = endless->join<void>();
    std::printf("one that never looks: %s\n", how.error().message().c_str());

    return waited && from_stackful == 345 && from_stackless == 42 &&
                   how.error() == weft::manager_errc::killed
               ? 0
               : 1;
}
