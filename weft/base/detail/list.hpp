// list<T>: an intrusive doubly linked list, for elements that are queued and may leave the queue at
// any time: waiters, timers, the census of live flows.
//
// Design: the links are in the element, so that joining and leaving allocate nothing, cannot fail,
// and take the same few stores at every position. The list is a ring closed by a link of its own,
// so that no end is a special case.
//
//     list              a                 b
//   +------+         +------+          +------+
//   | next | ------> | next | -------> | next | ---> back to the list
//   | prev | <------ | prev | <------- | prev |
//   +------+         +------+          +------+      alone: next == null
//
// T derives from list_node; for two lists at once, from two nodes with different tags of the
// user's. Nodes and lists are pinned: others point at them. Neither owns the other, and in a debug
// build an element destroyed in a list, or a list destroyed with elements, ends the program.
//
// Limits: no count is kept, since an element leaves without knowing its list, and a splice moves
// any number at once. Not thread-safe, except peek().
//
//   struct waiter : weft::detail::list_node<> { ... };
//   waiter w;
//   weft::detail::list<waiter> queue;
//   queue.push_back(w);
//   if (w.is_linked()) queue.remove(w);
//
// Model: none, peek() is good for a prefetch and for nothing else.
#pragma once

#include <atomic>
#include <cstddef>
#include <iterator>

#include "weft/base/assert.hpp"

namespace weft::detail {

// Invariants:
// I1  alone: next == prev == null; in a list, or a list's own link: next->prev and prev->next are
//     this
struct list_link {
    list_link* next = nullptr;
    list_link* prev = nullptr;

    // Takes part in the ring, in front of `at`.
    void enter_before(list_link& at) noexcept {
        WEFT_DEBUG_ASSERT(next == nullptr, "list: an element is in a list already");
        next = &at;
        prev = at.prev;
        point(prev->next, this);  // I1
        at.prev = this;
    }

    void leave() noexcept {
        WEFT_DEBUG_ASSERT(next != nullptr, "list: an element to be removed is in no list");
        next->prev = prev;
        point(prev->next, next);
        next = prev = nullptr;  // I1
    }

    // Relaxed: peek() may read it from another thread.
    static void point(list_link*& from, list_link* to) noexcept {
        std::atomic_ref(from).store(to, std::memory_order_relaxed);
    }
};

// Base class that makes its derived class an element of a list. The tag is any type, even an
// incomplete one.
template <class Tag = void>
class list_node : private list_link {
public:
    constexpr list_node() noexcept = default;
    list_node(const list_node&) = delete;
    list_node& operator=(const list_node&) = delete;
    ~list_node() { WEFT_DEBUG_ASSERT(!is_linked(), "list: an element is destroyed in a list"); }

    bool is_linked() const noexcept { return next != nullptr; }

private:
    template <class, class>
    friend class list;
};

template <class T, class Tag = void>
class list {
    using link = list_link;

public:
    // Goes from front to back. The element at the iterator may leave once the iterator has moved
    // on.
    class iterator {
    public:
        using value_type = T;
        using reference = T&;
        using pointer = T*;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::forward_iterator_tag;

        iterator() noexcept = default;
        T& operator*() const noexcept { return of(*at_); }
        T* operator->() const noexcept { return &of(*at_); }
        iterator& operator++() noexcept {
            at_ = at_->next;
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const iterator&) const noexcept = default;

    private:
        friend class list;
        explicit iterator(link* at) noexcept : at_(at) {}
        link* at_ = nullptr;
    };

    constexpr list() noexcept { ends_.next = ends_.prev = &ends_; }
    list(const list&) = delete;
    list& operator=(const list&) = delete;
    ~list() { WEFT_DEBUG_ASSERT(empty(), "list: a list is destroyed with elements in it"); }

    bool empty() const noexcept { return ends_.next == &ends_; }
    // Null when the list is empty.
    T* front() const noexcept { return empty() ? nullptr : &of(*ends_.next); }
    T* back() const noexcept { return empty() ? nullptr : &of(*ends_.prev); }

    // The address of the first element, or of an element that was first shortly before or will be,
    // or of the list: a prefetch hint and nothing else. Any thread, whatever guards the
    // list.
    const void* peek() const noexcept {
        link*& first = const_cast<link*&>(ends_.next);                  // it is only read
        return std::atomic_ref(first).load(std::memory_order_relaxed);  // a hint, never followed
    }

    void push_back(T& x) noexcept { node(x).enter_before(ends_); }
    void push_front(T& x) noexcept { node(x).enter_before(*ends_.next); }
    // `at` is in a list: x comes in front of it.
    static void insert(T& at, T& x) noexcept { node(x).enter_before(node(at)); }
    // Takes x out of whatever list of this type it is in.
    static void remove(T& x) noexcept { node(x).leave(); }

    // Takes the first out; null when the list is empty.
    T* pop_front() noexcept {
        T* first = front();
        if (first != nullptr) remove(*first);
        return first;
    }

    // Appends all of `other`, in its order.
    void splice(list& other) noexcept {
        if (other.empty() || this == &other) return;
        link* first = other.ends_.next;
        link* last = other.ends_.prev;
        first->prev = ends_.prev;  // I1, at the seams
        link::point(ends_.prev->next, first);
        last->next = &ends_;
        ends_.prev = last;
        link::point(other.ends_.next, other.ends_.prev = &other.ends_);
    }

    iterator begin() const noexcept { return iterator(ends_.next); }
    iterator end() const noexcept { return iterator(const_cast<link*>(&ends_)); }

    // Walks the list; ends the program if it is broken. It cannot be caught in a smaller circle:
    // where that begins, a link has two predecessors.
    void check() const noexcept {
        const link* at = &ends_;
        do {
            WEFT_ASSERT(at->next != nullptr && at->next->prev == at, "list: I1");
            at = at->next;
        } while (at != &ends_);
    }

private:
    static link& node(T& x) noexcept { return static_cast<list_node<Tag>&>(x); }
    static T& of(link& l) noexcept { return static_cast<T&>(static_cast<list_node<Tag>&>(l)); }

    link ends_;  // next is the first, prev the last
};

}  // namespace weft::detail
