// condition_variable: releases a mutex and waits until another agent notifies a change. As std's,
// with weft::mutex, and with time points of the steady clock or the system clock.
//
// Design: each wait is two waits, for the notification and then for the mutex. The second wait
// cannot be stopped, so a wait always ends with the mutex locked, even if it ends by an exception.
// No waiter wakes without a notification, a deadline or a stop, but the condition may have changed
// again before the waiter has the mutex: use a predicate.
//
// Limits: if the frame of a notified waiter is destroyed before the waiter has the mutex, the
// notification goes to the next waiter. The condition_variable must therefore exist until no waiter
// waits for the mutex either. For another lock than a std::unique_lock<weft::mutex> there is
// condition_variable_any.
//
//   std::unique_lock lock(m);
//   changed.wait(lock, [&] { return !queue.empty(); });
//
//   while (queue.empty()) co_await changed.async_wait(lock);    // in a coroutine
//
// Model: test/model/condition_variable_test.cpp
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "weft/stop/stop_token.hpp"
#include "weft/sync/detail/condition_queue.hpp"
#include "weft/sync/mutex.hpp"

namespace weft {

class condition_variable {
public:
    condition_variable() noexcept = default;
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;

    void notify_one() noexcept { queue_.notify_one(); }
    void notify_all() noexcept { queue_.notify_all(); }

    // All waits throw stopped, with the mutex held.
    void wait(std::unique_lock<mutex>& lock,
              std::source_location caller = std::source_location::current()) {
        block(lock, never, stop_token(), caller);
    }
    template <class Predicate>
    void wait(std::unique_lock<mutex>& lock, Predicate p,
              std::source_location caller = std::source_location::current()) {
        while (!p()) wait(lock, caller);
    }

    template <class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<mutex>& lock,
                              std::chrono::time_point<Clock, Duration> t,
                              std::source_location caller = std::source_location::current()) {
        return block(lock, detail::deadline_of(time_limit(t)), stop_token(), caller);
    }
    // Returns the predicate's last value.
    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock, std::chrono::time_point<Clock, Duration> t,
                    Predicate p, std::source_location caller = std::source_location::current()) {
        const time_point deadline = detail::deadline_of(time_limit(t));
        while (!p())
            if (block(lock, deadline, stop_token(), caller) == std::cv_status::timeout) return p();
        return true;
    }
    template <class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> d,
                            std::source_location caller = std::source_location::current()) {
        return wait_until(lock, after(now(), d), caller);
    }
    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> d, Predicate p,
                  std::source_location caller = std::source_location::current()) {
        return wait_until(lock, after(now(), d), std::move(p), caller);
    }

    // A stop request of the token ends these waits too, and then they return the predicate's value
    // and do not throw.
    template <class Predicate>
    bool wait(std::unique_lock<mutex>& lock, stop_token token, Predicate p,
              std::source_location caller = std::source_location::current()) {
        return wait_until(lock, token, never, std::move(p), caller);
    }
    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock, stop_token token,
                    std::chrono::time_point<Clock, Duration> t, Predicate p,
                    std::source_location caller = std::source_location::current()) {
        const time_point deadline = detail::deadline_of(time_limit(t));
        while (!token.stop_requested()) {
            if (p()) return true;
            if (block(lock, deadline, token, caller) == std::cv_status::timeout) break;
        }
        return p();
    }
    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex>& lock, stop_token token,
                  std::chrono::duration<Rep, Period> d, Predicate p,
                  std::source_location caller = std::source_location::current()) {
        return wait_until(lock, token, after(now(), d), std::move(p), caller);
    }

    // For co_await: the first returns nothing, the second a cv_status.
    detail::condition_wait_operation<std::unique_lock<mutex>, void> async_wait(
        std::unique_lock<mutex>& lock,
        std::source_location caller = std::source_location::current()) noexcept {
        return {queue_, lock, {}, caller};
    }
    detail::condition_wait_operation<std::unique_lock<mutex>, std::cv_status> async_wait(
        std::unique_lock<mutex>& lock, time_limit limit,
        std::source_location caller = std::source_location::current()) noexcept {
        return {queue_, lock, limit, caller};
    }

private:
    std::cv_status block(std::unique_lock<mutex>& lock, time_point until, stop_token token,
                         std::source_location caller) {
        return detail::block_for_condition(queue_, lock, until, token, caller);
    }

    detail::condition_queue queue_;
};

}  // namespace weft
