// timer_heap: the armed timers of a thread, the earliest first.
//
// Design: a pairing heap whose links are stored in the timers' own room, so that arming allocates
// nothing and has a constant cost. Removing a timer, from any position, costs the depth of a tree
// of them, on average over many.
//
//      head --> [1ms] child --> [5ms] next --> [2ms] next --> [7ms]
//                                               child --> [9ms]
//
// Of two timers with the same deadline, the one that was armed first comes first.
//
// Invariants:
// H1  no node is earlier than its parent
// H2  link is the pointer to this node: the head, the parent's child, or the next of the one before
#pragma once

#include <cstdint>

#include "weft/wait/executor.hpp"

namespace weft::detail {

class timer_heap {
public:
    timer_heap() noexcept = default;
    timer_heap(const timer_heap&) = delete;
    timer_heap& operator=(const timer_heap&) = delete;

    bool empty() const noexcept { return head_ == nullptr; }
    time_point earliest() const noexcept {
        return head_ != nullptr ? head_->timer->deadline : never;
    }
    // The earliest, unless it is later than t, or was armed after the first `many` that ever were.
    timer_node* due(time_point t, std::uint64_t many = ~std::uint64_t{0}) const noexcept {
        const bool is = head_ != nullptr && head_->timer->deadline <= t && head_->number < many;
        return is ? head_->timer : nullptr;
    }
    // How many were armed, ever.
    std::uint64_t armed_count() const noexcept { return armed_count_; }

    void arm(timer_node& t) noexcept;
    void disarm(timer_node& t) noexcept;  // precondition: armed here

private:
    struct node {
        timer_node* timer;
        std::uint64_t number;
        node* child = nullptr;
        node* next = nullptr;
        node** link = nullptr;  // H2

        bool is_before(const node& other) const noexcept {
            return timer->deadline != other.timer->deadline
                       ? timer->deadline < other.timer->deadline
                       : number < other.number;
        }
    };

    static node* melded(node* a, node* b) noexcept;
    static node* made_one(node* siblings) noexcept;
    static void put(node*& at, node* n) noexcept {
        at = n;
        if (n != nullptr) n->link = &at;  // H2
    }

    node* head_ = nullptr;
    std::uint64_t armed_count_ = 0;
};

}  // namespace weft::detail
