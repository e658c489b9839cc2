// multi_source_core: the turns of a future that has several causes: an awaited future, a deadline,
// an event, a stop.
//
// Design: one word holds all requests for a turn: causes, which are bits, and a stack of the
// members that have ended. The request that makes the word non-zero posts the turn, and the turn
// takes the whole word. The one runnable is therefore never in two queues, and the causes are
// handled in one place, on one thread.
//
//      word:  | the member pushed last -> ... | event | stop | notified |      zero: no turn is due
//
// Invariants:
// P1  to record a cause and to request a turn is one store: a caller that finds a turn due touches
//     nothing after that store
// P2  a caller that has made the word non-zero owes the post, and the future ends with the turn
//     that the caller owes, or later
//
// Model: test/model/future_group_test.cpp
#pragma once

#include "weft/future/detail/future_core.hpp"

namespace weft::detail {

struct multi_source_core {
    static constexpr unsigned notified_cause = 1;
    static constexpr unsigned stop_cause = 2;
    static constexpr unsigned event_cause = 4;

    // One of several awaited members, on the stack of the word.
    struct alignas(8) caller {
        caller* next = nullptr;
    };
    struct calls {
        unsigned causes;
        caller* last;  // the earlier callers follow by `next`
    };

    future_core& core;
    runnable node;
    bool over = false;

    explicit multi_source_core(future_core& c) noexcept : core(c) {}
    multi_source_core(const multi_source_core&) = delete;
    multi_source_core& operator=(const multi_source_core&) = delete;

    // Any thread. Release, both: pairs with take(), which sees what came before; acquire: with the
    // take() that left zero, whose turn is over before the next is posted. P1, P2
    void prompt(unsigned cause) noexcept {
        if (word_.fetch_or(cause, std::memory_order_acq_rel) == 0) core.post(node);
    }
    void prompt(caller& c) noexcept {
        bits before = word_.load(std::memory_order_relaxed);  // a guess, tested by the exchange
        do c.next = reinterpret_cast<caller*>(before & ~flags);
        // Acquire and release: as above. Relaxed on failure: another guess.
        while (!word_.compare_exchange_weak(before, (before & flags) | reinterpret_cast<bits>(&c),
                                            std::memory_order_acq_rel, std::memory_order_relaxed));
        if (before == 0) core.post(node);
    }
    // Called by the turn: takes all causes and callers. Acquire and release: pairs with prompt().
    calls take() noexcept {
        const bits word = word_.exchange(0, std::memory_order_acq_rel);
        return {static_cast<unsigned>(word & flags), reinterpret_cast<caller*>(word & ~flags)};
    }

    // From now on a stop requests a turn. Returns the reason of a stop that was requested already.
    [[nodiscard]] stop_reason open() noexcept {
        core.target = this;
        core.manner = manner::is_prompted;
        return core.stops.open();
    }

    // Called when the outcome is stored, and no other agent requests a turn any more. If a turn is
    // due already, that turn releases the core.
    void finish() noexcept {
        if (core.manner != manner::plain) {
            core.stops.close();
            core.manner = manner::plain;
        }
        core.publish();
        over = true;
        if (word_.load(std::memory_order_acquire) == 0) release(&core);  // pairs with prompt(). P2
    }

private:
    using bits = std::uintptr_t;
    static constexpr bits flags = notified_cause | stop_cause | event_cause;
    static_assert(alignof(caller) > flags);

    atomic<bits> word_{0};
};

}  // namespace weft::detail
