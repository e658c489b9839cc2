// wait_queue: who waits for one thing, in the order in which they came, and the lock of that thing.
//
// Its one idea: the thing's own state is guarded by the same lock as the queue, so that "free, or
// else enlist" is one step and no wake falls between the two. Under the lock nobody is woken: who
// is to be woken is claimed and taken out, and woken after it (waiter.hpp).
//
// A waiter stands in one such queue, and is claimed by that one alone (W5): a wait with several
// places has lists of its own, under locks of its own, and uses waiter::claim(), as a select does.
//
//   const std::lock_guard held(queue);           // start(): free_, or stand in line
//   if (std::exchange(free_, false)) return false;
//   queue.push_back(node_); return true;
//
//   wait_node* next;                             // unlock(): to the first in line, or free
//   { const std::lock_guard held(queue); next = queue.claim_first(); if (!next) free_ = true; }
//   if (next) next->owner->wake();
//
// Model: test/model/wait_queue_test.cpp
#pragma once

#include <mutex>
#include <utility>

#include "weft/base/spin_lock.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {

class wait_queue {
public:
    wait_queue() noexcept = default;

    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

    // All of these under the lock.
    bool empty() const noexcept { return nodes_.empty(); }
    void push_back(wait_node& n) noexcept { nodes_.push_back(n); }
    wait_node* front() const noexcept { return nodes_.front(); }
    // Of one whose wait was claimed for a withdrawal: one that was claimed for a wake may stand in
    // the waker's list, which this lock does not guard.
    void remove(wait_node& n) noexcept {
        if (n.linked()) nodes_.remove(n);
    }
    // Takes the first out whose wait has not ended otherwise; null when there is none. The caller
    // owes its waiter a wake.
    [[nodiscard]] wait_node* claim_first() noexcept { return claim_first_of(nodes_); }
    // All of them, into a list that is the caller's, to be woken after the lock is released.
    void claim_all(wait_list& into) noexcept { claim_all_of(nodes_, into); }
    // The same of a list under another lock, in which each has its only place. W5
    [[nodiscard]] static wait_node* claim_first_of(wait_list& from) noexcept {
        while (wait_node* n = from.pop_front())
            if (n->owner->claim_alone()) return n;
        return nullptr;
    }
    static void claim_all_of(wait_list& from, wait_list& into) noexcept {
        while (wait_node* n = claim_first_of(from)) into.push_back(*n);
    }

    // Without the lock: what a withdrawal does.
    void withdraw(wait_node& n) noexcept {
        const std::lock_guard held(lock_);
        remove(n);
    }

    // Without the lock. One alone may run next, as what it needs is in the cache.
    static void wake_all(wait_list& claimed) noexcept {
        wait_node* n = claimed.pop_front();
        if (n == nullptr) return;
        if (claimed.empty()) return n->owner->wake();
        for (; n != nullptr; n = claimed.pop_front()) n->owner->wake_in_order();
    }

private:
    wait_list nodes_;
    spin_lock lock_;  // last, so that what follows the queue may lie behind it
};

}  // namespace weft
