// auto_reset_event: an event that lets one waiter through for each set().
//
// Design: set() lets the waiter through that has waited longest; without a waiter, the next call
// that waits passes.
//
// Limits: two calls of set() with no wait in between let one waiter through, and that waiter sees
// what was written before either call. The event outlives its waiters.
//
//   weft::auto_reset_event work;
//   for (;;) { work.wait(); drain(queue); }      // one consumer
//   push(queue, item); work.set();               // any number of producers
#pragma once

#include "weft/sync/detail/semaphore_core.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class auto_reset_event {
public:
    explicit auto_reset_event(bool set = false) noexcept : permits_(set ? 1 : 0, 1, "an event") {}
    auto_reset_event(const auto_reset_event&) = delete;
    auto_reset_event& operator=(const auto_reset_event&) = delete;

    bool is_set() const noexcept { return permits_.free() != 0; }
    void set() noexcept { permits_.release_within_limit(); }
    void reset() noexcept { permits_.clear(); }

    // Throws stopped.
    void wait(std::source_location caller = std::source_location::current()) {
        if (!try_wait()) await(async_wait(), caller);
    }
    [[nodiscard]] bool try_wait() noexcept { return permits_.try_acquire(); }
    // True: the event was set. False: the limit was reached first. Throws stopped.
    [[nodiscard]] bool wait(time_limit limit,
                            std::source_location caller = std::source_location::current()) {
        return await(async_wait(limit), caller);
    }

    detail::acquire_operation async_wait() noexcept { return detail::acquire_operation(permits_); }
    detail::timed_acquire_operation async_wait(time_limit limit) noexcept {
        return detail::timed_acquire_operation(limit, permits_);
    }

private:
    detail::semaphore_core permits_;
};

}  // namespace weft
