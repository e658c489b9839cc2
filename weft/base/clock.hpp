// clock: monotonic time, and arithmetic on it that saturates.
//
// Design: a deadline is an absolute time point of the steady clock, `never` is the last one, and
// any duration a user can write (hours::max(), a negative one, a floating-point one) becomes a time
// point without overflow. A deadline is rounded up, so that nothing is early.
//
// Limits: the present time is the executor's (wait/executor.hpp): a test may have a clock that
// jumps.
//
//   weft::time_point end = weft::after(weft::steady_now(), 250ms);
#pragma once

#include <cfloat>
#include <chrono>
#include <type_traits>

namespace weft {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;
using duration = clock::duration;  // nanoseconds

inline constexpr time_point never = time_point::max();
inline constexpr duration no_timeout = duration::max();  // in an option: the wait is not limited

inline time_point steady_now() noexcept { return clock::now(); }

// The least duration of the clock that is not less than d, or the nearest one of the clock.
template <class Rep, class Period>
constexpr duration saturated(std::chrono::duration<Rep, Period> d) noexcept {
    // Whole numbers are compared in long double, which holds every count of nanoseconds; others in
    // their own type, where the greatest count becomes 2^63 and all below it is one, unless the
    // processor computes in a wider one (x87) and rounds what was compared only when it is stored.
    constexpr bool whole = !std::chrono::treat_as_floating_point_v<Rep>;
    using number = std::conditional_t<whole || FLT_EVAL_METHOD != 0, long double, Rep>;
    const std::chrono::duration<number, duration::period> w(d);
    if (w >= decltype(w)(duration::max())) return duration::max();
    if (!(w > decltype(w)(duration::min()))) return duration::min();  // also NaN
    if constexpr (whole)
        return std::chrono::ceil<duration>(d);
    else
        return std::chrono::ceil<duration>(w);
}

// now + d; `never` where the sum is beyond the last time point, and now where d is negative.
template <class Rep, class Period>
constexpr time_point after(time_point now, std::chrono::duration<Rep, Period> d) noexcept {
    const duration step = saturated(d);
    if (step <= duration::zero()) return now;
    return now >= never - step ? never : now + step;
}

// From now until then: zero where `then` has come, and duration::max() where the difference is
// beyond it.
constexpr duration time_left(time_point now, time_point then) noexcept {
    if (then <= now) return duration::zero();
    const bool beyond = now < time_point{} && then > never + now.time_since_epoch();
    return beyond ? duration::max() : then - now;
}

// The time point of the steady clock for one of any resolution.
template <class Duration>
constexpr time_point saturated(std::chrono::time_point<clock, Duration> t) noexcept {
    return time_point(saturated(t.time_since_epoch()));
}

}  // namespace weft
