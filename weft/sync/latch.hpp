// latch: a count that falls to zero once. As std's, for fibers, coroutines and threads.
//
// Design: a count, and a queue of waiters that are all woken when it is zero.
//
// Limits: the count never grows, so a latch is used once: wait_group and barrier are used again. A
// count below zero aborts. The latch outlives its waiters.
//
//   weft::latch all_up(3);
//   all_up.count_down();          // three times, from any flow or thread
//   all_up.wait();
#pragma once

#include <cstddef>

#include "weft/sync/detail/countdown.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class latch {
public:
    static constexpr std::ptrdiff_t max() noexcept {
        return static_cast<std::ptrdiff_t>(detail::countdown::most);
    }

    explicit latch(std::ptrdiff_t expected,
                   std::source_location caller = std::source_location::current()) noexcept
        : gate_(count_of(expected, caller), "a latch", caller) {}
    latch(const latch&) = delete;
    latch& operator=(const latch&) = delete;

    // Aborts if the count falls below zero.
    void count_down(std::ptrdiff_t n = 1,
                    std::source_location caller = std::source_location::current()) noexcept {
        WEFT_ASSERT_AT(n >= 0, "a latch is counted down by less than nothing", caller);
        gate_.remove(static_cast<std::size_t>(n), caller);
    }
    // A loop around it starves the executor.
    bool try_wait() const noexcept { return gate_.is_open(); }
    // These throw stopped.
    void wait(std::source_location caller = std::source_location::current()) {
        if (!try_wait()) await(async_wait(), caller);
    }
    void arrive_and_wait(std::ptrdiff_t n = 1,
                         std::source_location caller = std::source_location::current()) {
        count_down(n, caller);
        wait(caller);
    }
    // True: the count is zero. False: the limit was reached first. Throws stopped.
    [[nodiscard]] bool wait(time_limit limit,
                            std::source_location caller = std::source_location::current()) {
        return await(async_wait(limit), caller);
    }

    detail::countdown_operation async_wait() noexcept { return detail::countdown_operation(gate_); }
    detail::timed_gate_operation async_wait(time_limit limit) noexcept {
        return detail::timed_gate_operation(limit, gate_);
    }

private:
    static std::size_t count_of(std::ptrdiff_t expected, std::source_location caller) noexcept {
        WEFT_ASSERT_AT(expected >= 0, "a latch begins outside of its range", caller);
        return static_cast<std::size_t>(expected);
    }

    detail::countdown gate_;
};

}  // namespace weft
