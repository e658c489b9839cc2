#include "weft/sync/barrier.hpp"

namespace weft::detail {

barrier_core::arrival barrier_core::arrive(std::size_t n, std::size_t leave,
                                           std::source_location caller) noexcept {
    const phase p = queue_.lock();
    WEFT_ASSERT_AT(n <= missing_, "more arrive at a barrier than it expects", caller);
    missing_ -= n;
    expected_ -= leave;
    const bool last = missing_ == 0;
    queue_.unlock(p);
    return {p, last};
}

void barrier_core::complete() noexcept {
    const phase p = queue_.lock();
    missing_ = expected_;
    wait_list woken;
    queue_.claim_all(woken);
    queue_.unlock(p + atomic_wait_queue::unit);  // B1
    atomic_wait_queue::wake_all(woken);
}

bool barrier_operation::start(waiter& w) noexcept {
    const barrier_core::phase now = barrier_->queue_.lock();
    if (now == phase_) node_.enlist(w, barrier_->queue_, "a barrier");
    barrier_->queue_.unlock(now);
    return now == phase_;
}

}  // namespace weft::detail
