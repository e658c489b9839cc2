// timespec_of: a duration as the system's calls take it.
//
// Design: std::time_t has 32 bits on some systems, so it may end before the clock's duration does:
// a duration beyond it becomes the last timespec. One below zero becomes zero, since the calls
// refuse a negative time.
//
//   const ::timespec second = weft::detail::timespec_of(std::chrono::seconds(1));
#pragma once

#include <time.h>

#include <chrono>
#include <ctime>
#include <limits>

#include "weft/base/clock.hpp"

namespace weft::detail {

constexpr ::timespec timespec_of(duration d) noexcept {
    ::timespec t{};
    if (d <= duration::zero()) return t;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
    constexpr std::time_t last = std::numeric_limits<std::time_t>::max();
    const bool fits = seconds.count() <= last;
    t.tv_sec = fits ? static_cast<std::time_t>(seconds.count()) : last;
    t.tv_nsec = fits ? static_cast<long>((d - seconds).count()) : 999'999'999;
    return t;
}

}  // namespace weft::detail
