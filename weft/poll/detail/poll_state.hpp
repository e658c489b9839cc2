// poll_state: the state word that the producer and the waiter of a poll_future share.
//
//                    enlist(w)                  publish()
//      pending <------------------> awaited(w) ----------> busy ----> ready
//         |          cancel(w)                               w is claimed there
//         +-------------------------- publish() ---------------------> ready
//      pending <-- rearm() ------------------------------------------- ready
//
// Design: at most one waiter awaits, so the word itself is the queue and its lock. A value without
// a waiter is published by one step. `busy` lasts a few instructions, and occurs only where a value
// is published to a waiter: a cancel() at that time spins until `busy` ends, and the waiter is
// not touched afterwards (W2 of waiter.hpp).
//
// The last access of publish() to the word makes it ready, so an agent that sees `ready` may
// destroy the word.
//
// Model: test/model/poll_state_test.cpp
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"
#include "weft/wait/waiter.hpp"

namespace weft::detail {

class poll_state {
public:
    // Acquire: pairs with publish().
    bool is_ready() const noexcept { return word_.load(std::memory_order_acquire) == ready; }
    // Relaxed: the caller excludes a concurrent enlist(), cancel() and publish().
    bool is_awaited() const noexcept {
        const std::uintptr_t w = word_.load(std::memory_order_relaxed);
        return w != pending && w != ready;
    }

    // Makes what was written before available to the waiter. Any thread, but one at a time.
    void publish() noexcept {
        std::uintptr_t seen = pending;
        // Release: pairs with is_ready() and enlist(). This step reads nothing of a waiter that it
        // finds.
        if (!word_.compare_exchange_strong(seen, ready, std::memory_order_release,
                                           std::memory_order_relaxed)) [[unlikely]]
            publish_to_waiter(seen);
    }

    // Called by the waiter. False: the word is ready already.
    [[nodiscard]] bool enlist(waiter& w) noexcept {
        std::uintptr_t seen = pending;
        // Release: pairs with publish_to_waiter().
        if (word_.compare_exchange_strong(seen, word_of(w), std::memory_order_release,
                                          std::memory_order_relaxed))
            return true;
        if (!is_ready()) refuse_second(w);
        return false;
    }

    // Called when the wait of w has ended for another reason, or is complete.
    void cancel(waiter& w) noexcept {
        std::uintptr_t seen = word_of(w);
        // Relaxed: if the exchange succeeds, publish() has not touched w.
        if (word_.compare_exchange_strong(seen, pending, std::memory_order_relaxed)) return;
        // Acquire: pairs with publish_to_waiter(), which no longer uses w then.
        while (word_.load(std::memory_order_acquire) == busy) spin_pause();
    }

    // Called by the agent that took the value. Release: pairs with is_ready() in the producer of
    // the next value.
    void rearm() noexcept { word_.store(pending, std::memory_order_release); }

private:
    static constexpr std::uintptr_t pending = 0;
    static constexpr std::uintptr_t ready = 1;
    static constexpr std::uintptr_t busy = 2;

    static std::uintptr_t word_of(waiter& w) noexcept {
        return reinterpret_cast<std::uintptr_t>(&w);
    }
    void publish_to_waiter(std::uintptr_t seen) noexcept;
    [[noreturn]] static void refuse_second(waiter& w) noexcept;

    atomic<std::uintptr_t> word_{pending};
};

}  // namespace weft::detail
