// counting_semaphore, binary_semaphore: limits the count of callers that go on at a time. As std's,
// for fibers, coroutines and threads.
//
// Design: a released permit goes to the waiter that has waited longest.
//
// Limits: a release() above the maximum aborts the program. A permit has no owner: any agent may
// release it. The semaphore outlives its waiters.
//
//   weft::counting_semaphore<> connections(8);
//   connections.acquire();
//   ...
//   connections.release();
#pragma once

#include <cstddef>

#include "weft/sync/detail/semaphore_core.hpp"
#include "weft/wait/await.hpp"

namespace weft {

template <std::ptrdiff_t LeastMax = static_cast<std::ptrdiff_t>(detail::semaphore_core::most)>
class counting_semaphore {
    static_assert(LeastMax >= 0 &&
                  LeastMax <= static_cast<std::ptrdiff_t>(detail::semaphore_core::most));

public:
    static constexpr std::ptrdiff_t max() noexcept { return LeastMax; }

    explicit counting_semaphore(
        std::ptrdiff_t desired,
        std::source_location caller = std::source_location::current()) noexcept
        : permits_(static_cast<std::size_t>(desired), static_cast<std::size_t>(LeastMax),
                   "a semaphore") {
        WEFT_ASSERT_AT(desired >= 0 && desired <= LeastMax,
                       "a semaphore begins outside of its range", caller);
    }
    counting_semaphore(const counting_semaphore&) = delete;
    counting_semaphore& operator=(const counting_semaphore&) = delete;

    void release(std::ptrdiff_t update = 1,
                 std::source_location caller = std::source_location::current()) noexcept {
        WEFT_ASSERT_AT(update >= 0, "release of a semaphore by less than nothing", caller);
        permits_.release(static_cast<std::size_t>(update), caller);
    }
    // Throws stopped.
    void acquire(std::source_location caller = std::source_location::current()) {
        if (!try_acquire()) await(async_acquire(), caller);
    }
    // A loop around it starves the executor.
    [[nodiscard]] bool try_acquire() noexcept { return permits_.try_acquire(); }
    // False when the time is up. The time points are those of the steady clock or the system clock.
    // Throws stopped.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(
        std::chrono::time_point<Clock, Duration> t,
        std::source_location caller = std::source_location::current()) {
        return await(async_acquire(t), caller);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(
        std::chrono::duration<Rep, Period> d,
        std::source_location caller = std::source_location::current()) {
        return await(async_acquire(d), caller);
    }

    detail::acquire_operation async_acquire() noexcept {
        return detail::acquire_operation(permits_);
    }
    detail::timed_acquire_operation async_acquire(time_limit limit) noexcept {
        return detail::timed_acquire_operation(limit, permits_);
    }

private:
    detail::semaphore_core permits_;
};

using binary_semaphore = counting_semaphore<1>;

}  // namespace weft
