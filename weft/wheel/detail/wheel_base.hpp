// wheel_base: what a wheel has besides its slots: the present tick and three lists.
//
//   due       added at or before the present tick: delivered first by the next advance
//   expired   being delivered by the advance that is running
//   never     without a deadline
//
// Design: an advance first moves all that has expired, in order, into one list, and only then
// delivers node after node. The sink may therefore add and remove any node, and an added node waits
// for the next advance, however soon its deadline is.
//
// Invariants:
// I1  size is the number of nodes in all lists and slots
// I2  outside of an advance, expired holds only what an advance left that threw or had a limit
// I3  a node in a slot has a deadline after the present tick and before tick_never
#pragma once

#include <cstddef>
#include <utility>

#include "weft/wheel/detail/wheel_list.hpp"

namespace weft::detail {

class wheel_base {
public:
    wheel_base(const wheel_base&) = delete;
    wheel_base& operator=(const wheel_base&) = delete;

    // The present tick: the latest one there was an advance to.
    tick now() const noexcept { return now_; }

    // Nodes with an infinite deadline count too.
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

protected:
    explicit wheel_base(tick now) noexcept : now_(now) {}
    ~wheel_base() {
        WEFT_ASSERT_AT(empty(), "destruction of a wheel that has nodes", unknown_caller);
    }

    bool has_due() const noexcept { return !due_.empty() || !expired_.empty(); }

    // The list for a deadline that belongs into no slot, or null.
    wheel_list* outside(tick deadline) noexcept {
        if (deadline == tick_never) return &never_;
        return deadline <= now_ ? &due_ : nullptr;  // I3
    }

    void note_added(wheel_node& n, tick deadline) noexcept {
        WEFT_ASSERT(!n.is_linked(), "a node added to a wheel twice");
        n.deadline_ = deadline;
        ++size_;  // I1
    }

    template <class Sink>
    std::size_t hand_over(Sink& sink, std::size_t most = ~std::size_t{0}) {
        std::size_t count = 0;
        for (; count != most && !expired_.empty(); ++count) {
            --size_;  // I1
            sink(expired_.pop_front());
        }
        return count;
    }

    // Aborts where the lists or their nodes are wrong; returns how many nodes are in them.
    std::size_t check_lists() const noexcept {
        std::size_t count = 0;
        due_.check([&](const wheel_node& n) {
            WEFT_ASSERT(n.deadline() <= now_, "wheel: a node is due too early");
            ++count;
        });
        expired_.check([&](const wheel_node&) { ++count; });
        never_.check([&](const wheel_node& n) {
            WEFT_ASSERT(n.deadline() == tick_never, "wheel: a deadline is forgotten");
            ++count;
        });
        return count;
    }

    tick now_;
    std::size_t size_ = 0;
    wheel_list due_;
    wheel_list expired_;
    wheel_list never_;
};

}  // namespace weft::detail
