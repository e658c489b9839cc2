// weft_mutex: weft's mutex under the names and errors of pthreads, with the kinds of a mutex.
#include <errno.h>

#include "weft/posix/detail/caller.hpp"
#include "weft/posix/detail/mutex_part.hpp"
#include "weft/posix/detail/timespec.hpp"

using namespace weft;
using detail::mutex_of;

namespace {

bool is_kind(unsigned kind) noexcept { return kind <= WEFT_MUTEX_ERRORCHECK; }

// For a caller that owns the mutex already. `depth_` is written by the owner.
int lock_again(weft_mutex_t& m, int refusal) noexcept {
    if (m.kind_ != WEFT_MUTEX_RECURSIVE) return refusal;
    if (m.depth_ == ~0u) return EAGAIN;
    ++m.depth_;
    return 0;
}

int lock_until(weft_mutex_t& c, clockid_t clock, const timespec* until) {
    mutex* const m = mutex_of(c);
    if (m == nullptr) return EINVAL;
    if (m->try_lock()) return 0;
    if (m->is_owned_by_caller()) return lock_again(c, EDEADLK);
    time_point deadline;
    if (!detail::time_point_of(*until, clock, deadline)) return EINVAL;
    return detail::uncancelled([&] { return m->try_lock_until(deadline) ? 0 : ETIMEDOUT; });
}

}  // namespace

extern "C" {

int weft_mutexattr_init(weft_mutexattr_t* attr) {
    attr->kind_ = WEFT_MUTEX_DEFAULT;
    return 0;
}

int weft_mutexattr_destroy(weft_mutexattr_t*) { return 0; }

int weft_mutexattr_settype(weft_mutexattr_t* attr, int kind) {
    if (kind < 0 || !is_kind(static_cast<unsigned>(kind))) return EINVAL;
    attr->kind_ = static_cast<unsigned>(kind);
    return 0;
}

int weft_mutexattr_gettype(const weft_mutexattr_t* attr, int* kind) {
    *kind = static_cast<int>(attr->kind_);
    return 0;
}

int weft_mutex_init(weft_mutex_t* mutex, const weft_mutexattr_t* attr) {
    mutex->kind_ = attr != nullptr ? attr->kind_ : unsigned{WEFT_MUTEX_DEFAULT};
    mutex->depth_ = 0;
    detail::make_in_place<weft::mutex>(*mutex);
    return 0;
}

int weft_mutex_destroy(weft_mutex_t* mutex) {
    weft::mutex* const m = mutex_of(*mutex);
    if (m == nullptr) return EINVAL;
    if (!m->try_lock()) return EBUSY;
    m->unlock();
    detail::destroy_in_place<weft::mutex>(*mutex);
    return 0;
}

int weft_mutex_lock(weft_mutex_t* mutex) {
    weft::mutex* const m = mutex_of(*mutex);
    if (m == nullptr) return EINVAL;
    if (m->try_lock()) return 0;
    if (m->is_owned_by_caller()) return lock_again(*mutex, EDEADLK);
    return detail::uncancelled([&] { return m->lock(), 0; });
}

int weft_mutex_trylock(weft_mutex_t* mutex) {
    weft::mutex* const m = mutex_of(*mutex);
    if (m == nullptr) return EINVAL;
    if (m->try_lock()) return 0;
    return m->is_owned_by_caller() ? lock_again(*mutex, EBUSY) : EBUSY;
}

int weft_mutex_timedlock(weft_mutex_t* mutex, const timespec* until) {
    return lock_until(*mutex, CLOCK_REALTIME, until);
}

int weft_mutex_clocklock(weft_mutex_t* mutex, clockid_t clock, const timespec* until) {
    return lock_until(*mutex, clock, until);
}

int weft_mutex_unlock(weft_mutex_t* mutex) {
    weft::mutex* const m = mutex_of(*mutex);
    if (m == nullptr) return EINVAL;
    if (!m->is_owned_by_caller()) return EPERM;
    if (mutex->depth_ != 0)
        --mutex->depth_;
    else
        m->unlock();
    return 0;
}

}  // extern "C"
