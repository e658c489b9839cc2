// Mutexes of pthreads: how many a fiber holds is counted, so that a fiber which waits with one is
// found (a pin); and one that is taken is waited for
//
//   by the fiber   if its holder waits on this very thread, which could never come to release it;
//                  with options::pthread_mutex also if a shared object locks it: a client library
//   by the thread  otherwise, as without hooks: what the program and weft itself lock they hold for
//                  a few instructions, and weft locks some where a fiber cannot wait
//
// Model: none, the one word is libc's, and asks only whether the caller itself is the owner.

#include <dlfcn.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "weft/hook/calls.hpp"
#include "weft/hook/in_process.hpp"
#include "weft/hook/readiness.hpp"
#include "weft/wait/flow.hpp"

namespace weft::hook {
namespace {

// Of the running fiber, one more or less.
int locked(int r) noexcept {
    if (r == 0 || r == EOWNERDEAD)
        if (fiber_core* const f = fiber_here()) ++f->foreign_locks;
    return r;
}
int unlocked(int r) noexcept {
    if (fiber_core* const f = fiber_here(); r == 0 && f != nullptr && f->foreign_locks != 0)
        --f->foreign_locks;
    return r;
}

#if defined(__GLIBC__)
bool is_plain(const pthread_mutex_t& m) noexcept {
    constexpr int sort = 3;  // of __kind: normal, recursive, one that checks, adaptive
    const int kind = m.__data.__kind & sort;
    return kind == PTHREAD_MUTEX_TIMED_NP || kind == PTHREAD_MUTEX_ADAPTIVE_NP;
}
bool is_held_here(const pthread_mutex_t& m) noexcept {
    return __atomic_load_n(&m.__data.__owner, __ATOMIC_RELAXED) ==
           static_cast<int>(::syscall(SYS_gettid));
}
#else
bool is_plain(const pthread_mutex_t&) noexcept { return false; }
bool is_held_here(const pthread_mutex_t&) noexcept { return false; }
#endif

// Whether code of the object that weft is in calls, as far as it is known: a function that ends in
// the call of the lock leaves its own caller's address, and waits as that one would.
bool is_own_code(const void* caller) noexcept {
    ::Dl_info own;
    ::Dl_info other;
    return ::dladdr(reinterpret_cast<const void*>(&is_plain), &own) == 0 ||
           ::dladdr(caller, &other) == 0 || own.dli_fbase == other.dli_fbase;
}

bool waits_as_fiber(const pthread_mutex_t& m, const void* caller) noexcept {
    const fiber_core* const f = hooked_fiber();
    if (f == nullptr || f->ending || !is_plain(m)) return false;
    if (is_held_here(m)) return true;
    return process_state::has(process_state::mutexes) && !is_own_code(caller);
}

// Nothing tells when it is free, so it is tried again and again. A lock cannot be refused: a fiber
// that was asked to stop waits on.
int lock_as_fiber(pthread_mutex_t& m, time_point deadline) {
    auto pause = std::chrono::microseconds(0);
    for (;;) {
        const int r = real::pthread_mutex_trylock(&m);
        if (r != EBUSY) return r;
        if (deadline <= now()) return ETIMEDOUT;
        if (pause.count() == 0)
            let_others_run();
        else
            wait_out(std::min(after(now(), pause), deadline));
        pause =
            std::clamp(2 * pause, std::chrono::microseconds(50), std::chrono::microseconds(1000));
    }
}

time_point deadline_of(clockid_t by, const timespec& until) noexcept {
    timespec there;
    if (::clock_gettime(by, &there) != 0) return never;
    const auto of = [](const timespec& t) noexcept {
        return hook::duration_of(t.tv_sec, std::chrono::nanoseconds(t.tv_nsec));
    };
    return until.tv_sec < there.tv_sec ? now() : after(now(), of(until) - of(there));
}

int lock_until(pthread_mutex_t* m, clockid_t by, const timespec* until, const void* caller) {
    if (fiber_here() != nullptr) {
        const int r = real::pthread_mutex_trylock(m);
        if (r != EBUSY) return locked(r);
        if (waits_as_fiber(*m, caller)) {
            if (until->tv_nsec < 0 || until->tv_nsec > 999'999'999) return EINVAL;
            return locked(lock_as_fiber(*m, deadline_of(by, *until)));
        }
    }
    return locked(by == CLOCK_REALTIME ? real::pthread_mutex_timedlock(m, until)
                                       : real::pthread_mutex_clocklock(m, by, until));
}

}  // namespace

int everywhere::pthread_mutex_lock(pthread_mutex_t* m) {
    if (fiber_here() == nullptr) return real::pthread_mutex_lock(m);
    const int r = real::pthread_mutex_trylock(m);
    if (r != EBUSY) return locked(r);
    if (waits_as_fiber(*m, __builtin_return_address(0))) return locked(lock_as_fiber(*m, never));
    return locked(real::pthread_mutex_lock(m));
}

int everywhere::pthread_mutex_timedlock(pthread_mutex_t* m, const timespec* until) {
    return lock_until(m, CLOCK_REALTIME, until, __builtin_return_address(0));
}

int everywhere::pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t by, const timespec* until) {
    return lock_until(m, by, until, __builtin_return_address(0));
}

int everywhere::pthread_mutex_trylock(pthread_mutex_t* m) {
    return locked(real::pthread_mutex_trylock(m));
}

int everywhere::pthread_mutex_unlock(pthread_mutex_t* m) {
    return unlocked(real::pthread_mutex_unlock(m));
}

}  // namespace weft::hook
