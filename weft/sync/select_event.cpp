#include "weft/sync/detail/select_event.hpp"

#include <utility>

namespace weft::detail {

std::uint64_t select_event_core::next_lot() noexcept {
    if (channel_count_ != 0) return channels_.next_lot();
    return mixed(static_cast<std::uint64_t>(now().time_since_epoch().count()));
}

// The first that has happened, from a random one on.
std::size_t select_event_core::find_ready(std::uint64_t lot) noexcept {
    for (std::size_t k = 0; k != events_.size(); ++k) {
        const std::size_t i = static_cast<std::size_t>((lot + k) % events_.size());
        if (events_[i]->ready()) return channel_count_ + i;
    }
    return none;
}

// Each case is as likely as any other to be tried first.
std::size_t select_event_core::try_now() noexcept {
    // Without a choice no channel is locked for a lot.
    const bool channel_may = channels_.may();
    if (!channel_may && events_.size() == 1) return chosen_ = find_ready(0);
    const std::uint64_t lot = next_lot();
    const bool events_first = lot % (channel_count_ + events_.size()) < events_.size();
    chosen_ = events_first ? find_ready(lot >> 32) : none;
    if (chosen_ == none && channel_may) chosen_ = channels_.try_now();
    if (chosen_ == none && !events_first) chosen_ = find_ready(lot >> 32);
    return chosen_;
}

bool select_event_core::start(waiter& w, bool) noexcept {
    chosen_ = none;
    w.mark_external();
    const waiter::cancel_fn leave_all = [](waiter& me) noexcept {
        me.operation<select_event_core>().leave();
    };
    if (!channels_.start(w, true, this, leave_all)) return false;
    for (; enlisted_ != events_.size(); ++enlisted_) {
        if (events_[enlisted_]->enlist(w)) continue;
        // It has happened since it was looked at. If another source has claimed the waiter, its
        // wake is on the way.
        if (!w.claim()) return true;
        chosen_ = channel_count_ + enlisted_;
        leave();
        return false;
    }
    return true;
}

bool select_event_core::again(waiter& w, time_point until, bool reports_stop) noexcept {
    if (w.status() != wait_status::woken || channels_.chosen() != none) return true;
    chosen_ = find_ready(next_lot());
    if (chosen_ != none) return true;
    leave();
    if (!w.rearm(until, reports_stop)) return true;
    if (start(w, true)) return false;
    // If a channel's case has happened, the waiter is pending, and no other thread sees it.
    static_cast<void>(w.claim());
    return true;
}

void select_event_core::leave() noexcept {
    channels_.leave();
    for (std::size_t count = std::exchange(enlisted_, 0); count != 0; --count)
        events_[count - 1]->leave();
}

}  // namespace weft::detail
