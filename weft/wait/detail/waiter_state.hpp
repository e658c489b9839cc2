// waiter_state: the word that decides how a wait ends.
//
//                    claim(woken)      the event, any thread, under the lock of its queue
//      pending ----- claim(timed_out)  the deadline, on the waiter's own thread
//                \-- claim(stopped)    a stop, or the end of a frame, on the waiter's own thread
//
// The first claim wins, and only its caller may go on to wake; the others leave the waiter alone. A
// pending word does not say that the waiter's flow has left its stack. It need not: a wake is
// posted to the executor that runs the flow, and that executor runs the wake after the flow has
// suspended (executor.hpp). So a wake before the suspension is neither lost nor too early.
//
// Model: test/model/waiter_state_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/wait/wait_status.hpp"

namespace weft::detail {

class waiter_state {
public:
    // True for one caller, which thereby ends the wait.
    [[nodiscard]] bool claim(wait_status how) noexcept {
        std::uint8_t expected = pending;
        // Release: pairs with is_pending() of a thread that polls it. What the waiter wrote before
        // it enlisted is published by the lock of its queue. Relaxed on failure: nothing is read.
        return word_.compare_exchange_strong(expected, static_cast<std::uint8_t>(how),
                                             std::memory_order_release, std::memory_order_relaxed);
    }

    // The same where it is pending and no other thread can claim it now (waiter.hpp, W5). Release:
    // as in claim.
    void claim_alone(wait_status how) noexcept {
        word_.store(static_cast<std::uint8_t>(how), std::memory_order_release);
    }

    // Acquire: pairs with claim.
    bool is_pending() const noexcept { return word_.load(std::memory_order_acquire) == pending; }

    // For a waiter that was run. It may be unclaimed, where another word decides about its run:
    // then it was woken. Relaxed: the post that brought the waiter back ordered it.
    wait_status status() const noexcept {
        const std::uint8_t seen = word_.load(std::memory_order_relaxed);
        return seen == pending ? wait_status::woken : static_cast<wait_status>(seen);
    }

    // Called by its owner, while it is in no queue. Relaxed: the lock of the next queue publishes
    // it.
    void rearm() noexcept { word_.store(pending, std::memory_order_relaxed); }

private:
    static constexpr std::uint8_t pending = 0;
    atomic<std::uint8_t> word_{pending};
};

}  // namespace weft::detail
