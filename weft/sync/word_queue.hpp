// word_queue: the state of a lock, a count or an event, its lock, and those who wait for it.
//
// Its one idea: state and lock are one word. Who finds nobody waiting changes the state by one
// compare-and-swap and is done; everybody else takes the lock, which is a bit of the same word, and
// publishes the new state by the very store that releases it. So the uncontended path is one atomic
// operation, and that store is the last touch: whoever sees the new state may destroy the thing.
//
//      63                                        2         1         0
//      +-----------------------------------------+---------+---------+
//      | value: an owner, a count, ...            | waiters |  busy   |
//      +-----------------------------------------+---------+---------+
//
// Invariants:
// Q1  while `busy` is set, only who set it changes the word or the queue
// Q2  while `busy` is not set, `waiters` is set if and only if the queue is not empty
// Q3  nobody is woken under the lock: who is to be woken is claimed, taken out, and woken after it
// Q4  a node leaves the queue with the claim of its wait, under the lock, or after a claim that was
//     won elsewhere; so under the lock one whose wait is pending is in the queue, and one that was
//     claimed may stand in the list of a waker, where it is not to be touched
//
//   std::uintptr_t v = q.lock();                     // an unlock
//   queue_node* next = q.claim_first();
//   q.unlock(next != nullptr ? v : 0);
//   if (next != nullptr) next->owner->wake();
//
// Model: test/model/word_queue_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/atomic.hpp"
#include "weft/base/platform.hpp"
#include "weft/wait/waiter.hpp"

namespace weft::detail {

class word_queue;

// A wait in one word_queue.
struct queue_node : wait_node {
    word_queue* queue = nullptr;
    bool given = false;  // under the lock: what was waited for is the waiter's; he answers for it

    // Under the queue's lock. The wait is taken back by leaving the queue.
    void enlist(waiter& w, word_queue& q, const char* what) noexcept;
};

class word_queue {
public:
    using word = std::uintptr_t;
    static constexpr word busy = 1;
    static constexpr word waiters = 2;
    static constexpr word unit = 4;  // values are multiples of it

    explicit constexpr word_queue(word value) noexcept : word_(value) {}
    word_queue(const word_queue&) = delete;
    word_queue& operator=(const word_queue&) = delete;
    ~word_queue() {
        WEFT_ASSERT_AT((load() & waiters) == 0, "what somebody waits for is destroyed",
                       unknown_place);
    }

    // The word as it is. Acquire: pairs with change() and unlock().
    word load() const noexcept { return word_.load(std::memory_order_acquire); }
    static constexpr word value_of(word w) noexcept { return w & ~(busy | waiters); }
    word value() const noexcept { return value_of(load()); }

    // One value for another, if the word is exactly `from`; else tells what it is. `from` may have
    // `waiters`, and then `to` has it too; it does not have `busy`: Q1. Acquire and release: pairs
    // with itself, load() and lock().
    [[nodiscard]] bool change(word& from, word to) noexcept {
        return word_.compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                             std::memory_order_relaxed);
    }

    // Returns the value. Acquire: pairs with unlock() and change().
    word lock() noexcept {
        // Relaxed: a guess, which the exchange confirms.
        word w = word_.load(std::memory_order_relaxed) & ~busy;
        if (!word_.compare_exchange_strong(w, w | busy, std::memory_order_acquire,
                                           std::memory_order_relaxed)) [[unlikely]]
            w = lock_slowly();
        return value_of(w);
    }
    // Release: pairs with lock(), load(), change().
    void unlock(word value) noexcept {
        word_.store(value | (nodes_.empty() ? 0 : waiters), std::memory_order_release);  // Q2
    }

    // All of these under the lock.
    void push_back(queue_node& n) noexcept { nodes_.push_back(n); }
    queue_node* front() const noexcept { return static_cast<queue_node*>(nodes_.front()); }
    // Takes n out, and its waiter is owed a wake. False, and n is left alone, if its wait has ended
    // otherwise, or another has claimed it: the waiter exists, but need not be in the queue. Q4
    [[nodiscard]] bool claim(queue_node& n) noexcept {
        if (!n.owner->claim()) return false;
        nodes_.remove(n);
        return true;
    }
    // Takes the first out whose wait has not ended otherwise; null when there is none.
    [[nodiscard]] queue_node* claim_first() noexcept {
        while (wait_node* n = nodes_.pop_front())
            if (n->owner->claim()) return static_cast<queue_node*>(n);
        return nullptr;
    }
    void claim_all(wait_list& into) noexcept {
        while (queue_node* n = claim_first()) into.push_back(*n);
    }
    // Of one in the queue, or, if its wait was claimed for a withdrawal, of any: Q4.
    void remove(queue_node& n) noexcept {
        if (n.linked()) nodes_.remove(n);
    }

    // Without the lock.
    void withdraw(queue_node& n) noexcept {
        const word v = lock();
        remove(n);
        unlock(v);
    }
    static void wake_all(wait_list& claimed) noexcept {
        while (wait_node* n = claimed.pop_front()) n->owner->wake();  // Q3
    }

private:
    word lock_slowly() noexcept;  // the word before

    atomic<word> word_;
    wait_list nodes_;
};

}  // namespace weft::detail
