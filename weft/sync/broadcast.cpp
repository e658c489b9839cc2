#include "weft/sync/broadcast.hpp"

#include <system_error>

namespace weft::detail {

broadcast_core::broadcast_core(std::size_t capacity, std::source_location caller)
    : ring_(capacity) {
    WEFT_ASSERT_AT(capacity != 0, "a broadcast that keeps no item", caller);
}

void broadcast_core::enter(place& p) noexcept {
    queue_.lock();
    p.next = next_;
    queue_.unlock(0);
}

bool broadcast_core::send(item i) noexcept {
    wait_list woken;
    queue_.lock();
    const bool open = !closed_;
    if (open) {
        std::swap(slot_of(next_++), i);
        queue_.claim_all(woken);
    }
    queue_.unlock(0);
    atomic_wait_queue::wake_all(woken);
    return open;  // the item that was replaced is destroyed on return, without the lock
}

bool broadcast_core::close() noexcept {
    wait_list woken;
    queue_.lock();
    const bool first = !std::exchange(closed_, true);
    queue_.claim_all(woken);
    queue_.unlock(0);
    atomic_wait_queue::wake_all(woken);
    return first;
}

broadcast_core::outcome broadcast_core::recv(place& p, item& into) noexcept {
    if (next_ - p.next > ring_.size()) {
        const std::uint64_t oldest = next_ - ring_.size();
        p.missed += oldest - p.next;
        p.next = oldest;
        return outcome::lagged;
    }
    if (p.next == next_) return closed_ ? outcome::closed : outcome::none;
    into = slot_of(p.next++);
    return outcome::done;
}

broadcast_core::outcome broadcast_core::try_recv(place& p, item& into) noexcept {
    queue_.lock();
    const outcome o = recv(p, into);
    queue_.unlock(0);
    return o;
}

broadcast_core::outcome broadcast_core::start(place& p, item& into, queue_node& n,
                                              waiter& w) noexcept {
    queue_.lock();
    const outcome o = recv(p, into);
    if (o == outcome::none) n.enlist(w, queue_, "an item of a broadcast");
    queue_.unlock(0);
    return o;
}

bool broadcast_wait::ready() noexcept {
    WEFT_ASSERT_AT(!place_->waits, "two wait at one receiver of a broadcast", unknown_caller);
    outcome_ = core_->try_recv(*place_, item_);
    return outcome_ != broadcast_core::outcome::none;
}

bool broadcast_wait::start(waiter& w) noexcept {
    WEFT_ASSERT_AT(!place_->waits, "two wait at one receiver of a broadcast", unknown_caller);
    enlisted_ = place_->waits = true;
    outcome_ = core_->start(*place_, item_, node_, w);
    return outcome_ == broadcast_core::outcome::none;
}

std::error_code broadcast_wait::settle(wait_status how) noexcept {
    leave();
    if (how == wait_status::timed_out) return std::make_error_code(std::errc::timed_out);
    if (how == wait_status::stopped) return std::make_error_code(std::errc::operation_canceled);
    // For a woken receiver an item is ready, or the receiver has lagged since the wake, or the
    // broadcast is closed.
    if (outcome_ == broadcast_core::outcome::none) outcome_ = core_->try_recv(*place_, item_);
    if (outcome_ == broadcast_core::outcome::done) return {};
    return outcome_ == broadcast_core::outcome::lagged ? errc::lagged : errc::closed;
}

}  // namespace weft::detail
