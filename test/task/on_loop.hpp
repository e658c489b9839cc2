// Runs a task to its end on a loop with a clock that jumps, so that no test sleeps.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "weft/sched/virtual_loop.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/sleep.hpp"

namespace on_loop {

using namespace std::chrono_literals;
using weft::task;

template <class T>
T run(weft::testing::virtual_loop& l, task<T> t) {
    weft::detail::task_run<T> r(std::move(t), l.loop());
    r->post_first_turn();
    l.run();
    if (!r->has_ended()) weft::fail("a task of a test has not ended");
    return r.take();
}
template <class T>
T run(task<T> t) {
    weft::testing::virtual_loop l(1);
    return run(l, std::move(t));
}

// Ends with n after that time.
template <class Duration>
task<int> number_in(Duration d, int n) {
    co_await weft::sleep_for(d);
    co_return n;
}
template <class Duration>
task<int> failing_in(Duration d, int n) {
    co_await weft::sleep_for(d);
    throw n;
}

// Counts its live instances.
struct held {
    explicit held(int& n) noexcept : count(&n) { ++n; }
    held(const held&) = delete;
    held& operator=(const held&) = delete;
    ~held() { --*count; }
    int* count;
};
inline task<int> hold_for_an_hour(int& n) {
    const held h(n);
    co_await weft::sleep_for(1h);
    co_return 0;
}

}  // namespace on_loop
