// Sleep, by the loop's timers.

#include <cerrno>
#include <chrono>

#include "weft/hook/calls.hpp"
#include "weft/hook/readiness.hpp"
#include "weft/wait/flow.hpp"

namespace weft::hook::in_fiber {
namespace {

bool is_no_time(const timespec* t) noexcept {
    return t == nullptr || t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec > 999'999'999;
}

duration duration_of(const timespec& t) noexcept {
    return hook::duration_of(t.tv_sec, std::chrono::nanoseconds(t.tv_nsec));
}

timespec timespec_of(duration d) noexcept {
    if (d < duration::zero()) d = duration::zero();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
    return {seconds.count(), (d - seconds).count()};
}

// 0, or a number of errno and what is left.
int sleep_for(duration d, timespec* left) {
    const int before = errno;
    const time_point end = after(now(), d);
    const int why = until(end);
    errno = before;
    if (why != 0 && left != nullptr) *left = timespec_of(end - now());
    return why;
}

// A clock that others may set is asked again.
int sleep_until(clockid_t by, const timespec& moment) {
    for (;;) {
        timespec now_there;
        if (::clock_gettime(by, &now_there) != 0) return errno;
        const duration left = duration_of(moment) - duration_of(now_there);
        if (left <= duration::zero()) return 0;
        constexpr duration at_most = std::chrono::seconds(10);
        const bool can_jump = by == CLOCK_REALTIME && left > at_most;
        if (const int why = sleep_for(can_jump ? at_most : left, nullptr); why != 0) return why;
    }
}

}  // namespace

unsigned sleep(unsigned seconds) {
    timespec left{};
    if (sleep_for(std::chrono::seconds(seconds), &left) == 0) return 0;
    return static_cast<unsigned>(left.tv_sec + (left.tv_nsec >= 500'000'000 ? 1 : 0));
}

int usleep(useconds_t us) {
    const int why = sleep_for(std::chrono::microseconds(us), nullptr);
    return why == 0 ? 0 : (errno = why, -1);
}

int nanosleep(const timespec* wanted, timespec* left) {
    if (is_no_time(wanted)) return real::nanosleep(wanted, left);
    const int why = sleep_for(duration_of(*wanted), left);
    return why == 0 ? 0 : (errno = why, -1);
}

int clock_nanosleep(clockid_t by, int flags, const timespec* wanted, timespec* left) {
    const bool known = by == CLOCK_REALTIME || by == CLOCK_MONOTONIC || by == CLOCK_BOOTTIME;
    if (!known || is_no_time(wanted) || (flags & ~TIMER_ABSTIME) != 0)
        return real::clock_nanosleep(by, flags, wanted, left);
    return flags == 0 ? sleep_for(duration_of(*wanted), left) : sleep_until(by, *wanted);
}

}  // namespace weft::hook::in_fiber
