// time_limit: how long a wait may last: not limited, for a duration, or until a time point.
//
// Design: one parameter type for every limit, so a function that waits needs no second and third
// form for it. A duration begins when the wait begins, and not where it is written. A time point
// of the system clock becomes a duration at once, by the difference from that clock's time: what
// sets the clock later does not move the end of the wait.
//
// A duration is rounded up and saturates, and a negative one has passed. `no_timeout` and `never`
// are no limit, as is a time_limit of nothing.
//
// Limits: a deadline before the epoch of weft::clock counts as the epoch; both have passed. One
// that came from the system clock is a duration, so it begins anew with each wait it is given to:
// several waits until one such time point are given the time point.
//
//   weft::time_limit a = 250ms;
//   weft::time_limit b = weft::steady_now() + 1s;
//   weft::time_limit c = std::chrono::system_clock::now() + 1h;
//   weft::time_point end = a.deadline_from(weft::steady_now());
#pragma once

#include <chrono>

#include "weft/base/clock.hpp"
#include "weft/base/detail/min_max.hpp"

namespace weft {

class time_limit {
public:
    constexpr time_limit() noexcept = default;  // no limit
    template <class Rep, class Period>
    constexpr time_limit(std::chrono::duration<Rep, Period> timeout) noexcept
        : time_limit(from_timeout(saturated(timeout))) {}
    template <class Duration>
    constexpr time_limit(std::chrono::time_point<clock, Duration> deadline) noexcept
        : value_(detail::max_of(saturated(deadline).time_since_epoch(), duration::zero()).count()) {
    }
    template <class Duration>
    time_limit(std::chrono::time_point<std::chrono::system_clock, Duration> deadline) noexcept
        : time_limit(from_timeout(from_now(saturated(deadline.time_since_epoch())))) {}

    // Whether it is a duration, and which; a duration of no_timeout is none.
    constexpr bool is_timeout() const noexcept { return value_ < 0; }
    constexpr duration timeout() const noexcept {
        return is_timeout() ? duration(~value_) : no_timeout;
    }

    // The end of a wait that begins at `now`. `never`: the wait is not limited.
    constexpr time_point deadline_from(time_point now) const noexcept {
        return is_timeout() ? after(now, timeout()) : time_point(duration(value_));
    }

    friend constexpr bool operator==(time_limit, time_limit) noexcept = default;

private:
    struct encoded {
        duration::rep value;
    };
    constexpr time_limit(encoded e) noexcept : value_(e.value) {}

    static constexpr encoded from_timeout(duration d) noexcept {
        return {d == no_timeout ? no_timeout.count()
                                : ~detail::max_of(d, duration::zero()).count()};
    }
    // How far a time of the system clock is ahead.
    static duration from_now(duration since_epoch) noexcept {
        if (since_epoch == duration::max()) return no_timeout;
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        return time_left(time_point(saturated(now)), time_point(since_epoch));
    }

    // At least 0: a deadline, since the clock's epoch. Below 0: the complement of a duration. One
    // word, so that an operation is no larger than with a time_point.
    duration::rep value_ = never.time_since_epoch().count();
};

}  // namespace weft
