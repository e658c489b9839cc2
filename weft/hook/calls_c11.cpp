// The threads of C11, by those of pthreads: libc's types are the same, and its functions call each
// other inside. On threads the originals, but for what fibers must be told of.
//
// Model: none, all is in calls_mutex.cpp and calls_cond.cpp.

#include <threads.h>

#include <cerrno>

#include "weft/hook/calls.hpp"
#include "weft/hook/in_process.hpp"
#include "weft/hook/readiness.hpp"

namespace weft::hook {
namespace {

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) &&
              alignof(mtx_t) <= alignof(pthread_mutex_t));
static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t) && alignof(cnd_t) <= alignof(pthread_cond_t));

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

}  // namespace weft::hook
