#include "weft/wheel/wheel.hpp"

#include <algorithm>
#include <bit>

namespace weft {
namespace {

// Of levels 1 and above: the digit has six bits, the first of level 1 is bit 8.
constexpr unsigned low_bits = 8;
constexpr unsigned high_bits = 6;

}  // namespace

void wheel::add(wheel_node& n, tick deadline) noexcept {
    note_added(n, deadline);
    if (detail::wheel_list* list = outside(deadline))
        list->push_back(n);
    else
        place(n);
}

bool wheel::remove(wheel_node& n) noexcept {
    if (!n.is_linked()) return false;
    --size_;
    if (const void* emptied = detail::wheel_list::unlink(n)) {
        const auto offset = static_cast<std::size_t>(static_cast<const char*>(emptied) -
                                                     reinterpret_cast<const char*>(slots_));
        if (offset < slot_count * sizeof(slot)) occupied_.erase(offset / sizeof(slot));  // I4
    }
    return true;
}

tick wheel::next() const noexcept {
    if (has_due()) return now_;
    const std::size_t i = occupied_.first();
    if (i < slot_count) return slots_[i].earliest;
    return slots_[slot_count].list.empty() ? tick_never : slots_[slot_count].earliest;
}

// Brings all that expires into `expired_`, and everything else to where it belongs as seen from
// the new present tick.
void wheel::turn(tick now) noexcept {
    expired_.append(due_);
    now = std::max(now, now_);
    for (;;) {
        const std::size_t i = occupied_.first();
        if (i == slot_count) {
            if (!open_overflow(now)) break;
            continue;
        }
        const tick begin = start(i);
        if (begin > now) break;
        open(i, begin);
    }
    now_ = now;
}

// The present tick reaches the beginning of a slot, and no node is before it.
void wheel::open(std::size_t i, tick begin) noexcept {
    now_ = begin;
    occupied_.erase(i);
    if (i < low_count) {
        expired_.append(slots_[i].list);
        return;
    }
    detail::wheel_list all;
    all.append(slots_[i].list);
    while (!all.empty()) place(all.pop_front());
}

// All levels are empty. Takes in those of the overflow list that have their upper bits in common
// with the earliest one; false if that is later than `now` in those bits.
bool wheel::open_overflow(tick now) noexcept {
    slot& overflow = slots_[slot_count];
    if (overflow.list.empty()) return false;
    const tick upper = overflow.earliest >> overflow_shift;
    if (upper > now >> overflow_shift) return false;
    now_ = std::max(now_, upper << overflow_shift);
    detail::wheel_list all;
    all.append(overflow.list);
    while (!all.empty()) place(all.pop_front());  // I6: what is later comes back here
    return true;
}

void wheel::place(wheel_node& n) noexcept {
    const tick deadline = n.deadline();
    const std::size_t i = index(deadline);
    slot& s = slots_[i];
    const bool first = s.list.empty();
    s.earliest = first ? deadline : std::min(s.earliest, deadline);  // I5
    s.list.push_back(n);
    if (first && i < slot_count) occupied_.insert(i);  // I4
}

std::size_t wheel::index(tick deadline) const noexcept {
    const tick difference = deadline ^ now_;
    if (difference < low_count) return static_cast<std::size_t>(deadline % low_count);
    if (difference >> overflow_shift != 0) return slot_count;
    const unsigned top = static_cast<unsigned>(std::bit_width(difference)) - 1;
    const unsigned above = (top - low_bits) / high_bits;  // the level, less one
    const tick digit = (deadline >> (low_bits + above * high_bits)) % high_count;
    return low_count + above * high_count + static_cast<std::size_t>(digit);
}

// The first tick of a slot, as seen from the present tick.
tick wheel::start(std::size_t i) const noexcept {
    if (i < low_count) return (now_ & ~tick{low_count - 1}) | i;
    const std::size_t above = (i - low_count) / high_count;
    const std::size_t shift = low_bits + above * high_bits;
    const tick span = tick{1} << (shift + high_bits);
    return (now_ & ~(span - 1)) | (tick{(i - low_count) % high_count} << shift);
}

void wheel::check() const noexcept {
    std::size_t count = check_lists();
    for (std::size_t i = 0; i <= slot_count; ++i) {
        const slot& s = slots_[i];
        WEFT_ASSERT(i == slot_count || occupied_.contains(i) == !s.list.empty(), "wheel: I4");
        s.list.check([&](const wheel_node& n) {
            WEFT_ASSERT(n.deadline() > now_ && n.deadline() != tick_never, "wheel: I3");
            WEFT_ASSERT(index(n.deadline()) == i, "wheel: a node is in another's slot");
            WEFT_ASSERT(s.earliest <= n.deadline(), "wheel: I5");
            ++count;
        });
    }
    WEFT_ASSERT(count == size_, "wheel: I1");
}

}  // namespace weft
