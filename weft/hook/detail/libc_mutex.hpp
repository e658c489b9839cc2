// libc_mutex: a mutex of pthreads that a fiber owns, by libc's own words.
//
// Design: glibc's mutex is a word (0 free, 1 locked, 2 locked and with waiters), an owner, a count
// and a kind. A fiber locks it as a thread does, but stores itself as the owner, with an id above
// all process ids. The mutex therefore excludes threads, other fibers and code behind the hooks
// from each other, and recursion and errors are each fiber's.
//
//      a fiber that finds it locked    lock = 2, waits in the parking lot at the word's address
//      a thread that finds it locked   lock = 2, sleeps in libc's futex on the word
//      unlock, of 1                    lock = 0
//      unlock, of 2                    a fiber that was woken once and lost becomes the owner, and
//                                      the word stays 2; else lock = 0, and the first of either
//                                      kind are woken
//
// - The kinds whose word belongs to the kernel or to another process as well (robust, priority,
//   shared by processes) are libc's, and owned by the thread. A list beside them has the fiber that
//   owns each, by which fibers exclude each other. A fiber that waits for a thread or another
//   process tries again and again. Such a mutex must be unlocked on the thread that has locked it.
//   A robust mutex of a fiber that ends is given up as by a thread that dies (owner_death.hpp).
// - A mutex that is unlocked behind the hooks while fibers wait is found within a second.
// - A lock cannot be refused: a stop does not end the wait.
//
// Limits: fibers whose ids differ by a multiple of 2^29 are taken for one another.
//
// Model: none, the word's three states are libc's; test/model/parking_lot_test.cpp has the waits.
#pragma once

#include <pthread.h>

#include "weft/base/clock.hpp"
#include "weft/hook/detail/in_process.hpp"

namespace weft::hook {

// options::pthreads.
inline bool pthreads_are_of_fibers() noexcept {
    return process_state::has(process_state::pthreads);
}

// For the fiber that runs here; results are those of pthreads.
int lock_mutex(pthread_mutex_t& m, fiber_core& f);
int try_lock_mutex(pthread_mutex_t& m, fiber_core& f);
// The deadline is read only if the call must wait: EINVAL if the deadline cannot be read.
int lock_mutex_until(pthread_mutex_t& m, fiber_core& f, clockid_t by, const timespec& until);
int unlock_mutex(pthread_mutex_t& m, fiber_core& f);
// For any caller, of a kind that does not check its owner: 0; -1 for a kind that does.
int unlock_unasked(pthread_mutex_t& m);
// For a thread: locks a free mutex of such a kind; false if it is for libc to lock.
bool lock_unasked(pthread_mutex_t& m) noexcept;
// Called in the child of a fork, whose thread has another id.
void clear_thread_number() noexcept;

// Whether the fiber, or else this thread, may unlock the mutex, if its kind checks the owner.
bool is_own_mutex(const pthread_mutex_t& m, const fiber_core* f) noexcept;
// For a fiber that is being killed: waits together with its thread. False: another agent owns the
// mutex all that time; then the fiber cannot unlock it either.
bool lock_mutex_ending(pthread_mutex_t& m, fiber_core& f, duration patience) noexcept;
// A check whose answer may be stale.
bool fibers_wait_for(pthread_mutex_t& m) noexcept;

// For a thread, in place of the original.
int unlock_mutex_of_thread(pthread_mutex_t& m);

// A fiber's, or an interceptor's of a sanitizer on a thread, for ThreadSanitizer, which sees the
// one and not the other.
#if WEFT_TSAN
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
inline void told_acquired(pthread_mutex_t& m) noexcept { __tsan_acquire(&m); }
inline void told_released(pthread_mutex_t& m) noexcept { __tsan_release(&m); }
#else
inline void told_acquired(pthread_mutex_t&) noexcept {}
inline void told_released(pthread_mutex_t&) noexcept {}
#endif

// The time point of weft::now()'s clock; false: no such clock, or no such time.
bool is_waitable(clockid_t by) noexcept;
bool is_time(const timespec& t) noexcept;
time_point deadline_of(clockid_t by, const timespec& until) noexcept;

}  // namespace weft::hook
