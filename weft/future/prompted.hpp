// prompted: the turns of a future that several may call for: what it waits for, a moment, an event,
// a stop.
//
// Its one idea: all that calls for a turn is one word: causes, which are bits, and a stack of the
// members that have ended. The call that makes it non-zero posts the turn, which takes all of it.
// So its one runnable is never in two queues, and what comes of the causes is decided in one place,
// on one thread.
//
//      word:  | the member pushed last -> ... | event | stop | told |      zero: no turn is due
//
// Invariants:
// P1  to tell and to call are one store: a caller that finds a turn due touches nothing after it
// P2  a caller that has made the word non-zero owes the post, and the future ends with the turn
//     that it owes, or later
//
// Model: test/model/future_group_test.cpp
#pragma once

#include "weft/future/future_core.hpp"

namespace weft::detail {

struct prompted {
    static constexpr unsigned told_cause = 1;
    static constexpr unsigned stop_cause = 2;
    static constexpr unsigned event_cause = 4;

    // One of several that are waited for, on the stack.
    struct caller {
        caller* next = nullptr;
    };
    struct calls {
        unsigned causes;
        caller* last;  // the others behind it
    };

    future_core& core;
    runnable node;
    bool over = false;

    explicit prompted(future_core& c) noexcept : core(c) {}
    prompted(const prompted&) = delete;
    prompted& operator=(const prompted&) = delete;

    // Any thread. Release: pairs with take(), which sees what came before. P1, P2
    void prompt(unsigned cause) noexcept {
        if (word_.fetch_or(cause, std::memory_order_acq_rel) == 0) core.post(node);
    }
    void prompt(caller& c) noexcept {
        bits before = word_.load(std::memory_order_relaxed);
        do c.next = reinterpret_cast<caller*>(before & ~flags);
        while (!word_.compare_exchange_weak(before, (before & flags) | reinterpret_cast<bits>(&c),
                                            std::memory_order_acq_rel, std::memory_order_relaxed));
        if (before == 0) core.post(node);
    }
    // By its turn: what has called for it. Acquire: pairs with prompt().
    calls take() noexcept {
        const bits word = word_.exchange(0, std::memory_order_acq_rel);
        return {static_cast<unsigned>(word & flags), reinterpret_cast<caller*>(word & ~flags)};
    }

    // A stop calls for a turn from now on. Why it was asked for already.
    [[nodiscard]] stop_reason open() noexcept {
        core.target = this;
        core.manner = manner::is_prompted;
        return core.stops.open();
    }

    // The outcome is in its place, and nobody else calls for a turn any more. One that was called
    // for by then lets go.
    void finish() noexcept {
        if (core.manner != manner::plain) {
            core.stops.close();
            core.manner = manner::plain;
        }
        core.publish();
        over = true;
        if (word_.load(std::memory_order_acquire) == 0) let_go(&core);  // pairs with prompt(). P2
    }

private:
    using bits = std::uintptr_t;
    static constexpr bits flags = told_cause | stop_cause | event_cause;
    static_assert(alignof(caller) > flags);

    atomic<bits> word_{0};
};

}  // namespace weft::detail
