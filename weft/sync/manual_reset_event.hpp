// manual_reset_event: an event that lets every waiter through from set() until reset().
//
// Design: set() wakes all waiters; a wait on a set event passes at once. A waiter that set() lets
// through sees what was written before that set(), also if the event was set already. A waiter that
// set() has woken passes, even if reset() follows before the waiter runs.
//
// Limits: the event does not count: a set() of a set event changes nothing. It outlives its
// waiters.
//
//   weft::manual_reset_event ready;
//   ready.wait();                     // a fiber is suspended, a thread blocks
//   co_await ready.async_wait();      // a coroutine
//   ready.set();                      // from any flow or thread
#pragma once

#include "weft/sync/detail/countdown.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class manual_reset_event {
public:
    explicit manual_reset_event(bool set = false) noexcept
        : gate_(set ? 0 : 1, "an event", unknown_caller) {}
    manual_reset_event(const manual_reset_event&) = delete;
    manual_reset_event& operator=(const manual_reset_event&) = delete;

    bool is_set() const noexcept { return gate_.is_open(); }
    void set() noexcept { gate_.set_bars(0); }
    void reset() noexcept { gate_.set_bars(1); }

    // Throws stopped.
    void wait(std::source_location caller = std::source_location::current()) {
        if (!is_set()) await(async_wait(), caller);
    }
    // True: the event was set. False: the limit was reached first. Throws stopped.
    [[nodiscard]] bool wait(time_limit limit,
                            std::source_location caller = std::source_location::current()) {
        return await(async_wait(limit), caller);
    }

    detail::countdown_operation async_wait() noexcept { return detail::countdown_operation(gate_); }
    detail::timed_gate_operation async_wait(time_limit limit) noexcept {
        return detail::timed_gate_operation(limit, gate_);
    }

private:
    detail::countdown gate_;
};

}  // namespace weft
