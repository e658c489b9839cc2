// wait_queue: the waiters of one object, in the order of arrival, and the lock of that object.
//
// Design: the object's own state is guarded by the same lock as the queue, so "take it if free,
// else enlist" is one step, and no wake is lost in between. No waiter is woken under the lock: it
// is claimed and removed there, and woken after the unlock (waiter.hpp).
//
// Limits: a waiter is queued in one such queue, and only that queue claims it (W5). A wait with
// several places has lists of its own, under locks of its own, and uses waiter::claim(), as a
// select does.
//
//   const std::lock_guard held(queue);           // start(): free_, or enlisted
//   if (std::exchange(free_, false)) return false;
//   queue.push_back(node_); return true;
//
//   wait_node* next;                             // unlock(): to the first waiter, or free
//   { const std::lock_guard held(queue); next = queue.claim_first(); if (!next) free_ = true; }
//   if (next) next->owner->wake();
//
// Model: test/model/wait_queue_test.cpp
#pragma once

#include <mutex>
#include <utility>

#include "weft/base/detail/spin_lock.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {

class wait_queue {
public:
    wait_queue() noexcept = default;
    wait_queue(const wait_queue&) = delete;
    wait_queue& operator=(const wait_queue&) = delete;

    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

    // All up to claim_all() are called under the lock.
    bool empty() const noexcept { return nodes_.empty(); }
    void push_back(wait_node& n) noexcept { nodes_.push_back(n); }
    wait_node* front() const noexcept { return nodes_.front(); }
    // For a waiter that was claimed for a cancel. One that was claimed for a wake may be in the
    // waker's list, which this lock does not guard.
    void remove(wait_node& n) noexcept {
        if (n.is_linked()) nodes_.remove(n);
    }
    // Removes the first waiter whose wait has not ended otherwise; null if there is none. The
    // caller owes that waiter a wake.
    [[nodiscard]] wait_node* claim_first() noexcept { return claim_first_of(nodes_); }
    // Moves all into a list of the caller, to be woken after the lock is released.
    void claim_all(wait_list& into) noexcept { claim_all_of(nodes_, into); }
    // The same for a list under another lock, in which each waiter has its only place. W5
    [[nodiscard]] static wait_node* claim_first_of(wait_list& from) noexcept {
        while (wait_node* n = from.pop_front())
            if (n->owner->claim_alone()) return n;
        return nullptr;
    }
    static void claim_all_of(wait_list& from, wait_list& into) noexcept {
        while (wait_node* n = claim_first_of(from)) into.push_back(*n);
    }

    // The cancel of a wait. Without the lock.
    void cancel(wait_node& n) noexcept {
        const std::lock_guard held(lock_);
        remove(n);
    }

    // Without the lock. A single waiter may run next, because what it needs is in the cache.
    static void wake_all(wait_list& claimed) noexcept {
        wait_node* n = claimed.pop_front();
        if (n == nullptr) return;
        if (claimed.empty()) return n->owner->wake();
        for (; n != nullptr; n = claimed.pop_front()) n->owner->wake_in_order();
    }

private:
    wait_list nodes_;
    detail::spin_lock lock_;  // last, so that the next field may lie behind it
};

}  // namespace weft
