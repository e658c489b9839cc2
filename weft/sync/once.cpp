#include "weft/sync/once.hpp"

namespace weft {
namespace detail {

once_operation::~once_operation() {
    if (node_.given) [[unlikely]]
        flag_->release(false, unknown_caller);  // the frame was destroyed before take()
}

bool once_operation::start(waiter& w) noexcept {
    const atomic_wait_queue::word v = flag_->queue_.lock();
    if (v == once_flag::running) node_.enlist(w, flag_->queue_, "a call of call_once");
    node_.given = v == once_flag::fresh;
    flag_->queue_.unlock(v == once_flag::fresh ? once_flag::running : v);
    return v == once_flag::running;
}

}  // namespace detail

void once_flag::release(bool committed, std::source_location caller) noexcept {
    const detail::atomic_wait_queue::word v = queue_.lock();
    WEFT_ASSERT_AT(v == running, "release() of a once_flag that was not acquired", caller);
    wait_list woken;
    if (committed) {
        queue_.claim_all(woken);
        queue_.unlock(done);
    } else if (detail::queue_node* next = queue_.claim_first()) {
        next->given = true;
        woken.push_back(*next);
        queue_.unlock(running);
    } else {
        queue_.unlock(fresh);
    }
    detail::atomic_wait_queue::wake_all(woken);
}

}  // namespace weft
