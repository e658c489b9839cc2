// end_queue: whether one object has ended, and the waits for that end, which comes once.
//
// Design: the end and the lock of the queue are one word, and the store that sets the end is the
// one that releases the lock for the last time. So a thread that sees the end needs no lock, and no
// access follows that store: the object may be destroyed at once.
//
//      open <----> locked ----> ended
//
//   if (!q.enlist(node_)) ...                          // start(): it has ended
//
//   q.lock(); q.claim_all(woken); q.unlock_for_ever(); // the end; the object may be gone now
//   wait_queue::wake_all(woken);
//
// Invariants:
// E1  the word becomes `ended` once and stays so; a thread that sees it sees all that came before
// E2  only the thread that has set `locked` touches the queue, and what else the lock guards
// E3  the queue of an object that has ended is empty
//
// Model: test/model/end_queue_test.cpp
#pragma once

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::detail {

class end_queue {
public:
    end_queue() noexcept = default;
    end_queue(const end_queue&) = delete;
    end_queue& operator=(const end_queue&) = delete;

    // Acquire: pairs with unlock_for_ever(). E1
    bool has_ended() const noexcept { return word_.load(std::memory_order_acquire) == ended; }

    // False: it has ended, and is not locked; all that came before the end is seen.
    [[nodiscard]] bool lock() noexcept {
        unsigned char seen = open;
        // Acquire: pairs with both unlocks.
        if (word_.compare_exchange_strong(seen, locked, std::memory_order_acquire)) [[likely]]
            return true;
        return seen != ended && lock_slowly();
    }
    // The next three are called under the lock. Release, both: pairs with lock().
    void unlock() noexcept { word_.store(open, std::memory_order_release); }
    // The last access: the object may be gone when this returns. E1, E3
    void unlock_for_ever() noexcept { word_.store(ended, std::memory_order_release); }
    void claim_all(wait_list& into) noexcept { wait_queue::claim_all_of(nodes_, into); }

    // Without the lock. False: it has ended, and the node is in no queue.
    [[nodiscard]] bool enlist(wait_node& n) noexcept {
        if (!lock()) return false;
        nodes_.push_back(n);
        unlock();
        return true;
    }
    // Removes the waiter's node: the cancel of a wait. Without the lock.
    void cancel(wait_node& n) noexcept {
        if (!lock()) return;  // E3
        if (n.is_linked()) nodes_.remove(n);
        unlock();
    }
    // The end of an object that no waiter awaits or ever will: it needs no lock.
    void end_unawaited() noexcept { unlock_for_ever(); }

    // Holds the lock until it is destroyed, or is false where the end has come already.
    class hold {
    public:
        explicit hold(end_queue& q) noexcept : held_(q.lock() ? &q : nullptr) {}
        hold(const hold&) = delete;
        hold& operator=(const hold&) = delete;
        ~hold() {
            if (held_ != nullptr) held_->unlock();
        }
        explicit operator bool() const noexcept { return held_ != nullptr; }

    private:
        end_queue* held_;
    };

private:
    enum : unsigned char { open, locked, ended };

    WEFT_COLD bool lock_slowly() noexcept {
        for (int looks = 0;; ++looks) {
            unsigned char seen = word_.load(std::memory_order_acquire);  // as in lock()
            if (seen == ended) return false;
            if (seen == open &&  // acquire: as in lock()
                word_.compare_exchange_strong(seen, locked, std::memory_order_acquire))
                return true;
            if (looks < 16)
                spin_pause();
            else
                spin_yield();
        }
    }

    wait_list nodes_;
    atomic<unsigned char> word_{open};  // last, so that the next field may lie behind it
};

}  // namespace weft::detail
