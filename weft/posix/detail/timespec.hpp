// timespec: converts the times of C to time points of weft.
//
// Design: a time of any clock becomes a time point of the steady clock when it is given, so that no
// later change of a clock lengthens or shortens a wait.
#pragma once

#include <time.h>

#include <chrono>

#include "weft/wait/flow.hpp"

namespace weft::detail {

inline bool is_time(const timespec& t) noexcept { return t.tv_nsec >= 0 && t.tv_nsec < 1000000000; }

// Saturated, as is all that is made of it.
inline duration duration_of(const timespec& t) noexcept {
    const std::chrono::seconds whole(t.tv_sec);
    const duration d = saturated(whole);
    if (d == duration::max() || d == duration::min()) return d;
    const std::chrono::nanoseconds rest(t.tv_nsec);
    return d > duration::max() - rest ? duration::max() : d + rest;
}

// False: not a valid time, or not one of the known clocks.
inline bool time_point_of(const timespec& until, clockid_t clock, time_point& at) noexcept {
    if (!is_time(until) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) return false;
    timespec there{};
    ::clock_gettime(clock, &there);
    const duration then = duration_of(until);
    const duration now_there = duration_of(there);
    at = then <= now_there ? now() : after(now(), then - now_there);
    return true;
}

}  // namespace weft::detail
