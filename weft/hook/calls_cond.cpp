// Condition variables of pthreads. A fiber waits in the parking lot at the condition's address, a
// thread waits in libc. A signal notifies both, and may therefore wake one of each: waits may end
// for no reason.
//
//      fiber                                         thread
//      is queued; its mutex is unlocked              libc's own wait; but if fibers wait for the
//      waits; locks the mutex again                  same mutex, waits as a fiber does: libc's
//                                                    unlock would not notify them
//
// - The mutex is locked again however the wait ends, before a stop or a kill unwinds any further.
// - A stop ends the wait as if for no reason, with 0, or with ETIMEDOUT if the wait has a deadline.
//   The program then checks its condition; a fiber that waits again and again is unwound
//   (stops.hpp).
// - pthread_cancel() does not end a thread's wait in the lot. Such a wait ends by itself soon, as
//   if for no reason, and checks for a cancellation.
// - A condition that processes share is checked every few milliseconds, because another process
//   cannot wake a fiber.
//
// Model: none, test/model/parking_lot_test.cpp has the wait.

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "weft/base/detail/line.hpp"
#include "weft/hook/detail/blocked.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/libc_mutex.hpp"
#include "weft/hook/detail/parking_lot.hpp"
#include "weft/hook/detail/stops.hpp"

namespace weft::hook {
namespace {

#if defined(__GLIBC__)
// Two flags that libc keeps below its count of waiters. Relaxed, both: they are written once, by
// the initialisation.
bool is_shared(const pthread_cond_t& c) noexcept {
    return (__atomic_load_n(&c.__data.__wrefs, __ATOMIC_RELAXED) & 1u) != 0;
}
clockid_t clock_of(const pthread_cond_t& c) noexcept {
    // Relaxed: as above.
    return (__atomic_load_n(&c.__data.__wrefs, __ATOMIC_RELAXED) & 2u) != 0 ? CLOCK_MONOTONIC
                                                                            : CLOCK_REALTIME;
}
#else
bool is_shared(const pthread_cond_t&) noexcept { return true; }
clockid_t clock_of(const pthread_cond_t&) noexcept { return CLOCK_REALTIME; }
#endif

// The mutex of a wait: unlocked once the waiter is queued, and locked again in any case.
class released_mutex {
public:
    released_mutex(pthread_mutex_t& m, fiber_core* f) noexcept : mutex_(m), fiber_(f) {}
    released_mutex(const released_mutex&) = delete;
    released_mutex& operator=(const released_mutex&) = delete;
    // A killed fiber cannot be suspended; but the owner of the mutex may be next to be killed.
    ~released_mutex() {
        if (is_locked_) return;
        constexpr auto patience = std::chrono::milliseconds(100);
        if (fiber_ == nullptr || lock_mutex_ending(mutex_, *fiber_, patience)) return;
        weft::detail::line{}
            .text("weft: hook: ")
            .agent(fiber_->info())
            .text(" is killed in a wait for a condition, and another has its mutex")
            .newline()
            .write(2);
    }

    void unlock() noexcept {
        is_locked_ = false;
        static_cast<void>(fiber_ != nullptr ? unlock_mutex(mutex_, *fiber_)
                                            : unlock_mutex_of_thread(mutex_));
    }
    int lock() {
        const int r = fiber_ != nullptr ? lock_mutex(mutex_, *fiber_)
                                        : everywhere::pthread_mutex_lock(&mutex_);
        is_locked_ = true;
        return r;
    }
    bool is_locked() const noexcept { return is_locked_; }

private:
    pthread_mutex_t& mutex_;
    fiber_core* const fiber_;
    bool is_locked_ = true;
};

int wait_in_lot(pthread_cond_t& c, pthread_mutex_t& m, fiber_core* f, time_point deadline) {
    const cancellation_point here(f);
    if (!is_own_mutex(m, f)) return EPERM;
    constexpr auto of_others = std::chrono::milliseconds(2);
    constexpr auto of_threads = std::chrono::milliseconds(20);
    if (f == nullptr) ::pthread_testcancel();
    time_point until = deadline;
    if (is_shared(c) || f == nullptr)
        until = std::min(until, after(now(), is_shared(c) ? of_others : of_threads));
    released_mutex mutex(m, f);
    const parking how = {
        .what = "a condition",
        .deadline = until,
        // A waiter that was woken and is then killed has not seen the signal that it was woken for.
        .abandoned = [](const void* address, bool) noexcept { unpark(address, 1); },
        .entered = [](void* of) noexcept { static_cast<released_mutex*>(of)->unlock(); },
        .entered_of = &mutex};
    const unparked end = park(&c, how, [] { return true; });
    // A wait that a stop refuses has not begun.
    const int r = mutex.is_locked() ? 0 : mutex.lock();
    if (r != 0) return r;
    if (f == nullptr) ::pthread_testcancel();
    if (end == unparked::stopped) {
        static_cast<void>(answer_to_stop(ECANCELED));
        // A caller with a deadline takes ETIMEDOUT for an end; 0 would look like a wake.
        return deadline != never ? ETIMEDOUT : 0;
    }
    return end == unparked::timed_out && until == deadline ? ETIMEDOUT : 0;
}

// Whether libc's wait would keep fibers from the mutex that it unlocks.
bool is_wanted_by_fibers(pthread_mutex_t& m) noexcept {
    return !WEFT_TSAN && pthreads_are_of_fibers() && fibers_wait_for(m);
}

template <class Original>
int wait_as_thread(pthread_mutex_t& m, const char* call, const void* caller, Original original) {
    const blocks_thread reports(call, caller);
    told_released(m);
    const int r = original();
    told_acquired(m);
    return r;
}

int wait_until(pthread_cond_t& c, pthread_mutex_t& m, fiber_core* f, clockid_t by,
               const timespec& until) {
    if (!is_time(until)) return EINVAL;
    if (!is_waitable(by)) return EINVAL;
    return wait_in_lot(c, m, f, deadline_of(by, until));
}

}  // namespace

int everywhere::pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
    fiber_core* const f = fiber_here();
    if (f != nullptr ? pthreads_are_of_fibers() : is_wanted_by_fibers(*m))
        return wait_in_lot(*c, *m, f, never);
    return wait_as_thread(*m, "pthread_cond_wait", __builtin_return_address(0),
                          [=] { return real::pthread_cond_wait(c, m); });
}

int everywhere::pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m,
                                       const timespec* until) {
    fiber_core* const f = fiber_here();
    if (f != nullptr ? pthreads_are_of_fibers() : is_wanted_by_fibers(*m))
        return wait_until(*c, *m, f, clock_of(*c), *until);
    return wait_as_thread(*m, "pthread_cond_timedwait", __builtin_return_address(0),
                          [=] { return real::pthread_cond_timedwait(c, m, until); });
}

int everywhere::pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t by,
                                       const timespec* until) {
    fiber_core* const f = fiber_here();
    if (f != nullptr ? pthreads_are_of_fibers() : is_wanted_by_fibers(*m))
        return wait_until(*c, *m, f, by, *until);
    return wait_as_thread(*m, "pthread_cond_clockwait", __builtin_return_address(0),
                          [=] { return real::pthread_cond_clockwait(c, m, by, until); });
}

int everywhere::pthread_cond_signal(pthread_cond_t* c) {
    const int r = real::pthread_cond_signal(c);
    if (may_have_parked(c)) unpark(c, 1);
    return r;
}

int everywhere::pthread_cond_broadcast(pthread_cond_t* c) {
    const int r = real::pthread_cond_broadcast(c);
    if (may_have_parked(c)) unpark(c, static_cast<std::size_t>(-1));
    return r;
}

}  // namespace weft::hook
