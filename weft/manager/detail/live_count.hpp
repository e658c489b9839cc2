// live_count: the number of a manager's tasks, whether it admits more, and the waiters for the
// last.
//
//   bits   63 ... 2    1          0
//          tasks       awaited    closed
//
// Design: closing, admission and emptiness are one word. A task is counted from before it is made
// until the last thing that it does in its manager. So a limit is neither exceeded nor reported as
// reached when it is not; "empty" is one point in time at which there was no task at all; and the
// count keeps the manager alive: code that sees zero, after closing, and then calls alone(), may
// destroy it.
//
//   admit     closed, or at the limit -> refused         else one more
//   leave     the last, and awaited   -> under the queue's lock: zero, not awaited, claim all
//             else                    -> one less
//
// Invariants:
// L1  the count goes up only while `closed` is not set
// L2  `awaited` is set and cleared under the queue's lock, and set only while the count is not
//     zero; the leave that takes the count to zero clears it in the same step and wakes the queue
// L3  after its leave a task touches nothing of the manager but the release of the lock, which
//     alone() waits for
//
// Model: test/model/live_count_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "weft/base/detail/atomic.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::detail {

class alignas(cache_line_bytes) live_count {
public:
    enum class verdict : std::uint8_t { admitted, closed, full };

    live_count() noexcept = default;
    live_count(const live_count&) = delete;
    live_count& operator=(const live_count&) = delete;

    // `admitted`: the caller owes a leave().
    [[nodiscard]] verdict admit(std::size_t limit) noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);  // checked by the exchange
        do {
            if ((seen & closed_bit) != 0) return verdict::closed;  // L1
            if (seen / one >= limit) return verdict::full;
            // Relaxed: an admission publishes nothing.
        } while (!word_.compare_exchange_weak(seen, seen + one, std::memory_order_relaxed));
        return verdict::admitted;
    }
    void leave() noexcept {
        std::uint64_t seen = word_.load(std::memory_order_relaxed);  // checked by the exchange
        do {
            if ((seen & ~closed_bit) == one + awaited_bit) [[unlikely]]
                return leave_awaited();
            // Release: pairs with is_empty and enlist. L3
        } while (!word_.compare_exchange_weak(seen, seen - one, std::memory_order_release,
                                              std::memory_order_relaxed));
    }

    // Nothing is admitted from now on. Relaxed: a task that was admitted before and inserts later
    // finds the bit under a lock that the closer has taken after this (task_table::insert).
    void close() noexcept { word_.fetch_or(closed_bit, std::memory_order_relaxed); }
    void restart() noexcept { word_.fetch_and(~closed_bit, std::memory_order_relaxed); }
    bool is_closed() const noexcept {
        return (word_.load(std::memory_order_relaxed) & closed_bit) != 0;  // see close()
    }

    std::size_t count() const noexcept {
        return static_cast<std::size_t>(word_.load(std::memory_order_relaxed) / one);  // a hint
    }
    bool is_empty() const noexcept {
        return word_.load(std::memory_order_acquire) < one;  // pairs with leave
    }

    // Wakes n when there is no task; false: there is none now. L2
    [[nodiscard]] bool enlist(wait_node& n) noexcept {
        const std::lock_guard held(queue_);
        std::uint64_t seen = word_.load(std::memory_order_acquire);  // pairs with leave
        do {
            if (seen < one) return false;
            if ((seen & awaited_bit) != 0) break;
            // Acquire: as above, where it fails too; the bit itself publishes nothing, the lock
            // does.
        } while (!word_.compare_exchange_weak(seen, seen | awaited_bit, std::memory_order_acquire));
        queue_.push_back(n);
        return true;
    }
    void cancel(wait_node& n) noexcept { queue_.cancel(n); }

    // After it was seen empty and closed: waits until the last leave has released the lock. L3
    void alone() noexcept { const std::lock_guard held(queue_); }

private:
    static constexpr std::uint64_t closed_bit = 1;
    static constexpr std::uint64_t awaited_bit = 2;
    static constexpr std::uint64_t one = 4;

    // More tasks may have come before the lock is taken.
    WEFT_COLD void leave_awaited() noexcept {
        wait_list woken;
        {
            const std::lock_guard held(queue_);
            std::uint64_t seen = word_.load(std::memory_order_relaxed);  // checked by the exchange
            std::uint64_t left;
            do {
                left = seen - one;
                if (left < one) left &= ~awaited_bit;  // L2
                // Release: as in leave. Acquire: pairs with the leaves before, since a waiter
                // is ordered behind this one only.
            } while (!word_.compare_exchange_weak(seen, left, std::memory_order_acq_rel,
                                                  std::memory_order_relaxed));
            if (left < one) queue_.claim_all(woken);
        }
        wait_queue::wake_all(woken);
    }

    atomic<std::uint64_t> word_{0};
    wait_queue queue_;
};

}  // namespace weft::detail
