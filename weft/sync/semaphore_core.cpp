#include "weft/sync/detail/semaphore_core.hpp"

namespace weft::detail {

void semaphore_core::hand_out(word free) noexcept {
    wait_list woken;
    while (free != 0) {
        queue_node* n = queue_.claim_first();
        if (n == nullptr) break;
        n->given = true;
        woken.push_back(*n);
        free -= unit;
    }
    queue_.unlock(free);  // P1
    atomic_wait_queue::wake_all(woken);
}

void semaphore_core::release(std::size_t n, std::source_location caller) noexcept {
    word w = queue_.load();
    while ((w & (atomic_wait_queue::busy | atomic_wait_queue::waiters)) == 0) {
        WEFT_ASSERT_AT(n <= limit_ && w / unit <= limit_ - n,
                       "release of a semaphore above its maximum", caller);
        if (queue_.change(w, w + n * unit)) return;
    }
    const word v = queue_.lock();
    WEFT_ASSERT_AT(n <= limit_ && v / unit <= limit_ - n,
                   "release of a semaphore above its maximum", caller);
    hand_out(v + n * unit);
}

// The word is written also if the limit is reached, so that a caller that then takes a permit sees
// what was written before this release.
void semaphore_core::release_within_limit() noexcept {
    const word v = queue_.lock();
    hand_out(v / unit < limit_ ? v + unit : v);
}

void semaphore_core::clear() noexcept {
    queue_.lock();
    queue_.unlock(0);
}

bool semaphore_core::try_acquire_slowly() noexcept {
    const word v = queue_.lock();
    queue_.unlock(v != 0 ? v - unit : 0);
    return v != 0;
}

bool acquire_operation::start(waiter& w) noexcept {
    const semaphore_core::word v = permits_->queue_.lock();
    if (v == 0) node_.enlist(w, permits_->queue_, permits_->what_);
    permits_->queue_.unlock(v != 0 ? v - semaphore_core::unit : 0);
    return v == 0;
}

}  // namespace weft::detail
