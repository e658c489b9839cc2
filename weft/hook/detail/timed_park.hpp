// timed_park: a wait in the parking lot that ends at a time of one of the system's clocks.
//
//   park_until(s, {.what = "a semaphore"}, {CLOCK_REALTIME, until}, [&] { return value() == 0; })
//
// Design: the lot's deadlines are of weft's clock, and a clock of the system may be set; the time
// that is left until the deadline is therefore computed again after a while.
//
// Model: none, it holds nothing.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>

#include "weft/hook/detail/parking_lot.hpp"
#include "weft/hook/detail/readiness.hpp"

namespace weft::hook {

struct clock_moment {
    clockid_t by;
    const timespec* at;  // null: never
};

inline bool is_no_moment_of_waits(const timespec& t) noexcept {
    return t.tv_nsec < 0 || t.tv_nsec > 999'999'999;
}

// At most zero: the deadline has come.
inline duration left_until_moment(const clock_moment& m) noexcept {
    timespec there{};
    ::clock_gettime(m.by, &there);
    const auto of = [](const timespec& t) noexcept {
        return hook::duration_of(t.tv_sec, std::chrono::nanoseconds(t.tv_nsec));
    };
    return m.at->tv_sec < 0 ? duration::zero() : of(*m.at) - of(there);
}

template <class Still>
[[nodiscard]] unparked park_until(const void* address, parking how, const clock_moment& m,
                                  Still still) {
    if (m.at == nullptr) return park(address, how, still);
    constexpr duration a_while = std::chrono::seconds(10);
    for (;;) {
        const duration left = left_until_moment(m);
        how.deadline = after(now(), std::clamp(left, duration::zero(), a_while));
        const unparked end = park(address, how, still);
        if (end != unparked::timed_out || left_until_moment(m) <= duration::zero()) return end;
    }
}

}  // namespace weft::hook
