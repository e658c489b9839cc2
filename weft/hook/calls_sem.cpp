// Semaphores of POSIX. The value is libc's word, from which a fiber takes a unit by libc's own
// sem_trywait. If no unit is free, the fiber parks at the semaphore's address. Threads are left to
// libc: they sleep in the kernel.
//
// A signal handler may call sem_post, so sem_post takes no lock and wakes no fiber itself: it adds
// to the word as ever, and rings for the address (bell.hpp). If the bell has no free slot, or if
// the semaphore is shared between processes, a fiber tries again and again.
//
// Model: none, test/model/bell_test.cpp has the wake.

#include <semaphore.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "weft/base/detail/atomic.hpp"
#include "weft/hook/detail/bell.hpp"
#include "weft/hook/detail/blocked.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/interruption.hpp"
#include "weft/hook/detail/libc_mutex.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/hook/detail/timed_park.hpp"
#include "weft/hook/detail/turn_budget.hpp"
#include "weft/sched/detail/detached_thread.hpp"

namespace weft::hook {
namespace {

using post_bell = bell<256, 8>;
constinit post_bell posts;
// Orders: what acquires pairs with what releases; the rings themselves are ordered by the bell. A
// child of fork() clears it in its only thread.
constinit atomic<bool> bell_stands{false};

void stand_at_bell(void*) noexcept {
    for (;;)
        posts.sleep(posts.answer([](const void* at, std::uint32_t n) noexcept { unpark(at, n); }));
}

// The bell's thread is not in the child, and the waiters are in the parent.
__attribute__((constructor(101))) void clear_bell_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] {
        posts.clear_all();
        bell_stands.store(false, std::memory_order_relaxed);
    });
}

bool bell_is_there() noexcept {
    if (bell_stands.load(std::memory_order_acquire)) return true;
    // A second caller continues without the thread: its rings are counted meanwhile.
    if (bell_stands.exchange(true, std::memory_order_acq_rel)) return true;
    if (weft::detail::begin_detached_thread(stand_at_bell, nullptr)) return true;
    bell_stands.store(false, std::memory_order_release);
    return false;
}

#if defined(__GLIBC__) && __SIZEOF_POINTER__ == 8
// glibc's layout: 8 bytes with the value and the count of waiting threads, then whether the
// semaphore is shared.
bool is_shared_semaphore(const sem_t* s) noexcept {
    int shared;
    std::memcpy(&shared, reinterpret_cast<const char*>(s) + 8, sizeof shared);
    return shared != 0;
}
#else
bool is_shared_semaphore(const sem_t*) noexcept { return true; }
#endif

// Returns 0, or an errno value.
int take_by_asking(sem_t* s, const clock_moment& until, const interruptible& here) {
    auto pause = std::chrono::microseconds(0);
    for (;;) {
        if (real::sem_trywait(s) == 0) return 0;
        if (errno != EAGAIN) return errno;
        if (here.is_over()) return EINTR;
        if (until.at != nullptr && left_until_moment(until) <= duration::zero()) return ETIMEDOUT;
        if (pause.count() == 0)
            let_others_run();
        else if (const int why = hook::until(after(now(), pause), here); why != 0)
            return why;
        pause =
            std::clamp(2 * pause, std::chrono::microseconds(50), std::chrono::microseconds(2000));
    }
}

// The error that is chosen for a stop; may unwind.
int why_stopped_here() {
    const fiber_core* const f = fiber_here();
    const bool is_late = f != nullptr && f->pending_stop() == stop_reason::deadline;
    return answer_to_stop(is_late ? ETIMEDOUT : ECANCELED);
}

int take_unit(sem_t* s, const clock_moment& until) {
    if (until.at != nullptr && (is_no_moment_of_waits(*until.at) ||
                                (until.by != CLOCK_REALTIME && until.by != CLOCK_MONOTONIC)))
        return EINVAL;
    if (real::sem_trywait(s) == 0) return 0;
    if (errno != EAGAIN) return errno;
    // The system restarts only a wait without a deadline.
    const interruptible here(until.at == nullptr ? ended_by::plain_handler : ended_by::any_handler);
    if (is_shared_semaphore(s)) return take_by_asking(s, until, here);
    if (!bell_is_there()) return take_by_asking(s, until, here);
    const post_bell::rope rope(posts, s);
    if (!rope) return take_by_asking(s, until, here);
    parking how{.what = "a semaphore",
                .abandoned = [](const void* at, bool) noexcept { unpark(at, 1); }};
    for (;;) {
        const auto still = [s]() noexcept { return real::sem_trywait(s) != 0; };
        const unparked end = park_until(s, how, until, still);
        if (end == unparked::refused) return 0;
        if (end == unparked::timed_out) return ETIMEDOUT;
        if (end == unparked::stopped) {
            // A fiber that was woken before may be the only waiter notified of a unit, and
            // therefore takes that unit, without a wait.
            if (how.first && real::sem_trywait(s) == 0) return 0;
            return here.is_over() ? EINTR : why_stopped_here();
        }
        // Another has taken the unit that this one was woken for. A handler that ran meanwhile has
        // found no wait to end.
        if (here.is_over()) return real::sem_trywait(s) == 0 ? 0 : EINTR;
        how.first = true;
    }
}

int answer_of_take(sem_t* s, const clock_moment& until) {
    pay(price::lock);
    const int before = errno;
    const int why = take_unit(s, until);
    errno = why != 0 ? why : before;
    return why != 0 ? -1 : 0;
}

}  // namespace

int in_fiber::sem_wait(sem_t* s) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("sem_wait", __builtin_return_address(0),
                              [=] { return real::sem_wait(s); });
    return answer_of_take(s, {CLOCK_REALTIME, nullptr});
}

int in_fiber::sem_timedwait(sem_t* s, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("sem_timedwait", __builtin_return_address(0),
                              [=] { return real::sem_timedwait(s, until); });

    return answer_of_take(s, {CLOCK_REALTIME, until});
}

int in_fiber::sem_clockwait(sem_t* s, clockid_t by, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("sem_clockwait", __builtin_return_address(0),
                              [=] { return real::sem_clockwait(s, by, until); });

    return answer_of_take(s, {by, until});
}

int in_fiber::sem_trywait(sem_t* s) {
    pay(price::lock);
    return real::sem_trywait(s);
}

int everywhere::sem_post(sem_t* s) {
    const int r = real::sem_post(s);
    if (r == 0) posts.ring(s);
    return r;
}

}  // namespace weft::hook
