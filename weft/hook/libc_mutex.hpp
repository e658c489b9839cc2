// libc_mutex: a mutex of pthreads that a fiber owns, by libc's own words.
//
// Its one idea: glibc's mutex is a word (0 free, 1 held, 2 held and waited for), an owner, a count
// and a kind. A fiber takes it as a thread does, but writes itself as the owner, with a number
// above those of all processes. So it excludes and is excluded by threads, other fibers, and code
// behind the hooks, and recursion and errors are each fiber's.
//
//      a fiber that finds it held    lock = 2, stands in the parking lot at the address of the word
//      a thread that finds it held   lock = 2, sleeps in libc's futex on the word
//      unlock, of 1                  lock = 0
//      unlock, of 2                  to a fiber that was woken once and lost: it is given the
//      mutex,
//                                    which stays 2; else lock = 0, and the first of either are
//                                    woken
//
// - The kinds whose word belongs to the kernel or to another process as well (robust, priority,
//   shared by processes) are libc's, the thread's; which fiber has one is in a list beside it, and
//   fibers exclude each other by that. A fiber that waits for a thread or another process asks
//   again and again. Such a one must be unlocked on the thread that has locked it. A robust one of
//   a fiber that ends is given up as by a thread that dies (owner_death.hpp).
// - A mutex that is unlocked behind the hooks while fibers wait is found within a second.
// - A lock cannot be refused: a stop does not end the wait.
//
// Limits: fibers whose numbers differ by a multiple of 2^29 are taken for one another.
//
// Model: none, the word's three states are libc's; test/model/parking_lot_test.cpp has the waits.
#pragma once

#include <pthread.h>

#include "weft/base/clock.hpp"
#include "weft/hook/in_process.hpp"

namespace weft::hook {

// options::pthreads.
inline bool pthreads_are_of_fibers() noexcept {
    return process_state::has(process_state::pthreads);
}

// Of the fiber that runs here; answers are pthread's. `what` is waited for.
int lock_mutex(pthread_mutex_t& m, fiber_core& f);
int try_lock_mutex(pthread_mutex_t& m, fiber_core& f);
// The deadline is asked for only where it must wait: EINVAL if that cannot be read.
int lock_mutex_until(pthread_mutex_t& m, fiber_core& f, clockid_t by, const timespec& until);
int unlock_mutex(pthread_mutex_t& m, fiber_core& f);
// By anybody, of a kind that does not ask: 0, or -1 where it does.
int unlock_unasked(pthread_mutex_t& m);
// By a thread, of such a kind, if it is free; false where it is for libc to lock it.
bool lock_unasked(pthread_mutex_t& m) noexcept;
// In the child of a fork, whose thread has another number.
void forget_thread_number() noexcept;

// Whether the fiber, or else this thread, may unlock it, where its kind asks.
bool is_own_mutex(const pthread_mutex_t& m, const fiber_core* f) noexcept;
// By a fiber that is being killed, with its thread. False: another has it all that time; then the
// fiber cannot unlock it either.
bool lock_mutex_ending(pthread_mutex_t& m, fiber_core& f, duration patience) noexcept;
// A look that may be stale.
bool fibers_wait_for(pthread_mutex_t& m) noexcept;

// By a thread, in place of the original.
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

// The moment of weft::now()'s clock; false: no such clock, or no such time.
bool is_waitable(clockid_t by) noexcept;
bool is_time(const timespec& t) noexcept;
time_point deadline_of(clockid_t by, const timespec& until) noexcept;

}  // namespace weft::hook
