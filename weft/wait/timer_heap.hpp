// timer_heap: the armed timers of a thread, the earliest first.
//
// Its one idea: a pairing heap whose links lie in the timers' own room, so that arming allocates
// nothing and costs the same however many there are; to take one out, wherever it stands, costs
// what a tree of them is deep, on the average of many.
//
//      head --> [1ms] child --> [5ms] next --> [2ms] next --> [7ms]
//                                               child --> [9ms]
//
// Of two of one moment, the one that was armed first comes first.
//
// Invariants:
// H1  nobody is earlier than his parent
// H2  link is what points here: the head, the parent's child, or the next of the one before
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
