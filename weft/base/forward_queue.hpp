// forward_queue<T>: an intrusive singly linked FIFO, for what is queued and taken in order and
// never leaves from the middle: work that was posted, what an inbox delivers.
//
// Design: one word in the element. Where list<T> has two words and lets an element leave, this has
// half of that, and a whole queue moves as two pointers.
//
//   first --> [a] --> [b] --> [c] --> null        alone: next is the element itself
//   last  ---------------------^
//
// T derives from forward_node; for two queues at once, from two nodes with different tags.
//
// Limits: not thread-safe. Nodes are pinned, a queue can be moved. An element is in one queue of a
// tag at a time. A queue is empty when it is destroyed, and an element is in none.
//
//   struct job : weft::forward_node<> { void run(); };
//   job j;
//   weft::forward_queue<job> jobs;
//   jobs.push_back(j);
//   while (job* next = jobs.pop_front()) next->run();
#pragma once

#include <utility>

#include "weft/base/assert.hpp"

namespace weft {

namespace detail {

// Invariants:
// I1  alone: next == this; in a queue: the next element, null for the last
struct forward_link {
    forward_link* next = this;
};

}  // namespace detail

// Base class that makes its derived class an element of a forward_queue. The tag is any type, even
// an incomplete one.
template <class Tag = void>
class forward_node : public detail::forward_link {
public:
    constexpr forward_node() noexcept = default;
    forward_node(const forward_node&) = delete;
    forward_node& operator=(const forward_node&) = delete;
    // Aborts in a debug build if the element is in a queue.
    ~forward_node() {
        WEFT_DEBUG_ASSERT(!is_linked(), "forward_queue: an element is destroyed in it");
    }

    bool is_linked() const noexcept { return next != this; }
};

// Invariants:
// I2  first_ is null when empty, and last_ means nothing then
template <class T, class Tag = void>
class forward_queue {
    using link = detail::forward_link;

public:
    constexpr forward_queue() noexcept = default;
    forward_queue(forward_queue&& other) noexcept
        : first_(std::exchange(other.first_, nullptr)), last_(other.last_) {}
    forward_queue& operator=(forward_queue&& other) noexcept {
        WEFT_DEBUG_ASSERT(empty(), "forward_queue: a queue with elements in it is written over");
        first_ = std::exchange(other.first_, nullptr);
        last_ = other.last_;
        return *this;
    }
    // Aborts in a debug build if the queue has elements.
    ~forward_queue() {
        WEFT_DEBUG_ASSERT(empty(), "forward_queue: a queue is destroyed with elements in it");
    }

    bool empty() const noexcept { return first_ == nullptr; }
    // Null when the queue is empty.
    T* front() const noexcept { return empty() ? nullptr : &of(*first_); }

    void push_back(T& x) noexcept {
        link& l = node(x);
        WEFT_DEBUG_ASSERT(l.next == &l, "forward_queue: an element is in a queue already");
        l.next = nullptr;
        (empty() ? first_ : last_->next) = &l;
        last_ = &l;
    }
    void push_front(T& x) noexcept {
        link& l = node(x);
        WEFT_DEBUG_ASSERT(l.next == &l, "forward_queue: an element is in a queue already");
        if (empty()) last_ = &l;
        l.next = first_;
        first_ = &l;
    }

    // Takes the first out; null when the queue is empty.
    T* pop_front() noexcept {
        if (empty()) return nullptr;
        link& l = *first_;
        first_ = l.next;
        l.next = &l;  // I1
        return &of(l);
    }

    // Appends all of `other`, in its order.
    void splice(forward_queue& other) noexcept {
        if (other.empty() || this == &other) return;
        (empty() ? first_ : last_->next) = other.first_;
        last_ = other.last_;
        other.first_ = nullptr;
    }

    // Walks the queue; ends the program if it is broken. The second walker goes at half the pace of
    // the first, and is met if they go in a circle.
    void check() const noexcept {
        const link* slow = first_;
        bool move_slow = false;
        for (const link* at = first_; at != nullptr; at = at->next) {
            WEFT_ASSERT(at->next != at, "forward_queue: I1");
            WEFT_ASSERT(at->next != nullptr || at == last_, "forward_queue: the last is another");
            if (move_slow) slow = slow->next;
            move_slow = !move_slow;
            WEFT_ASSERT(at->next == nullptr || at->next != slow, "forward_queue: a circle");
        }
    }

private:
    static link& node(T& x) noexcept { return static_cast<forward_node<Tag>&>(x); }
    static T& of(link& l) noexcept { return static_cast<T&>(static_cast<forward_node<Tag>&>(l)); }

    link* first_ = nullptr;
    link* last_ = nullptr;
};

}  // namespace weft
