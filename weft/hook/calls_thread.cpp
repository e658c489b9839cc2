// The ends of threads: a fiber asks whether a thread has ended, at first at once, then more and
// more seldom, as libc tells nobody but a thread that waits; what it is told is libc's own answer.
// A stop does not end the wait: a joiner, as a destructor is, goes on as if the thread were
// gone. pthread_exit() ends the fiber that calls it (cancellation.hpp).
//
// Model: none, it holds nothing.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "weft/hook/blocked.hpp"
#include "weft/hook/calls.hpp"
#include "weft/hook/cancellation.hpp"
#include "weft/hook/in_process.hpp"
#include "weft/hook/libc_mutex.hpp"
#include "weft/hook/timed_park.hpp"

namespace weft::hook::in_fiber {
namespace {

int join_by_asking(pthread_t which, void** left, const clock_moment& until) {
    // The handle of a fiber is odd, and names no thread; the caller's own, by either name, would
    // wait for itself.
    if (::pthread_equal(which, ::pthread_self()) != 0 || which == real::pthread_self())
        return EDEADLK;
    if ((which & 1) != 0) return ESRCH;
    // libc refuses neither a clock nor a time that there is not, and waits for ever.
    const bool is_timed = until.at != nullptr && !is_no_moment_of_waits(*until.at) &&
                          (until.by == CLOCK_REALTIME || until.by == CLOCK_MONOTONIC);
    auto pause = std::chrono::microseconds(0);
    for (;;) {
        leave_if_canceled(*fiber_here());
        int r = ::pthread_tryjoin_np(which, left);
        // One that has been joined is told by no other call; one that ends meanwhile can be joined.
        clockid_t its_clock;
        if (r == EBUSY && real::pthread_getcpuclockid(which, &its_clock) == ESRCH)
            if ((r = ::pthread_tryjoin_np(which, left)) == EBUSY) return ESRCH;
        if (r != EBUSY) return r;
        if (is_timed && left_until_moment(until) <= duration::zero()) return ETIMEDOUT;
        // What can be told at once, but for a thread that runs on, is libc's to tell.
        pthread_attr_t about;
        if (real::pthread_getattr_np(which, &about) == 0) {
            int detached = 0;
            ::pthread_attr_getdetachstate(&about, &detached);
            ::pthread_attr_destroy(&about);
            if (detached == PTHREAD_CREATE_DETACHED) return EINVAL;
        }
        if (pause.count() == 0)
            let_others_run();
        else
            wait_out(after(now(), pause));
        pause =
            std::clamp(2 * pause, std::chrono::microseconds(50), std::chrono::microseconds(2000));
    }
}

}  // namespace

int pthread_join(pthread_t which, void** left) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_join", __builtin_return_address(0),
                              [=] { return real::pthread_join(which, left); });

    return join_by_asking(which, left, {CLOCK_REALTIME, nullptr});
}

int pthread_timedjoin_np(pthread_t which, void** left, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_timedjoin_np", __builtin_return_address(0),
                              [=] { return real::pthread_timedjoin_np(which, left, until); });

    return join_by_asking(which, left, {CLOCK_REALTIME, until});
}

int pthread_clockjoin_np(pthread_t which, void** left, clockid_t by, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_clockjoin_np", __builtin_return_address(0),
                              [=] { return real::pthread_clockjoin_np(which, left, by, until); });

    return join_by_asking(which, left, {by, until});
}

int thrd_join(thrd_t which, int* left) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("thrd_join", __builtin_return_address(0),
                              [=] { return real::thrd_join(which, left); });

    void* value = nullptr;
    const int r = join_by_asking(which, &value, {CLOCK_REALTIME, nullptr});
    if (r == 0 && left != nullptr) *left = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
    return r == 0 ? thrd_success : thrd_error;
}

void pthread_exit(void*) { leave_fiber(*fiber_here(), stop_reason::user); }

}  // namespace weft::hook::in_fiber
