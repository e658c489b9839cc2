// prompted: the turns of a future that several may call for: what it waits for, a moment, an event,
// a stop.
//
// Its one idea: causes are bits of one word, and who sets the first posts the turn, which takes all
// of them. So its one runnable is never in two queues, and what comes of the causes is decided in
// one place, on one thread.
#pragma once

#include "weft/future/future_core.hpp"

namespace weft::detail {

struct prompted {
    static constexpr unsigned told_cause = 1;
    static constexpr unsigned stop_cause = 2;
    static constexpr unsigned event_cause = 4;

    future_core& core;
    runnable node;
    atomic<unsigned> causes{0};
    bool over = false;

    explicit prompted(future_core& c) noexcept : core(c) {}
    prompted(const prompted&) = delete;
    prompted& operator=(const prompted&) = delete;

    // Any thread. Release: pairs with take(), which sees what came before.
    void prompt(unsigned cause) noexcept {
        if (causes.fetch_or(cause, std::memory_order_acq_rel) == 0) core.post(node);
    }
    // By its turn: what has called for it.
    unsigned take() noexcept { return causes.exchange(0, std::memory_order_acq_rel); }

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
        if (causes.load(std::memory_order_acquire) == 0) let_go(&core);  // pairs with prompt()
    }
};

}  // namespace weft::detail
