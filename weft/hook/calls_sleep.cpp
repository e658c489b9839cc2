// Sleep, by the loop's timers.

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "weft/base/detail/timespec.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/readable.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/wait/flow.hpp"

namespace weft::hook::in_fiber {
namespace {

bool is_no_time(const timespec* t) noexcept {
    return !is_readable(t) || t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec > 999'999'999;
}

duration duration_of(const timespec& t) noexcept {
    return hook::duration_of(t.tv_sec, std::chrono::nanoseconds(t.tv_nsec));
}

// Returns 0, or an errno value and the time that is left.
int sleep_for(duration d, timespec* left) {
    const int before = errno;
    const time_point end = after(now(), d);
    const int why = until(end);
    errno = before;
    if (why != 0 && left != nullptr) *left = weft::detail::timespec_of(end - now());
    return why;
}

constexpr duration shortest = std::chrono::milliseconds(1);
constexpr bool can_be_set(clockid_t by) noexcept { return by == CLOCK_REALTIME || by == CLOCK_TAI; }

// A clock may be set: a timer of the system's follows the clock. Without such a timer the clock is
// read again, sooner for a clock that runs faster than time does.
struct clock_timer {
    int fd;
    clock_timer(clockid_t by, const timespec& moment) noexcept
        : fd(opened(::timerfd_create(by, TFD_CLOEXEC | TFD_NONBLOCK))) {
        const itimerspec when = {{}, moment};
        if (fd >= 0) ::timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, nullptr);
    }
    clock_timer(const clock_timer&) = delete;
    clock_timer& operator=(const clock_timer&) = delete;
    ~clock_timer() {
        if (fd >= 0) close_own(fd);
    }
};

int sleep_until(clockid_t by, const timespec& moment) {
    const interruptible here(ended_by::any_handler);
    constexpr duration short_time = std::chrono::milliseconds(100);
    const auto left = [&] {
        timespec there{};
        ::clock_gettime(by, &there);
        return duration_of(moment) - duration_of(there);
    };
    if (by == CLOCK_REALTIME && left() > short_time) {
        const clock_timer timer(by, moment);
        while (timer.fd >= 0 && left() > duration::zero()) {
            const snapshot seen = look(timer.fd);
            if (const int why = until_ready(timer.fd, seen, true, never, here); why != 0)
                return why;
        }
    }
    for (duration d; (d = left()) > duration::zero();) {
        if (by == CLOCK_PROCESS_CPUTIME_ID) d = std::clamp(d / 16, shortest, short_time);
        d = std::min(d, can_be_set(by) ? short_time : d);
        if (const int why = until(after(now(), d), here); why != 0) return why;
    }
    return 0;
}

// The system accepts no other clock for a sleep, or requires a privilege for it.
bool is_known(clockid_t by) noexcept {
    return by == CLOCK_REALTIME || by == CLOCK_MONOTONIC || by == CLOCK_BOOTTIME ||
           by == CLOCK_TAI || by == CLOCK_PROCESS_CPUTIME_ID;
}

// From now on, by a clock that is not the loop's.
int sleep_by(clockid_t by, const timespec& wanted, timespec* left) {
    timespec moment{};
    ::clock_gettime(by, &moment);
    moment = weft::detail::timespec_of(after(time_point(duration_of(moment)), duration_of(wanted)) -
                                       time_point());
    const int why = sleep_until(by, moment);
    if (why != 0 && left != nullptr) {
        timespec there{};
        ::clock_gettime(by, &there);
        *left = weft::detail::timespec_of(duration_of(moment) - duration_of(there));
    }
    return why;
}

}  // namespace

unsigned sleep(unsigned seconds) {
    if (!is_own_process()) return real::sleep(seconds);
    timespec left{};
    const int why = sleep_for(std::chrono::seconds(seconds), &left);
    if (why == 0) return 0;
    errno = why;
    return static_cast<unsigned>(left.tv_sec);
}

int usleep(useconds_t us) {
    if (!is_own_process()) return real::usleep(us);
    const int why = sleep_for(std::chrono::microseconds(us), nullptr);
    return why == 0 ? 0 : (errno = why, -1);
}

int nanosleep(const timespec* wanted, timespec* left) {
    if (is_no_time(wanted) || !is_own_process()) return real::nanosleep(wanted, left);
    const int why = sleep_for(duration_of(*wanted), left);
    return why == 0 ? 0 : (errno = why, -1);
}

int clock_nanosleep(clockid_t by, int flags, const timespec* wanted, timespec* left) {
    if (!is_known(by) || is_no_time(wanted) || !is_own_process())
        return real::clock_nanosleep(by, flags, wanted, left);
    // Other flags have no meaning.
    if ((flags & TIMER_ABSTIME) != 0) return sleep_until(by, *wanted);
    return by == CLOCK_PROCESS_CPUTIME_ID ? sleep_by(by, *wanted, left)
                                          : sleep_for(duration_of(*wanted), left);
}

}  // namespace weft::hook::in_fiber
