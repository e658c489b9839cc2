#include "weft/poll/detail/poll_future_core.hpp"

#include <cstdint>

#include "weft/base/detail/line.hpp"

namespace weft {

void waker::leave() noexcept { future_->abandoned_by(*this); }

namespace detail {

bool poll_future_core::start_wait(waiter& w, bool for_outside) noexcept {
    w.enlist("a poll_future", this, &state_,
             [](waiter& gone) noexcept { gone.operation<poll_state>().cancel(gone); });
    if (for_outside) w.mark_external();
    return state_.enlist(w);
}

void poll_future_core::part() noexcept {
    by_->look_ = waker::nothing;
    by_->future_ = nullptr;
}

void poll_future_core::abandoned_by(waker& w) noexcept {
    if (by_ != &w) return;  // future and context end together
    by_ = nullptr;
    if (is_pending()) state_.publish();  // P2
}

void poll_future_core::refuse(waker& w, std::source_location caller) const noexcept {
    const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    line text;
    if (by_ != nullptr)
        text.text("a poll_future that polls context ")
            .hex(address(by_))
            .text(" is polled with context ")
            .hex(address(&w));
    else
        text.text("a context that is polled by poll_future ")
            .hex(address(w.future_))
            .text(" is polled by poll_future ")
            .hex(address(this));
    fail(text.terminate().data(), {}, caller);
}

}  // namespace detail
}  // namespace weft
