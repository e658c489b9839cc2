// Signals that are waited for in place of handlers: what is pending, for the process or for the
// loop's thread, is taken at once; otherwise the fiber waits until one is.

#include <cerrno>
#include <chrono>

#include "weft/hook/calls.hpp"
#include "weft/hook/in_process.hpp"
#include "weft/hook/readiness.hpp"
#include "weft/hook/signal_watch.hpp"

namespace weft::hook::in_fiber {
namespace {

constexpr timespec no_time{};

// A number of a signal; or -1, and errno.
int take_signal(const sigset_t* set, siginfo_t* told, time_point deadline) {
    const int before = errno;
    const auto take = [=] {
        const int n = real::sigtimedwait(set, told, &no_time);
        if (n > 0) errno = before;
        return n;
    };
    if (const int n = take(); n > 0 || errno != EAGAIN) return n;
    const signal_watch watch(*set);
    for (;;) {
        const sight seen = watch.look();
        if (const int n = take(); n > 0 || errno != EAGAIN) return n;
        const int why = watch.until_pending(seen, deadline);
        if (why == timed_out) return take();
        if (why != 0) return errno = why, -1;
    }
}

}  // namespace

int sigtimedwait(const sigset_t* set, siginfo_t* told, const timespec* timeout) {
    if (!is_own_process()) return real::sigtimedwait(set, told, timeout);
    if (timeout == nullptr) return take_signal(set, told, never);
    const bool is_bad =
        timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec > 999'999'999;
    const duration d =
        is_bad ? duration::zero()
               : hook::duration_of(timeout->tv_sec, std::chrono::nanoseconds(timeout->tv_nsec));
    if (d == duration::zero()) return real::sigtimedwait(set, told, timeout);
    return take_signal(set, told, after(now(), d));
}

int sigwaitinfo(const sigset_t* set, siginfo_t* told) {
    return in_fiber::sigtimedwait(set, told, nullptr);
}

// No handler ends it.
int sigwait(const sigset_t* set, int* number) {
    const int before = errno;
    int n;
    do {
        n = in_fiber::sigtimedwait(set, nullptr, nullptr);
    } while (n < 0 && errno == EINTR);
    const int why = n < 0 ? errno : 0;
    errno = before;
    if (n > 0) *number = n;
    return why;
}

}  // namespace weft::hook::in_fiber
