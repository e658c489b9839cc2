// inbox<T>: an intrusive queue into which any thread pushes, and from which one owner takes all at
// once, in order.
//
// Design: a stack, pushed by compare-and-swap and taken whole by one exchange. No node is ever
// popped singly, so no ABA is possible. The owner reverses the taken list once, which touches nodes
// that the owner is about to use. No push waits for another, and no thread waits for the owner.
//
//   head --> [c] --> [b] --> [a] --> null       three pushed, a first
//                                               take() gives a, b, c
//   head: empty    null: the first push returns true, and its caller wakes the owner
//         watched  the owner checks again without a wake: no push returns true
//         a node   the inbox is not empty
//
// To wake. A push returns true when it found the inbox empty, and its caller then wakes the owner.
// Exactly one push of each filling returns true, so a wake may cost a system call. No wake is lost
// if
//
//   - the wake is remembered: a wake makes the owner's next sleep return at once. The wake is a
//     system call (eventfd), a releasing read-modify-write of a word (futex), or a flag under a
//     mutex; a mere store could hide an earlier wake, and with it the push behind that wake;
//   - the owner, once awake, first clears the wake and then takes. An owner that takes first may
//     clear the wake of a push that came in between, and sleep although the inbox is not empty;
//   - the owner sleeps only if the last take() gave nothing. The owner may wake for nodes that it
//     has taken already.
//
// A caller that owes a wake makes it after the push. By then the owner may have taken the node, and
// may have no reason left to exist. Before an owner is destroyed, the destroying code therefore
// waits until as many wakes have been made as owed_count() says.
//
// A busy owner that will check again spares other threads the wake: take_and_watch() leaves the
// inbox watched, and until the next take() no push returns true. The last check before a sleep is a
// take(): take() leaves the inbox empty, or gives what came meanwhile.
//
// Ordering: what a thread did before its push, the owner sees after the take that gave the node.
// Nothing is ordered in the other direction.
//
//   weft::detail::inbox<job> box;
//   if (box.push(j)) wake_owner();                                      // any thread
//   for (auto jobs = box.take(); job* j = jobs.pop_front();) j->run();  // the owner
//
// Model: test/model/inbox_test.cpp
#pragma once

#include <cstddef>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/forward_queue.hpp"

namespace weft::detail {

// Invariants:
// I1  head_ is null, &watched_, or the node pushed last; the first of a filling ends in null
// I2  only push() puts a node in; only the owner takes nodes out, and takes all of them
// I3  the first push of a filling returned true if the take before it left null
template <class T, class Tag = void>
class inbox {
    using link = forward_link;
    using node = forward_node<Tag>;

public:
    using queue = forward_queue<T, Tag>;

    constexpr inbox() noexcept = default;
    inbox(const inbox&) = delete;
    inbox& operator=(const inbox&) = delete;
    ~inbox() { WEFT_DEBUG_ASSERT(empty(), "inbox: destroyed with something in it"); }

    // True when the caller owes the owner a wake. Any thread.
    [[nodiscard]] bool push(T& x) noexcept {
        link& l = static_cast<node&>(x);
        WEFT_DEBUG_ASSERT(l.next == &l, "inbox: an element is in a queue already");
        link* before = head_.load(std::memory_order_relaxed);  // a guess, tested below
        do {
            l.next = before == &watched_ ? nullptr : before;  // I1
            // Release: pairs with the acquire of a take, which sees this node or one above it;
            // these are read-modify-writes, so they carry this release on. Relaxed: another guess.
        } while (!head_.compare_exchange_weak(before, &l, std::memory_order_release,
                                              std::memory_order_relaxed));
        return before == nullptr;
    }

    // Takes all nodes, first in first out. Leaves the inbox empty: the next push returns true.
    // Owner.
    queue take() noexcept { return take_leaving(nullptr); }
    // As take(), but leaves the inbox watched: no push returns true until a take(). Owner.
    queue take_and_watch() noexcept {
        // Nothing new: a read is cheaper than a write. Relaxed: the next take gives what is not
        // seen yet. take() itself, which may be the last before a sleep, always exchanges.
        if (head_.load(std::memory_order_relaxed) == &watched_) return {};
        return take_leaving(&watched_);
    }

    // How many of the pushes that were taken returned true. Owner.
    std::size_t owed_count() const noexcept { return owed_count_; }

    // Whether a take would give nothing. A hint, except that for the owner `false` stays true until
    // the next take.
    bool empty() const noexcept {
        const link* head = head_.load(std::memory_order_relaxed);  // nothing is read through it
        return head == nullptr || head == &watched_;
    }

    // Walks the nodes; aborts if a link is wrong. Owner, while no thread pushes.
    void check() const noexcept {
        const link* top = head_.load(std::memory_order_relaxed);  // no push: the last value
        if (top == nullptr || top == &watched_) return;
        const link* slow = top;
        bool move_slow = false;
        for (const link* at = top; at != nullptr; at = at->next) {
            WEFT_ASSERT(at->next != at && at->next != &watched_, "inbox: I1");
            if (move_slow) slow = slow->next;
            move_slow = !move_slow;
            WEFT_ASSERT(at->next == nullptr || at->next != slow, "inbox: a circle");
        }
    }

private:
    queue take_leaving(link* state) noexcept {
        // Acquire: pairs with the release of every push whose node is taken.
        link* top = head_.exchange(state, std::memory_order_acquire);
        const bool was_watched = std::exchange(watching_, state == &watched_);
        if (top == nullptr || top == &watched_) return {};
        owed_count_ += !was_watched;  // I3
        queue in_order;
        while (top != nullptr) {
            link* below = top->next;
            top->next = top;  // alone
            in_order.push_front(static_cast<T&>(static_cast<node&>(*top)));
            top = below;
        }
        return in_order;
    }

    std::size_t owed_count_ = 0;  // owed_count_ and watching_ are the owner's
    bool watching_ = false;       // whether the last take left the inbox watched
    link watched_;                // never in a queue; only its address is used
    atomic<link*> head_{nullptr};
};

}  // namespace weft::detail
