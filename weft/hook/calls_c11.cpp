// The threads of C11, by those of pthreads: libc's types are the same, and its functions call each
// other inside. On threads these are the originals, except for what fibers must be notified of.
//
// Model: none, all is in calls_mutex.cpp, calls_cond.cpp, calls_once.cpp and calls_keys.cpp.

#include <threads.h>

#include <cerrno>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/fiber_keys.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/readiness.hpp"

namespace weft::hook {
namespace {

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) &&
              alignof(mtx_t) <= alignof(pthread_mutex_t));
static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t) && alignof(cnd_t) <= alignof(pthread_cond_t));

static_assert(sizeof(once_flag) == sizeof(pthread_once_t) &&
              alignof(once_flag) == alignof(pthread_once_t));
static_assert(sizeof(tss_t) == sizeof(pthread_key_t) && sizeof(thrd_t) == sizeof(pthread_t));

pthread_mutex_t* mutex_of(mtx_t* m) noexcept { return reinterpret_cast<pthread_mutex_t*>(m); }
pthread_cond_t* condition_of(cnd_t* c) noexcept { return reinterpret_cast<pthread_cond_t*>(c); }

int of_c11(int r) noexcept {
    switch (r) {
        case 0:
            return thrd_success;
        case ENOMEM:
            return thrd_nomem;
        case ETIMEDOUT:
            return thrd_timedout;
        case EBUSY:
            return thrd_busy;
        default:
            return thrd_error;
    }
}

}  // namespace

int everywhere::mtx_lock(mtx_t* m) { return of_c11(everywhere::pthread_mutex_lock(mutex_of(m))); }

int everywhere::mtx_trylock(mtx_t* m) {
    return of_c11(everywhere::pthread_mutex_trylock(mutex_of(m)));
}

int everywhere::mtx_timedlock(mtx_t* m, const timespec* until) {
    return of_c11(everywhere::pthread_mutex_timedlock(mutex_of(m), until));
}

int everywhere::mtx_unlock(mtx_t* m) {
    return of_c11(everywhere::pthread_mutex_unlock(mutex_of(m)));
}

int everywhere::cnd_wait(cnd_t* c, mtx_t* m) {
    return of_c11(everywhere::pthread_cond_wait(condition_of(c), mutex_of(m)));
}

int everywhere::cnd_timedwait(cnd_t* c, mtx_t* m, const timespec* until) {
    return of_c11(everywhere::pthread_cond_timedwait(condition_of(c), mutex_of(m), until));
}

int everywhere::cnd_signal(cnd_t* c) {
    return of_c11(everywhere::pthread_cond_signal(condition_of(c)));
}

int everywhere::cnd_broadcast(cnd_t* c) {
    return of_c11(everywhere::pthread_cond_broadcast(condition_of(c)));
}

// -1 for a handler that has run, anything below for another error.
int in_fiber::thrd_sleep(const timespec* wanted, timespec* left) {
    switch (in_fiber::clock_nanosleep(CLOCK_REALTIME, 0, wanted, left)) {
        case 0:
            return 0;
        case EINTR:
            return -1;
        default:
            return -2;
    }
}

void in_fiber::thrd_yield() { let_others_run(); }

// It ends the fiber, as pthread_exit() does.
void in_fiber::thrd_exit(int) { in_fiber::pthread_exit(nullptr); }

thrd_t everywhere::thrd_current() { return everywhere::pthread_self(); }

int everywhere::thrd_detach(thrd_t which) { return of_c11(everywhere::pthread_detach(which)); }

void everywhere::call_once(once_flag* once, void (*f)()) {
    static_cast<void>(everywhere::pthread_once(reinterpret_cast<pthread_once_t*>(once), f));
}

int everywhere::tss_create(tss_t* key, tss_dtor_t destroy) {
    return of_c11(make_key(key, destroy, __builtin_return_address(0)));
}

void everywhere::tss_delete(tss_t key) { static_cast<void>(everywhere::pthread_key_delete(key)); }

void* everywhere::tss_get(tss_t key) { return everywhere::pthread_getspecific(key); }

int everywhere::tss_set(tss_t key, void* value) {
    return of_c11(everywhere::pthread_setspecific(key, value));
}

// A caller that spins for the step of another agent lets that agent run, a fiber of this thread or
// a thread.
int in_fiber::sched_yield() {
    let_others_run();
    return real::sched_yield();
}

}  // namespace weft::hook
