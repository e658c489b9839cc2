#include "weft/sync/detail/countdown.hpp"

namespace weft::detail {

void countdown::add(std::size_t n, std::source_location caller) noexcept {
    word v = queue_.lock();
    WEFT_ASSERT_AT(n <= most - v / unit, "a countdown grows beyond its maximum", caller);
    queue_.unlock(v + n * unit);
}

void countdown::remove(std::size_t n, std::source_location caller) noexcept {
    // If the count stays above zero, or no waiter is queued, no wake is needed.
    word w = queue_.load();
    while ((w & atomic_wait_queue::busy) == 0) {
        const word v = atomic_wait_queue::value_of(w);
        WEFT_ASSERT_AT(n <= v / unit, "a countdown falls below zero", caller);
        if (v == n * unit && w != v) break;
        if (queue_.change(w, w - n * unit)) return;
    }
    const word v = queue_.lock();
    WEFT_ASSERT_AT(n <= v / unit, "a countdown falls below zero", caller);
    wait_list woken;
    if (v == n * unit) queue_.claim_all(woken);
    queue_.unlock(v - n * unit);
    atomic_wait_queue::wake_all(woken);
}

void countdown::set_bars(std::size_t n) noexcept {
    queue_.lock();
    wait_list woken;
    if (n == 0) queue_.claim_all(woken);
    queue_.unlock(n * unit);
    atomic_wait_queue::wake_all(woken);
}

bool countdown_operation::start(waiter& w) noexcept {
    const countdown::word v = gate_->queue_.lock();
    if (v != 0) node_.enlist(w, gate_->queue_, gate_->what_);
    gate_->queue_.unlock(v);
    return v != 0;
}

}  // namespace weft::detail
