// single_wheel: deadlines within one revolution; every operation is as cheap as it can be.
//
// The simple variant of wheel, for timers whose deadlines are all near: a ring of slots of one tick
// each. No node is ever moved from slot to slot, and next() is exact.
//
//        now                              now + SlotCount
//         |                                 |
//   ... | . | x |   |   | x | x |   |   | x | ...       slot of a deadline: deadline % SlotCount
//             ^ next()
//
// A deadline beyond one revolution is refused: its node would be checked once in each revolution,
// and wheel does that better. A deadline of tick_never has no slot in the ring and is accepted. All
// else is as in wheel: used by one thread, no clock, no allocation, the same order, the same
// freedom of the sink.
//
//   weft::single_wheel<1024> w(now);
//   if (!w.add(node, deadline)) ...;  // more than 1024 ticks away
#pragma once

#include <algorithm>
#include <cstddef>

#include "weft/wheel/slot_set.hpp"
#include "weft/wheel/wheel_base.hpp"

namespace weft {

template <std::size_t SlotCount = 4096>
class single_wheel : detail::wheel_base {
    static_assert((SlotCount & (SlotCount - 1)) == 0 && SlotCount >= 64, "a power of two, from 64");

public:
    static constexpr std::size_t slot_count = SlotCount;

    explicit single_wheel(tick now = 0) noexcept : wheel_base(now) {}

    using wheel_base::empty;
    using wheel_base::now;
    using wheel_base::size;

    // False, and the node is not in, if the deadline is more than slot_count ticks away.
    // Precondition: the node is in no wheel.
    [[nodiscard]] bool add(wheel_node& n, tick deadline) noexcept {
        detail::wheel_list* list = outside(deadline);
        if (list == nullptr) {
            if (deadline - now_ > SlotCount) return false;
            list = &slots_[deadline % SlotCount];
        }
        note_added(n, deadline);
        list->push_back(n);
        if (deadline > now_ && deadline != tick_never) occupied_.insert(deadline % SlotCount);
        return true;
    }

    // Takes the node out; false if it is not in (any more). Precondition: it is in no other wheel.
    bool remove(wheel_node& n) noexcept {
        if (!n.linked()) return false;
        --size_;
        const void* const emptied = detail::wheel_list::unlink(n);
        const std::size_t i = n.deadline() % SlotCount;
        if (emptied == &slots_[i]) occupied_.erase(i);
        return true;
    }

    // As wheel::advance.
    template <class Sink>
    std::size_t advance(tick now, Sink&& sink) {
        turn(now);
        return hand_over(sink);
    }

    // The earliest deadline; now() if something is due, tick_never if there is none.
    tick next() const noexcept { return has_due() ? now_ : earliest(); }

    // Walks everything; aborts where something is not where it should be.
    void check() const noexcept {
        std::size_t count = check_lists();
        for (std::size_t i = 0; i < SlotCount; ++i) {
            WEFT_ASSERT(occupied_.contains(i) == !slots_[i].empty(), "single_wheel: occupied");
            slots_[i].check([&](const wheel_node& n) {
                WEFT_ASSERT(n.deadline() % SlotCount == i, "single_wheel: in another's slot");
                WEFT_ASSERT(n.deadline() - now_ - 1 < SlotCount, "single_wheel: beyond the round");
                ++count;
            });
        }
        WEFT_ASSERT(count == size_, "single_wheel: I1");
    }

private:
    tick earliest() const noexcept {
        const std::size_t first = (now_ + 1) % SlotCount;
        std::size_t i = occupied_.first(first);
        if (i == occupied_.none) i = occupied_.first();
        return i == occupied_.none ? tick_never : now_ + 1 + (i - first) % SlotCount;
    }

    void turn(tick now) noexcept {
        expired_.append(due_);
        now = std::max(now, now_);
        for (tick t = earliest(); t <= now && t != tick_never; t = earliest()) {
            now_ = t;
            occupied_.erase(t % SlotCount);
            expired_.append(slots_[t % SlotCount]);
        }
        now_ = now;
    }

    detail::slot_set<SlotCount> occupied_;
    detail::wheel_list slots_[SlotCount];
};

}  // namespace weft
