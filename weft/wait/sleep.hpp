// sleep_for, sleep_until: operations that wait for nothing but time.
//
// Design: the sleep ends at the time point or later, rounded up to the resolution of the executor's
// timers. A duration begins when the sleep is awaited. Both throw stopped.
//
// Limits: a time point that has passed still lets others run first.
//
//   co_await weft::sleep_for(10ms);               // in a coroutine
//   weft::await(weft::sleep_until(t));            // in a fiber; this_fiber::sleep_until(t)
#pragma once

#include <chrono>

#include "weft/wait/operation.hpp"

namespace weft {

// The operation that the functions below return.
class [[nodiscard]] sleep_operation {
public:
    static constexpr bool reports_stop = false;

    explicit sleep_operation(time_limit limit) noexcept : limit_(limit) {}

    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept {
        w.enlist("a time point", nullptr, nullptr, [](waiter&) noexcept {});
        return true;
    }
    time_point deadline() const noexcept { return detail::deadline_of(limit_); }
    void take(const waiter* w, wait_status how) const {
        if (how == wait_status::stopped) detail::throw_stopped(w->reason());
    }

private:
    time_limit limit_;
};

template <class Rep, class Period>
sleep_operation sleep_for(std::chrono::duration<Rep, Period> d) noexcept {
    return sleep_operation(d);
}
// Of the steady clock or the system clock.
template <class Clock, class Duration>
sleep_operation sleep_until(std::chrono::time_point<Clock, Duration> t) noexcept {
    return sleep_operation(t);
}

}  // namespace weft
