/* weft.h: fibers for C, in the shape of pthreads.
 *
 * Design: a program for pthreads becomes one for weft by its names. A call that waits (a lock, a
 * condition, a join, a sleep, a poll) suspends the calling fiber and lets others run on its thread.
 * On a plain thread such a call blocks the thread. Both may use the same object.
 *
 *     static void *work(void *arg) { weft_sleep(1); return arg; }
 *
 *     static void *begin(void *arg) {
 *         weft_t t;
 *         if (weft_create(&t, NULL, work, arg) != 0) return NULL;
 *         weft_join(t, NULL);
 *         return NULL;
 *     }
 *     int main(void) { return weft_run(begin, NULL, NULL); }
 *
 * Functions return 0 or an error number, as those of pthreads do; weft_poll, weft_nanosleep and
 * weft_usleep return -1 and set errno, as those of the system do. Names, arguments and errors are
 * those of pthreads with weft for pthread; this header says where the two differ. No function
 * reports a failure by a C++ exception.
 *
 * A fiber is ended in the middle by weft_exit, by weft_cancel, and by the end of its loop. Its
 * stack is then unwound: the handlers of weft_cleanup_push run, C++ destructors run, and at last
 * the destructors of keys. Frames of C need nothing for that but the unwind tables that compilers
 * make by default. C++ code on that stack sees an exception that is no std::exception, and lets the
 * exception pass.
 *
 * Limits: a fiber that ends while it owns a mutex ends the program with a message. In a build of
 * weft without C++ exceptions weft_exit ends the program, and a cancel ends no wait.
 */
#ifndef WEFT_POSIX_WEFT_H
#define WEFT_POSIX_WEFT_H

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#define WEFT_NORETURN [[noreturn]]
#else
#define WEFT_NORETURN _Noreturn
#endif

typedef void *(*weft_start_t)(void *);

/* -- running ------------------------------------------------------------------------------------
 *
 * A fiber runs on the loop of its creator. On a plain thread weft_run makes a loop; fibers that a
 * plain thread creates without weft_run run on a loop that the library has on a thread of its own.
 */

/* Runs start(arg) as a fiber on this thread, and all that it creates; returns when they all have
 * ended. What start returned goes to *result, which may be NULL. EBUSY: this thread is at it
 * already. EAGAIN: no memory. */
int weft_run(weft_start_t start, void *arg, void **result);

/* As weft_run, on thread_count threads of the library; 0: one for each processor. A fiber stays on
 * the thread on which the fiber began. */
int weft_run_on(unsigned thread_count, weft_start_t start, void *arg, void **result);

/* -- fibers -------------------------------------------------------------------------------------*/

/* Names a fiber, also a fiber that has ended: no name is used twice. */
typedef uint64_t weft_t;
#define WEFT_NULL UINT64_C(0)

/* The result of a fiber that was cancelled. */
#ifdef __cplusplus
#define WEFT_CANCELED (reinterpret_cast<void *>(~uintptr_t{0}))
#else
#define WEFT_CANCELED ((void *)-1)
#endif

typedef struct weft_attr {
    unsigned state_;
    int detached_;
    size_t stack_bytes_;
    struct weft_stacks *stacks_;
    char name_[32];
} weft_attr_t;

enum { WEFT_CREATE_JOINABLE = 0, WEFT_CREATE_DETACHED = 1 };

int weft_attr_init(weft_attr_t *attr);
int weft_attr_destroy(weft_attr_t *attr);
int weft_attr_setdetachstate(weft_attr_t *attr, int state);
int weft_attr_getdetachstate(const weft_attr_t *attr, int *state);
/* 128 KiB by default. EINVAL: less than 4 KiB. */
int weft_attr_setstacksize(weft_attr_t *attr, size_t bytes);
int weft_attr_getstacksize(const weft_attr_t *attr, size_t *bytes);
/* For messages; copied. ERANGE: 32 letters or more. */
int weft_attr_setname(weft_attr_t *attr, const char *name);
int weft_attr_getname(const weft_attr_t *attr, char *name, size_t bytes);

/* Stacks on which fibers take turns. Each fiber keeps only what it uses; while a fiber waits, the
 * data on its stack is out of reach for others. All fibers of a set run on one thread. NULL: each
 * fiber has a stack of its own. */
typedef struct weft_stacks weft_stacks_t;
int weft_stacks_create(weft_stacks_t **stacks, unsigned count, size_t bytes);
int weft_stacks_destroy(weft_stacks_t *stacks); /* EBUSY: fibers use it */
int weft_attr_setstacks(weft_attr_t *attr, weft_stacks_t *stacks);
int weft_attr_getstacks(const weft_attr_t *attr, weft_stacks_t **stacks);

/* EAGAIN: no memory. EINVAL: common stacks, and not a single thread to run on. A fiber takes its
 * stack when it begins. If no stack is left then, its function is not called: a join returns
 * EAGAIN, and a detached fiber ends the program. */
int weft_create(weft_t *fiber, const weft_attr_t *attr, weft_start_t start, void *arg);

/* ESRCH: the fiber exists no more. EINVAL: detached, or joined by another caller. EDEADLK: the
 * fiber is the caller, or waits for the caller. EAGAIN: the fiber is joined, but had no memory to
 * begin. A cancellation point; after a cancel the fiber can still be joined. */
int weft_join(weft_t fiber, void **value);
int weft_tryjoin(weft_t fiber, void **value); /* EBUSY: the fiber runs */
int weft_timedjoin(weft_t fiber, void **value, const struct timespec *until); /* ETIMEDOUT */
int weft_detach(weft_t fiber);

WEFT_NORETURN void weft_exit(void *value);
/* WEFT_NULL outside of a fiber of weft_create or weft_run. */
weft_t weft_self(void);
int weft_equal(weft_t a, weft_t b);
int weft_yield(void);
int weft_setname(const char *name); /* of the caller; ESRCH: no fiber */

/* -- cancellation -------------------------------------------------------------------------------
 *
 * As by default in pthreads: requested from anywhere, and done where the fiber joins, waits for a
 * condition, sleeps, polls, or tests for it. Locks, barriers and weft_once are no such points.
 */

int weft_cancel(weft_t fiber); /* ESRCH */
void weft_testcancel(void);
enum { WEFT_CANCEL_ENABLE = 0, WEFT_CANCEL_DISABLE = 1 };
int weft_setcancelstate(int state, int *before);

/* Push and pop of a pair are in one block. The handlers run where the fiber is ended in a function
 * of this header, the last one first, and none of their own waits is ended. In C++ the handlers
 * also run where an exception leaves the block. */
struct weft_cleanup {
    void (*routine_)(void *);
    void *arg_;
    struct weft_cleanup *outer_;
};
void weft_cleanup_enter_(struct weft_cleanup *here, void (*routine)(void *), void *arg);
void weft_cleanup_leave_(struct weft_cleanup *here, int execute);
#ifdef __cplusplus
struct weft_cleanup_block_ {
    weft_cleanup here_;
    weft_cleanup_block_(void (*routine)(void *), void *arg) : here_() {
        weft_cleanup_enter_(&here_, routine, arg);
    }
    weft_cleanup_block_(const weft_cleanup_block_ &) = delete;
    weft_cleanup_block_ &operator=(const weft_cleanup_block_ &) = delete;
    ~weft_cleanup_block_() {
        if (here_.routine_ != nullptr) weft_cleanup_leave_(&here_, 1);
    }
};
#define weft_cleanup_push(routine, arg) \
    do {                                \
        weft_cleanup_block_ weft_here_((routine), (arg))
#define weft_cleanup_pop(execute)                      \
    weft_cleanup_leave_(&weft_here_.here_, (execute)); \
    }                                                  \
    while (0)
#else
#define weft_cleanup_push(routine, arg) \
    do {                                \
        struct weft_cleanup weft_here_; \
        weft_cleanup_enter_(&weft_here_, (routine), (arg))
#define weft_cleanup_pop(execute)                \
    weft_cleanup_leave_(&weft_here_, (execute)); \
    }                                            \
    while (0)
#endif

/* -- locks --------------------------------------------------------------------------------------
 *
 * A lock by its owner is EDEADLK, but for a recursive mutex, which counts; an unlock by any other
 * caller is EPERM for every kind: the check costs nothing. Waiters get the lock in the order of
 * arrival. `until` is a time of CLOCK_REALTIME, as in pthreads, but a change of that clock while it
 * waits makes no difference; the clock... functions say which clock, CLOCK_REALTIME or
 * CLOCK_MONOTONIC.
 */

typedef struct weft_mutex {
    unsigned state_, kind_, depth_, unused_;
    uint64_t room_[4];
} weft_mutex_t;
typedef struct weft_mutexattr {
    unsigned kind_;
} weft_mutexattr_t;

enum {
    WEFT_MUTEX_NORMAL = 0,
    WEFT_MUTEX_RECURSIVE = 1,
    WEFT_MUTEX_ERRORCHECK = 2,
    WEFT_MUTEX_DEFAULT = WEFT_MUTEX_NORMAL
};
#define WEFT_MUTEX_INITIALIZER {0, WEFT_MUTEX_NORMAL, 0, 0, {0}}
#define WEFT_RECURSIVE_MUTEX_INITIALIZER {0, WEFT_MUTEX_RECURSIVE, 0, 0, {0}}
#define WEFT_ERRORCHECK_MUTEX_INITIALIZER {0, WEFT_MUTEX_ERRORCHECK, 0, 0, {0}}

int weft_mutexattr_init(weft_mutexattr_t *attr);
int weft_mutexattr_destroy(weft_mutexattr_t *attr);
int weft_mutexattr_settype(weft_mutexattr_t *attr, int kind);
int weft_mutexattr_gettype(const weft_mutexattr_t *attr, int *kind);

int weft_mutex_init(weft_mutex_t *mutex, const weft_mutexattr_t *attr);
int weft_mutex_destroy(weft_mutex_t *mutex); /* EBUSY: the mutex is locked */
int weft_mutex_lock(weft_mutex_t *mutex);
int weft_mutex_trylock(weft_mutex_t *mutex); /* EBUSY */
int weft_mutex_timedlock(weft_mutex_t *mutex, const struct timespec *until); /* ETIMEDOUT */
int weft_mutex_clocklock(weft_mutex_t *mutex, clockid_t clock, const struct timespec *until);
int weft_mutex_unlock(weft_mutex_t *mutex);

/* No wait returns without a reason, but the reason may have gone: test the condition again. The
 * waits are cancellation points: the handlers find the mutex locked, unless the fiber's loop has
 * ended. */
typedef struct weft_cond {
    unsigned state_;
    int clock_;
    uint64_t room_[4];
} weft_cond_t;
typedef struct weft_condattr {
    int clock_;
} weft_condattr_t;
#define WEFT_COND_INITIALIZER {0, 0, {0}}

int weft_condattr_init(weft_condattr_t *attr);
int weft_condattr_destroy(weft_condattr_t *attr);
int weft_condattr_setclock(weft_condattr_t *attr, clockid_t clock);
int weft_condattr_getclock(const weft_condattr_t *attr, clockid_t *clock);

int weft_cond_init(weft_cond_t *cond, const weft_condattr_t *attr);
int weft_cond_destroy(weft_cond_t *cond); /* precondition: without waiters */
int weft_cond_wait(weft_cond_t *cond, weft_mutex_t *mutex);
int weft_cond_timedwait(weft_cond_t *cond, weft_mutex_t *mutex, const struct timespec *until);
int weft_cond_clockwait(weft_cond_t *cond, weft_mutex_t *mutex, clockid_t clock,
                        const struct timespec *until);
int weft_cond_signal(weft_cond_t *cond);
int weft_cond_broadcast(weft_cond_t *cond);

/* Readers do not pass a writer that waits, nor writers a reader. */
typedef struct weft_rwlock {
    unsigned state_, unused_;
    uint64_t room_[6];
} weft_rwlock_t;
#define WEFT_RWLOCK_INITIALIZER {0, 0, {0}}

int weft_rwlock_init(weft_rwlock_t *lock, const void *attr); /* attr is NULL */
int weft_rwlock_destroy(weft_rwlock_t *lock);                /* EBUSY */
int weft_rwlock_rdlock(weft_rwlock_t *lock);
int weft_rwlock_tryrdlock(weft_rwlock_t *lock);
int weft_rwlock_timedrdlock(weft_rwlock_t *lock, const struct timespec *until);
int weft_rwlock_wrlock(weft_rwlock_t *lock);
int weft_rwlock_trywrlock(weft_rwlock_t *lock);
int weft_rwlock_timedwrlock(weft_rwlock_t *lock, const struct timespec *until);
int weft_rwlock_unlock(weft_rwlock_t *lock);

typedef struct weft_barrier {
    unsigned state_, unused_;
    uint64_t room_[6];
} weft_barrier_t;
#define WEFT_BARRIER_SERIAL_FIBER (-1)

int weft_barrier_init(weft_barrier_t *barrier, const void *attr, unsigned count); /* attr is NULL */
int weft_barrier_destroy(weft_barrier_t *barrier);
int weft_barrier_wait(weft_barrier_t *barrier); /* WEFT_BARRIER_SERIAL_FIBER for one of them */

/* If the routine is left by weft_exit or a cancel, the next caller of weft_once calls it. */
typedef struct weft_once_state {
    unsigned state_, unused_;
    uint64_t room_[4];
} weft_once_t;
#define WEFT_ONCE_INIT {0, 0, {0}}

int weft_once(weft_once_t *once, void (*routine)(void));

/* -- values of a fiber --------------------------------------------------------------------------
 *
 * On a plain thread, the values are the thread's. Destructors are called when the fiber has ended,
 * the last set first; a destructor that sets its own key anew is called again.
 */

typedef unsigned weft_key_t;
enum { WEFT_KEYS_MAX = 1024 };

int weft_key_create(weft_key_t *key, void (*destructor)(void *)); /* EAGAIN: all keys are in use */
int weft_key_delete(weft_key_t key); /* no destructor of it is called any more */
int weft_setspecific(weft_key_t key, const void *value);
void *weft_getspecific(weft_key_t key);

/* -- time and descriptors -----------------------------------------------------------------------
 *
 * Cancellation points. No signal ends these waits.
 */

unsigned weft_sleep(unsigned seconds); /* 0 */
int weft_usleep(unsigned microseconds);
int weft_nanosleep(const struct timespec *time, struct timespec *left);
int weft_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
