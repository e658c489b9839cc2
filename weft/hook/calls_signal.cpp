// Signals that are waited for instead of handled: a signal that is pending, for the process or for
// the loop's thread, is taken at once; otherwise the fiber waits until one is.

#include <cerrno>
#include <chrono>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/interruption.hpp"
#include "weft/hook/detail/readable.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/signal_watch.hpp"
#include "weft/hook/detail/turn_budget.hpp"

namespace weft::hook::in_fiber {
namespace {

constexpr timespec no_time{};

// A signal; or -1, and errno.
int take_signal(const sigset_t* set, siginfo_t* info, time_point deadline) {
    const int before = errno;
    const auto take = [=] {
        const int n = real::sigtimedwait(set, info, &no_time);
        if (n > 0) errno = before;
        return n;
    };
    if (const int n = take(); n > 0 || errno != EAGAIN) return n;
    const signal_watch watch(*set);
    const interruptible here(ended_by::any_handler);
    for (;;) {
        const snapshot seen = watch.look();
        if (const int n = take(); n > 0 || errno != EAGAIN) return n;
        const int why = watch.until_pending(seen, deadline, here);
        if (why == timed_out) return take();
        if (why != 0) return errno = why, -1;
    }
}

}  // namespace

int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
    pay(price::lock);
    if (!is_own_process()) return real::sigtimedwait(set, info, timeout);
    if (timeout == nullptr) return take_signal(set, info, never);
    const bool is_bad = !is_readable(timeout) || timeout->tv_sec < 0 || timeout->tv_nsec < 0 ||
                        timeout->tv_nsec > 999'999'999;
    const duration d =
        is_bad ? duration::zero()
               : hook::duration_of(timeout->tv_sec, std::chrono::nanoseconds(timeout->tv_nsec));
    if (d == duration::zero()) return real::sigtimedwait(set, info, timeout);
    return take_signal(set, info, after(now(), d));
}

int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
    return in_fiber::sigtimedwait(set, info, nullptr);
}

// No handler ends it.
int sigwait(const sigset_t* set, int* number) {
    const int before = errno;
    int n;
    do {
        n = in_fiber::sigtimedwait(set, nullptr, nullptr);
        // A stop may be reported by EINTR, too.
    } while (n < 0 && errno == EINTR && fiber_here()->pending_stop() == stop_reason::none);
    const int why = n < 0 ? errno : 0;
    errno = before;
    if (n > 0) *number = n;
    return why;
}

// Signals that the mask lets through are delivered by a call that does not wait; those that this
// thread does not block run their handlers in the loop, which ends the wait.
int sigsuspend(const sigset_t* mask) {
    if (mask == nullptr || !is_own_process()) return real::sigsuspend(mask);
    sigset_t let_through;
    ::sigfillset(&let_through);
    for (int n = 1; n < NSIG; ++n)
        if (::sigismember(mask, n) == 1) ::sigdelset(&let_through, n);
    const sigset_t during = *mask;
    const signal_watch watch(let_through);
    const interruptible here(ended_by::any_handler, &during);
    for (;;) {
        const snapshot seen = watch.look();
        {
            const own_handlers for_this_call;
            if (real::ppoll(nullptr, 0, &no_time, &during) < 0) return -1;
        }
        if (const int why = watch.until_pending(seen, never, here); why != 0)
            return errno = why, -1;
    }
}

// The meaning of sigpause().
int __xpg_sigpause(int number) {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (::sigdelset(&mask, number) != 0) return -1;
    return in_fiber::sigsuspend(&mask);
}

int pause() {
    if (!is_own_process()) return real::pause();
    expect_handlers();
    errno = until(never);
    return -1;
}

}  // namespace weft::hook::in_fiber
