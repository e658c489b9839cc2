#include "weft/sync/mutex.hpp"

namespace weft {
namespace detail {

lock_operation::~lock_operation() {
    if (node_.given) [[unlikely]]
        mutex_->unlock_slowly(node_.as, unknown_caller);  // the frame was destroyed before take()
}

bool lock_operation::start(waiter& w, bool gives_up) noexcept {
    const lock_owner me = lock_owner_of(w);
    const lock_owner held = mutex_->queue_.lock();
    if (held == 0) {
        mutex_->queue_.unlock(me);
        if (me != anonymous_owner) count_lock(1);
        return false;
    }
    if (held == me && me != anonymous_owner && !gives_up) [[unlikely]]
        fail_not_owner("lock of a mutex", me, "which is held by", held, caller_);
    node_.as = me;
    node_.enlist(w, mutex_->queue_, "a mutex");
    mutex_->queue_.unlock(held);
    return true;
}

}  // namespace detail

void mutex::lock_slowly(std::source_location caller) { await(async_lock(caller), caller); }

bool mutex::unlock_slowly(detail::lock_owner me, std::source_location caller) noexcept {
    const detail::lock_owner held = queue_.lock();
    if (held != me && held != detail::anonymous_owner) [[unlikely]]
        detail::fail_not_owner("unlock of a mutex", me, "which is held by", held, caller);
    auto* next = static_cast<detail::lock_operation::node*>(queue_.claim_first());
    if (next != nullptr) next->given = true;
    queue_.unlock(next != nullptr ? next->as : 0);
    if (next != nullptr) next->owner->wake();
    return held != detail::anonymous_owner;
}

}  // namespace weft
