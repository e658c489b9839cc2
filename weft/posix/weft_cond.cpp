// weft_cond: weft's condition_variable under the names and errors of pthreads.
#include <errno.h>

#include <condition_variable>
#include <mutex>

#include "weft/posix/detail/caller.hpp"
#include "weft/posix/detail/mutex_part.hpp"
#include "weft/posix/detail/timespec.hpp"
#include "weft/sync/condition_variable.hpp"

using namespace weft;

namespace {

condition_variable* condition_of(weft_cond_t& c) noexcept {
    return detail::in_place<condition_variable>(c);
}

// The caller's lock of a mutex, during the wait: a caller that returns, also by a stop, has locked
// the mutex as often as before. A caller that is killed meanwhile has not.
class lent_lock {
public:
    lent_lock(weft_mutex_t& c, mutex& m) noexcept
        : mutex_(c), depth_(std::exchange(c.depth_, 0u)), lock_(m, std::adopt_lock) {}
    lent_lock(const lent_lock&) = delete;
    lent_lock& operator=(const lent_lock&) = delete;
    ~lent_lock() {
        if (lock_.release() != nullptr) mutex_.depth_ = depth_;
    }
    std::unique_lock<mutex>& lock() noexcept { return lock_; }

private:
    weft_mutex_t& mutex_;
    const unsigned depth_;
    std::unique_lock<mutex> lock_;
};

int wait_until(weft_cond_t& cond, weft_mutex_t& mutex, time_point until) {
    detail::may_end_here ends;
    condition_variable* const c = condition_of(cond);
    weft::mutex* const m = detail::mutex_of(mutex);
    if (c == nullptr || m == nullptr) return ends.went_on(EINVAL);
    if (!m->is_owned_by_caller()) return ends.went_on(EPERM);
    lent_lock held(mutex, *m);
    const auto how = c->wait_until(held.lock(), until);
    return ends.went_on(how == std::cv_status::timeout ? ETIMEDOUT : 0);
}

int wait_or_no_memory(weft_cond_t& cond, weft_mutex_t& mutex, time_point until) {
#if WEFT_EXCEPTIONS
    try {
        return wait_until(cond, mutex, until);
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
#else
    return wait_until(cond, mutex, until);
#endif
}

int wait_on_clock(weft_cond_t& cond, weft_mutex_t& mutex, clockid_t clock, const timespec* until) {
    time_point deadline;
    if (!detail::time_point_of(*until, clock, deadline)) return EINVAL;
    return wait_or_no_memory(cond, mutex, deadline);
}

}  // namespace

extern "C" {

int weft_condattr_init(weft_condattr_t* attr) {
    attr->clock_ = CLOCK_REALTIME;
    return 0;
}

int weft_condattr_destroy(weft_condattr_t*) { return 0; }

int weft_condattr_setclock(weft_condattr_t* attr, clockid_t clock) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return EINVAL;
    attr->clock_ = clock;
    return 0;
}

int weft_condattr_getclock(const weft_condattr_t* attr, clockid_t* clock) {
    *clock = attr->clock_;
    return 0;
}

int weft_cond_init(weft_cond_t* cond, const weft_condattr_t* attr) {
    cond->clock_ = attr != nullptr ? attr->clock_ : CLOCK_REALTIME;
    detail::make_in_place<condition_variable>(*cond);
    return 0;
}

int weft_cond_destroy(weft_cond_t* cond) {
    if (condition_of(*cond) == nullptr) return EINVAL;
    detail::destroy_in_place<condition_variable>(*cond);
    return 0;
}

int weft_cond_wait(weft_cond_t* cond, weft_mutex_t* mutex) {
    return wait_or_no_memory(*cond, *mutex, never);
}

int weft_cond_timedwait(weft_cond_t* cond, weft_mutex_t* mutex, const timespec* until) {
    return wait_on_clock(*cond, *mutex, cond->clock_, until);
}

int weft_cond_clockwait(weft_cond_t* cond, weft_mutex_t* mutex, clockid_t clock,
                        const timespec* until) {
    return wait_on_clock(*cond, *mutex, clock, until);
}

int weft_cond_signal(weft_cond_t* cond) {
    condition_variable* const c = condition_of(*cond);
    if (c == nullptr) return EINVAL;
    c->notify_one();
    return 0;
}

int weft_cond_broadcast(weft_cond_t* cond) {
    condition_variable* const c = condition_of(*cond);
    if (c == nullptr) return EINVAL;
    c->notify_all();
    return 0;
}

}  // extern "C"
