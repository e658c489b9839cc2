// weft_rwlock: weft's shared_mutex under the names and errors of pthreads.
#include <errno.h>

#include "weft/posix/detail/caller.hpp"
#include "weft/posix/detail/in_place.hpp"
#include "weft/posix/detail/timespec.hpp"
#include "weft/sync/shared_mutex.hpp"

using namespace weft;

namespace {

static_assert(CLOCK_REALTIME == 0, "a weft_cond_t of zeros has the clock of pthreads");

shared_mutex* lock_of(weft_rwlock_t& l) noexcept { return detail::in_place<shared_mutex>(l); }

bool try_now(shared_mutex& m, bool shared) noexcept {
    return shared ? m.try_lock_shared() : m.try_lock();
}

int try_lock(weft_rwlock_t& c, bool shared) noexcept {
    shared_mutex* const m = lock_of(c);
    if (m == nullptr) return EINVAL;
    return try_now(*m, shared) ? 0 : EBUSY;
}

// With a deadline, or without.
int lock(weft_rwlock_t& c, bool shared, const timespec* until) {
    shared_mutex* const m = lock_of(c);
    if (m == nullptr) return EINVAL;
    if (try_now(*m, shared)) return 0;
    if (m->is_owned_by_caller()) return EDEADLK;
    time_point deadline = never;
    if (until != nullptr && !detail::time_point_of(*until, CLOCK_REALTIME, deadline)) return EINVAL;
    return detail::uncancelled([&] {
        const bool got = shared ? m->try_lock_shared_until(deadline) : m->try_lock_until(deadline);
        return got ? 0 : ETIMEDOUT;
    });
}

}  // namespace

extern "C" {

int weft_rwlock_init(weft_rwlock_t* lock, const void* attr) {
    if (attr != nullptr) return EINVAL;
    detail::make_in_place<shared_mutex>(*lock);
    return 0;
}

int weft_rwlock_destroy(weft_rwlock_t* lock) {
    shared_mutex* const m = lock_of(*lock);
    if (m == nullptr) return EINVAL;
    if (!m->try_lock()) return EBUSY;
    m->unlock();
    detail::destroy_in_place<shared_mutex>(*lock);
    return 0;
}

int weft_rwlock_rdlock(weft_rwlock_t* l) { return lock(*l, true, nullptr); }
int weft_rwlock_tryrdlock(weft_rwlock_t* l) { return try_lock(*l, true); }
int weft_rwlock_timedrdlock(weft_rwlock_t* l, const timespec* until) {
    return lock(*l, true, until);
}
int weft_rwlock_wrlock(weft_rwlock_t* l) { return lock(*l, false, nullptr); }
int weft_rwlock_trywrlock(weft_rwlock_t* l) { return try_lock(*l, false); }
int weft_rwlock_timedwrlock(weft_rwlock_t* l, const timespec* until) {
    return lock(*l, false, until);
}

int weft_rwlock_unlock(weft_rwlock_t* lock) {
    shared_mutex* const m = lock_of(*lock);
    if (m == nullptr) return EINVAL;
    if (m->is_owned_by_caller())
        m->unlock();
    else if (m->is_shared())
        m->unlock_shared();
    else
        return EPERM;
    return 0;
}

}  // extern "C"
