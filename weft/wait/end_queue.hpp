// end_queue: whether one thing has ended, and the waits for that: once, for ever.
//
// Its one idea: the end and the lock of the queue are one word, and the end is the very store that
// releases the lock for the last time. So a thread that sees the end needs no lock any
// more, nor is there a touch behind it: the thing may be destroyed at once.
//
//      open <----> locked ----> ended
//
//   if (!q.enlist(node_)) ...                          // start(): it has ended
//
//   q.lock(); q.claim_all(woken); q.unlock_for_ever(); // the end; what it is of may be gone now
//   wait_queue::wake_all(woken);
//
// Invariants:
// E1  the word is `ended` once, and then for ever; a thread that sees it sees all that came before
// E2  only the thread that has set `locked` touches the queue, and what else is guarded by it
// E3  nobody stands in the queue of what has ended
//
// Model: test/model/end_queue_test.cpp
#pragma once

#include "weft/base/atomic.hpp"
#include "weft/base/spin_wait.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

class end_queue {
public:
    end_queue() noexcept = default;
    end_queue(const end_queue&) = delete;
    end_queue& operator=(const end_queue&) = delete;

    // Acquire: pairs with unlock_for_ever(). E1
    bool has_ended() const noexcept { return word_.load(std::memory_order_acquire) == ended; }

    // False, and it is not locked: it has ended. Then all is seen that came before.
    [[nodiscard]] bool lock() noexcept {
        unsigned char seen = open;
        // Acquire: pairs with both unlocks.
        if (word_.compare_exchange_strong(seen, locked, std::memory_order_acquire)) [[likely]]
            return true;
        return seen != ended && lock_slowly();
    }
    // The rest under the lock, but withdraw().
    void unlock() noexcept { word_.store(open, std::memory_order_release); }
    // The last touch: what it is of may be gone when this returns. E1, E3
    void unlock_for_ever() noexcept { word_.store(ended, std::memory_order_release); }
    void claim_all(wait_list& into) noexcept { wait_queue::claim_all_of(nodes_, into); }

    // Without the lock. False: it has ended, and the node stands nowhere.
    [[nodiscard]] bool enlist(wait_node& n) noexcept {
        if (!lock()) return false;
        nodes_.push_back(n);
        unlock();
        return true;
    }
    // What a withdrawal does.
    void withdraw(wait_node& n) noexcept {
        if (!lock()) return;  // E3
        if (n.linked()) nodes_.remove(n);
        unlock();
    }
    // The end of what nobody waits for, or ever will: it needs no lock.
    void end_unawaited() noexcept { unlock_for_ever(); }

    // Locked until it goes, or ended already.
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
            if (seen == open &&
                word_.compare_exchange_strong(seen, locked, std::memory_order_acquire))
                return true;
            if (looks < 16)
                spin_pause();
            else
                spin_yield();
        }
    }

    wait_list nodes_;
    atomic<unsigned char> word_{open};  // last, so that what follows may lie behind it
};

}  // namespace weft
