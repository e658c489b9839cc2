// parking_line: one line of a parking lot: the fibers and threads that wait at addresses with the
// same hash, in order of arrival, and the lock under which they enter and leave.
//
// Design: a node is in the line as long as `in_line` says so, and only the lock guards that. A
// waker claims a node's waiter first, takes the node out only if the claim has won, and wakes the
// waiter after the lock is released. A waker that loses the claim leaves the node in the line, for
// the waiter itself to take out.
//
//      waker, under the lock                   waiter
//      walks: address, bits                    a fiber: its deadline or stop claims the waiter,
//      claims; in_line = false                    then takes the node out if it is in_line
//      after the lock: wakes                   a thread: late, under the lock: takes the node out
//                                                 if it is in_line, or else sleeps on for its wake
//
// Invariants:
// L1  `in_line` and the links of a node in the line are changed under the lock alone
// L2  a waker that has taken a node out under a claim wakes its waiter, which stays until then
// L3  `count` is raised before the waiter checks a last time whether it must wait, and is lowered
//     after the node was taken out: a waker that has changed the checked value, and then reads 0,
//     was seen (both sides seq_cst)
//
// Model: test/model/parking_lot_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "weft/base/detail/futex.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/wait/waiter.hpp"

namespace weft::hook {

// The node of one waiter.
struct parked {
    parked* next = nullptr;  // L1; and among the claimed
    parked* prev = nullptr;  // L1
    const void* address = nullptr;
    std::uint32_t bits = ~0u;
    std::uintptr_t tag = 0;         // the waiter's, for a waker that passes ownership
    waiter* fiber = nullptr;        // null: a thread, which sleeps on `word`
    bool in_line = false;           // L1
    bool was_unparked = false;      // written before the wake
    bool was_given = false;         // the same
    atomic<std::uint32_t> word{0};  // 1: the thread may go
};

// Claimed waiters, in order.
struct parked_list {
    parked* first = nullptr;
    parked** end = &first;

    parked_list() noexcept = default;
    parked_list(const parked_list&) = delete;
    parked_list& operator=(const parked_list&) = delete;
    void push_back(parked& p) noexcept {
        p.next = nullptr;
        *end = &p;
        end = &p.next;
    }
};

class parking_line {
public:
    constexpr parking_line() noexcept = default;
    parking_line(const parking_line&) = delete;
    parking_line& operator=(const parking_line&) = delete;

    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

    // Whether any waiter may be in it, without the lock: L3.
    bool may_hold_any() const noexcept { return count_.load(std::memory_order_seq_cst) != 0; }
    // Under the lock, or for a snapshot.
    bool holds(const void* address, std::uint32_t bits = ~0u) const noexcept {
        for (const parked* p = first_; p != nullptr; p = p->next)
            if (p->address == address && (p->bits & bits) != 0) return true;
        return false;
    }

    // Without the lock: queues the node at the end, unless still() reports under the lock that the
    // wait is not needed. `first`: in front of all others.
    template <class Still>
    [[nodiscard]] bool enter(parked& p, bool first, Still still) noexcept {
        const std::lock_guard held(*this);
        count_.fetch_add(1, std::memory_order_seq_cst);  // L3
        if (!still()) {
            count_.fetch_sub(1, std::memory_order_relaxed);  // no thread need see that soon
            return false;
        }
        p.in_line = true;
        insert(p, first ? first_ : nullptr);
        return true;
    }

    // Called by the waiter, which has claimed its own wait, or is a thread. False: a waker has
    // taken the node out.
    bool leave(parked& p) noexcept {
        const std::lock_guard held(*this);
        if (!p.in_line) return false;
        take_out(p);
        return true;
    }

    // Under the lock: the first at the address whose wait has not ended for another reason.
    // The caller owes them a wake: L2.
    std::size_t claim(const void* address, std::uint32_t bits, std::size_t most,
                      parked_list& into) noexcept {
        std::size_t n = 0;
        for (parked* at = first_; n != most && at != nullptr;) {
            parked& p = *at;
            at = p.next;
            if (p.address != address || (p.bits & bits) == 0) continue;
            if (p.fiber != nullptr && !p.fiber->claim()) continue;
            take_out(p);
            p.was_unparked = true;
            into.push_back(p);
            ++n;
        }
        return n;
    }

    // After the lock, for a node that is in no list.
    static void wake(parked& p, bool in_order) noexcept {
        if (p.fiber == nullptr) {
            // Release: pairs with sleep(). The node may be destroyed right after.
            p.word.store(1, std::memory_order_release);
            weft::detail::futex_wake(&p.word);
        } else if (in_order) {
            p.fiber->wake_in_order();
        } else {
            p.fiber->wake();
        }
    }
    static void wake_all(parked_list& claimed) noexcept {
        const bool in_order = claimed.first != nullptr && claimed.first->next != nullptr;
        for (parked* p = claimed.first; p != nullptr;) {
            parked& woken = *p;
            p = woken.next;  // it may be destroyed right after
            wake(woken, in_order);
        }
    }

    // Called by a thread that has entered. False: the deadline came first, and the node is taken
    // out.
    [[nodiscard]] bool sleep(parked& p, time_point until) noexcept {
        // Acquire: pairs with wake().
        while (p.word.load(std::memory_order_acquire) == 0) {
            if (weft::detail::futex_wait(p.word, 0, until)) continue;
            if (leave(p)) return false;
            until = never;  // the wake is on its way: L2
        }
        return true;
    }

    // In the single thread of a forked child: the waiters that were in the line are in the parent.
    void clear_all() noexcept {
        new (this) parking_line;  // the nodes are not the child's to touch
    }

private:
    // In front of `at`; null: at the end.
    void insert(parked& p, parked* at) noexcept {
        p.next = at;
        p.prev = at != nullptr ? at->prev : last_;
        (p.prev != nullptr ? p.prev->next : first_) = &p;
        (at != nullptr ? at->prev : last_) = &p;
    }
    void take_out(parked& p) noexcept {
        p.in_line = false;  // L1
        (p.prev != nullptr ? p.prev->next : first_) = p.next;
        (p.next != nullptr ? p.next->prev : last_) = p.prev;
        count_.fetch_sub(1, std::memory_order_relaxed);  // L3; as in enter()
    }

    detail::spin_lock lock_;
    atomic<std::uint32_t> count_{0};
    parked* first_ = nullptr;
    parked* last_ = nullptr;
};

}  // namespace weft::hook
