// wheel: deadlines at any distance, added and removed in O(1); hierarchical.
//
// Design: a node is at the level of the highest bit in which its deadline differs from the present
// tick, in the slot of its deadline's digit there. All nodes of a lower level therefore come before
// all of a higher one, and slots come in the order of their index. One set of bits over all slots
// yields the earliest in a few instructions, however far away the deadline is. An advance opens one
// occupied slot after another, and spreads its nodes over lower levels: each node is moved five
// times at most, and empty ticks cost nothing, for a day as for ten years. The overflow list is
// walked once for each 2^32 ticks that are passed and in which one of its deadlines is.
//
//   bit of a tick   63         32 31      26 25      20 19      14 13      8 7            0
//                   | overflow   | level 4  | level 3  | level 2  | level 1 | level 0     |
//   slots                          64         64         64         64        256
//   ticks of a slot                2^26       2^20       2^14       2^8       1
//
// Order: advance delivers nodes by tick, and within one tick in the order of adding. A node that is
// added at or before the present tick counts as one of the present tick and is delivered first by
// the next advance. No node is delivered before its deadline; a node at tick_never is never
// delivered.
//
// Limits: a pure structure over nodes that are stored elsewhere: it knows no clock, takes no lock,
// allocates nothing, and is used by one thread. Its user decides the length of a tick; with 1 ms,
// the five levels reach over 49.7 days, and later deadlines wait in a list.
//
//   weft::wheel w(now);
//   w.add(node, weft::tick_after(w.now(), 30'000));
//   sleep_until(w.next());
//   w.advance(now, [](weft::wheel_node&) { ... });
#pragma once

#include <cstddef>
#include <utility>

#include "weft/wheel/detail/slot_set.hpp"
#include "weft/wheel/detail/wheel_base.hpp"

namespace weft {

class wheel : detail::wheel_base {
public:
    static constexpr std::size_t level_count = 5;

    explicit wheel(tick now = 0) noexcept : wheel_base(now) {}
    wheel(const wheel&) = delete;
    wheel& operator=(const wheel&) = delete;

    using wheel_base::empty;
    using wheel_base::now;
    using wheel_base::size;

    // Precondition: the node is in no wheel.
    void add(wheel_node&, tick deadline) noexcept;

    // Takes the node out; false if it is not in (any more). Precondition: it is in no other wheel.
    bool remove(wheel_node&) noexcept;

    // Makes `now` the present tick, unless `now` is in the past, and calls sink(node) for each node
    // whose deadline is not after the present tick; returns how many. The sink may add nodes, also
    // the same node, and remove nodes; a later advance delivers what the sink adds. If the sink
    // throws, that later advance begins with the nodes that are left. The sink must not advance.
    template <class Sink>
    std::size_t advance(tick now, Sink&& sink) {
        turn(now);
        return hand_over(sink);
    }

    // The same, of so many nodes at most: those that are left, a later advance begins with.
    template <class Sink>
    std::size_t advance(tick now, Sink&& sink, std::size_t most) {
        turn(now);
        return hand_over(sink, most);
    }

    // A tick not after the earliest deadline, tick_never if no deadline is set, now() if something
    // is due. The result is the earliest deadline itself, unless a node was removed that had been
    // the earliest of its slot: then next() may still return the deadline of that node, once. An
    // advance to that tick corrects next(), and another deadline comes before the next such tick: a
    // thread that sleeps until next() wakes for nothing less often than for something.
    tick next() const noexcept;

    // Walks everything; aborts where something is not where it should be.
    void check() const noexcept;

private:
    static constexpr std::size_t low_count = 256;  // slots of level 0
    static constexpr std::size_t high_count = 64;  // slots of each other level
    static constexpr std::size_t slot_count = low_count + (level_count - 1) * high_count;
    static constexpr unsigned overflow_shift = 32;

    // Invariants:
    // I4  a slot is in occupied_ exactly while its list is not empty
    // I5  no node of a list has a deadline before `earliest`
    // I6  overflow holds what differs from the present tick in bit 32 or above
    struct slot {
        detail::wheel_list list;
        tick earliest = tick_never;
    };

    void turn(tick now) noexcept;
    void open(std::size_t i, tick start) noexcept;
    bool open_overflow(tick now) noexcept;
    void place(wheel_node&) noexcept;
    std::size_t index(tick deadline) const noexcept;  // slot_count for the overflow list
    tick start(std::size_t i) const noexcept;

    detail::slot_set<slot_count> occupied_;
    slot slots_[slot_count + 1];  // the last is the overflow list
};

}  // namespace weft
