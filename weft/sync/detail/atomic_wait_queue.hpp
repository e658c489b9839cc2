// atomic_wait_queue: the state of a lock, a count or an event, with an internal lock and a queue of
// waiters.
//
// Design: state and lock are one word. A caller that finds no waiter changes the state by one
// compare-and-swap. Any other caller takes the lock, which is a bit of the same word, and publishes
// the new state by the store that releases the lock. The uncontended path is therefore one atomic
// operation, and the releasing store is the last access: an agent that sees the new state may
// destroy the object.
//
//      63                                        2         1         0
//      +-----------------------------------------+---------+---------+
//      | value: an owner, a count, ...            | waiters |  busy   |
//      +-----------------------------------------+---------+---------+
//
// Invariants:
// Q1  while `busy` is set, only the agent that set it changes the word or the queue
// Q2  while `busy` is not set, `waiters` is set if and only if the queue is not empty
// Q3  no waiter is woken under the lock: a waiter is claimed and taken out of the queue under the
//     lock, and woken after the lock is released
// Q4  a node leaves the queue with the claim of its wait, under the lock, or after a claim that was
//     won elsewhere. Under the lock, a node whose wait is pending is therefore in the queue; a node
//     that was claimed may be in a waker's list, where it must not be touched
//
//   std::uintptr_t v = q.lock();                     // an unlock
//   queue_node* next = q.claim_first();
//   q.unlock(next != nullptr ? v : 0);
//   if (next != nullptr) next->owner->wake();
//
// Model: test/model/atomic_wait_queue_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::detail {

class atomic_wait_queue;

// A wait in one atomic_wait_queue.
struct queue_node : wait_node {
    atomic_wait_queue* queue = nullptr;
    // Written under the lock. True: the waiter has the awaited object and is responsible for it.
    bool given = false;

    // Call under the queue's lock. A cancel of the wait takes this node out of the queue.
    void enlist(waiter& w, atomic_wait_queue& q, const char* what) noexcept;
};

class atomic_wait_queue {
public:
    using word = std::uintptr_t;
    static constexpr word busy = 1;
    static constexpr word waiters = 2;
    static constexpr word unit = 4;  // values are multiples of it

    explicit constexpr atomic_wait_queue(word value) noexcept : word_(value) {}
    atomic_wait_queue(const atomic_wait_queue&) = delete;
    atomic_wait_queue& operator=(const atomic_wait_queue&) = delete;
    ~atomic_wait_queue() {
        WEFT_ASSERT_AT((load() & waiters) == 0, "an object is destroyed while it has waiters",
                       unknown_caller);
    }

    // The whole word. Acquire: pairs with change() and unlock().
    word load() const noexcept { return word_.load(std::memory_order_acquire); }
    static constexpr word value_of(word w) noexcept { return w & ~(busy | waiters); }
    word value() const noexcept { return value_of(load()); }

    // Replaces the word by `to` if the word is exactly `from`; else sets `from` to the word. `from`
    // may have `waiters`, and then `to` has it too; `from` does not have `busy`: Q1. Acquire and
    // release: pairs with itself, load() and lock().
    [[nodiscard]] bool change(word& from, word to) noexcept {
        return word_.compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                             std::memory_order_relaxed);
    }

    // Takes the lock and returns the value. Acquire: pairs with unlock() and change().
    word lock() noexcept {
        // Relaxed: a guess, which the exchange confirms.
        word w = word_.load(std::memory_order_relaxed) & ~busy;
        if (!word_.compare_exchange_strong(w, w | busy, std::memory_order_acquire,
                                           std::memory_order_relaxed)) [[unlikely]]
            w = lock_slowly();
        return value_of(w);
    }
    // Stores the value and releases the lock. Release: pairs with lock(), load(), change().
    void unlock(word value) noexcept {
        word_.store(value | (nodes_.empty() ? 0 : waiters), std::memory_order_release);  // Q2
    }

    // Call the functions from here to remove() under the lock.
    void push_back(queue_node& n) noexcept { nodes_.push_back(n); }
    queue_node* front() const noexcept { return static_cast<queue_node*>(nodes_.front()); }
    // Claims n's wait and takes n out; the caller owes n's waiter a wake. Returns false and leaves
    // n alone if the wait has ended otherwise, or if another agent has claimed it. The waiter must
    // exist, but n need not be in the queue. Q4
    [[nodiscard]] bool claim(queue_node& n) noexcept {
        if (!n.owner->claim_alone()) return false;
        nodes_.remove(n);
        return true;
    }
    // Takes out the first node whose wait has not ended otherwise; null if the queue has no such
    // node.
    [[nodiscard]] queue_node* claim_first() noexcept {
        return static_cast<queue_node*>(wait_queue::claim_first_of(nodes_));
    }
    void claim_all(wait_list& into) noexcept {
        while (queue_node* n = claim_first()) into.push_back(*n);
    }
    // n is in the queue, or its wait was claimed for a cancel: Q4.
    void remove(queue_node& n) noexcept {
        if (n.is_linked()) nodes_.remove(n);
    }

    // Call without the lock.
    void cancel(queue_node& n) noexcept {
        const word v = lock();
        remove(n);
        unlock(v);
    }
    static void wake_all(wait_list& claimed) noexcept {
        while (wait_node* n = claimed.pop_front()) n->owner->wake();  // Q3
    }

private:
    word lock_slowly() noexcept;  // returns the word before

    atomic<word> word_;
    wait_list nodes_;
};

}  // namespace weft::detail
