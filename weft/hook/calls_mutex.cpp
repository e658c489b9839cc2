// Mutexes of pthreads: a fiber's are handled by libc_mutex, a thread's by libc. With
// options::pthreads off all are libc's, and owned by the thread. Those that a fiber owns are
// counted even so, and a fiber that waits while it owns one is found (a pin).
//
// Model: none, libc_mutex has the words.

#include <cerrno>

#include "weft/hook/detail/beside.hpp"
#include "weft/hook/detail/blocked.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/libc_mutex.hpp"

namespace weft::hook {
namespace {

int locked(int r, fiber_core* f) noexcept {
    if (f != nullptr && (r == 0 || r == EOWNERDEAD)) ++f->foreign_locks;
    return r;
}
int unlocked(int r, fiber_core* f) noexcept {
    if (r == 0 && f != nullptr && f->foreign_locks != 0) --f->foreign_locks;
    return r;
}
int acquired(int r, pthread_mutex_t& m) noexcept {
    if (r == 0 || r == EOWNERDEAD) told_acquired(m);
    return r;
}

WEFT_COLD int lock_of_thread(pthread_mutex_t& m, fiber_core* f, const void* caller) {
    const blocks_thread reports("pthread_mutex_lock", caller, blocks_thread::brief);
    return locked(real::pthread_mutex_lock(&m), f);
}

}  // namespace

int everywhere::pthread_mutex_lock(pthread_mutex_t* m) {
    if (current_flow() == nullptr) [[likely]]
        return pthreads_are_of_fibers() && lock_unasked(*m)
                   ? 0
                   : acquired(real::pthread_mutex_lock(m), *m);
    fiber_core* const f = fiber_here();
    if (f == nullptr) return acquired(real::pthread_mutex_lock(m), *m);
    if (pthreads_are_of_fibers()) return lock_mutex(*m, *f);
    return lock_of_thread(*m, f, __builtin_return_address(0));
}

int everywhere::pthread_mutex_timedlock(pthread_mutex_t* m, const timespec* until) {
    fiber_core* const f = fiber_here();
    if (f != nullptr && pthreads_are_of_fibers())
        return lock_mutex_until(*m, *f, CLOCK_REALTIME, *until);
    return locked(acquired(real::pthread_mutex_timedlock(m, until), *m), f);
}

int everywhere::pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t by, const timespec* until) {
    fiber_core* const f = fiber_here();
    if (f != nullptr && pthreads_are_of_fibers()) return lock_mutex_until(*m, *f, by, *until);
    return locked(acquired(real::pthread_mutex_clocklock(m, by, until), *m), f);
}

int everywhere::pthread_mutex_trylock(pthread_mutex_t* m) {
    fiber_core* const f = fiber_here();
    if (f != nullptr && pthreads_are_of_fibers()) return try_lock_mutex(*m, *f);
    return locked(acquired(real::pthread_mutex_trylock(m), *m), f);
}

int everywhere::pthread_mutex_unlock(pthread_mutex_t* m) {
    if (pthreads_are_of_fibers())
        if (const int r = unlock_unasked(*m); r >= 0) return r;
    fiber_core* const f = fiber_here();
    if (f == nullptr) return unlock_mutex_of_thread(*m);
    if (pthreads_are_of_fibers()) return unlock_mutex(*m, *f);
    return unlocked(real::pthread_mutex_unlock(m), f);
}

// Lets the fiber of this thread that has it run.
int in_fiber::pthread_spin_lock(pthread_spinlock_t* l) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_spin_lock", __builtin_return_address(0),
                              [=] { return real::pthread_spin_lock(l); });
    const fiber_core& f = *fiber_here();
    others_beside others(f, "a spin lock");
    for (;;) {
        const int r = ::pthread_spin_trylock(l);
        if (r != EBUSY) return r;
        if (f.ending)
            others.run_or_rest();
        else
            in_fiber::sched_yield();
    }
}

}  // namespace weft::hook
