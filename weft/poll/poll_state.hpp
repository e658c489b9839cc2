// poll_state: the word in which who sets a poll_future and who awaits it meet.
//
//                    enlist(w)                  publish()
//      pending <------------------> awaited(w) ----------> busy ----> ready
//         |          withdraw(w)                             w is claimed there
//         +-------------------------- publish() ---------------------> ready
//      pending <-- renew() ------------------------------------------- ready
//
// Its one idea: there is at most one who awaits, so the word itself is the queue and its lock. A
// value that nobody awaits yet is published by one step. `busy` lasts a few instructions, and only
// where it is published to somebody: a withdrawal that comes then waits for its end, after which
// the waiter is left alone (W2 of waiter.hpp).
//
// The last thing that publish() does to the word is to make it ready; so who sees that may destroy
// it.
//
// Model: test/model/poll_state_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/atomic.hpp"
#include "weft/base/platform.hpp"
#include "weft/wait/waiter.hpp"

namespace weft::detail {

class poll_state {
public:
    // Acquire: pairs with publish().
    bool is_ready() const noexcept { return word_.load(std::memory_order_acquire) == ready; }
    // Relaxed: asked by who sees to it that nobody comes or goes.
    bool is_awaited() const noexcept {
        const std::uintptr_t w = word_.load(std::memory_order_relaxed);
        return w != pending && w != ready;
    }

    // What was written before is there to be taken. Any thread, but one at a time.
    void publish() noexcept {
        std::uintptr_t seen = pending;
        // Release: pairs with is_ready() and enlist(). Nothing is read of a waiter that is found
        // here.
        if (!word_.compare_exchange_strong(seen, ready, std::memory_order_release,
                                           std::memory_order_relaxed)) [[unlikely]]
            publish_to_waiter(seen);
    }

    // By who awaits. False: it is ready.
    [[nodiscard]] bool enlist(waiter& w) noexcept {
        std::uintptr_t seen = pending;
        // Release: pairs with publish_to_waiter().
        if (word_.compare_exchange_strong(seen, word_of(w), std::memory_order_release,
                                          std::memory_order_relaxed))
            return true;
        if (!is_ready()) refuse_second(w);
        return false;
    }

    // The wait of w has ended otherwise, or is through.
    void withdraw(waiter& w) noexcept {
        std::uintptr_t seen = word_of(w);
        // Relaxed: where it was in time, w was not touched.
        if (word_.compare_exchange_strong(seen, pending, std::memory_order_relaxed)) return;
        // Acquire: pairs with publish_to_waiter(), which is through with w then.
        while (word_.load(std::memory_order_acquire) == busy) spin_pause();
    }

    // By who took what was there. Release: pairs with is_ready() of who sets the next.
    void renew() noexcept { word_.store(pending, std::memory_order_release); }

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
