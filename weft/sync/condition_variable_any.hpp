// condition_variable_any: releases a lock of any type and waits until another agent notifies a
// change. As std's, with time points of the steady clock or the system clock.
//
// Design: the waits of condition_variable, for every type with lock() and unlock(): a reader's
// std::shared_lock, a std::unique_lock of another mutex, a lock of your own. A coroutine waits with
// a lock that it can await: std::unique_lock and std::shared_lock of weft's mutexes.
//
// A wait ends with the lock held, also by a stop. A fiber or task that is killed in a wait leaves
// the lock unlocked: wait with an object that knows whether it owns its mutex, as std's locks do,
// and not with a mutex. The condition_variable_any exists until no waiter waits for its lock.
//
// Limits: unlock() of the lock neither suspends nor throws. lock() may suspend; if it throws, the
// wait ends with that exception, and without the lock. A lock that blocks the thread, such as that
// of a std::mutex, does so in a fiber too. A recursive_mutex is unlocked once: a wait with a
// greater depth lets no other agent in.
//
//   std::shared_lock reads(m);                          // m is a weft::shared_mutex
//   changed.wait(reads, [&] { return is_ready; });
//
//   while (!is_ready) co_await changed.async_wait(reads);      // in a coroutine
//
// Model: test/model/condition_variable_test.cpp
#pragma once

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <utility>

#include "weft/stop/stop_token.hpp"
#include "weft/sync/detail/condition_queue.hpp"

namespace weft {

class condition_variable_any {
public:
    condition_variable_any() noexcept = default;
    condition_variable_any(const condition_variable_any&) = delete;
    condition_variable_any& operator=(const condition_variable_any&) = delete;

    void notify_one() noexcept { queue_.notify_one(); }
    void notify_all() noexcept { queue_.notify_all(); }

    // All waits throw stopped, with the lock held.
    template <class Lock>
    void wait(Lock& lock, std::source_location caller = std::source_location::current()) {
        block(lock, never, stop_token(), caller);
    }
    template <class Lock, std::predicate Predicate>
    void wait(Lock& lock, Predicate p,
              std::source_location caller = std::source_location::current()) {
        while (!p()) wait(lock, caller);
    }

    template <class Lock, class Clock, class Duration>
    std::cv_status wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> t,
                              std::source_location caller = std::source_location::current()) {
        return block(lock, detail::deadline_of(time_limit(t)), stop_token(), caller);
    }
    // Returns the predicate's last value.
    template <class Lock, class Clock, class Duration, std::predicate Predicate>
    bool wait_until(Lock& lock, std::chrono::time_point<Clock, Duration> t, Predicate p,
                    std::source_location caller = std::source_location::current()) {
        const time_point deadline = detail::deadline_of(time_limit(t));
        while (!p())
            if (block(lock, deadline, stop_token(), caller) == std::cv_status::timeout) return p();
        return true;
    }
    template <class Lock, class Rep, class Period>
    std::cv_status wait_for(Lock& lock, std::chrono::duration<Rep, Period> d,
                            std::source_location caller = std::source_location::current()) {
        return wait_until(lock, after(now(), d), caller);
    }
    template <class Lock, class Rep, class Period, std::predicate Predicate>
    bool wait_for(Lock& lock, std::chrono::duration<Rep, Period> d, Predicate p,
                  std::source_location caller = std::source_location::current()) {
        return wait_until(lock, after(now(), d), std::move(p), caller);
    }

    // A stop request of the token ends these waits too, and then they return the predicate's value
    // and do not throw.
    template <class Lock, std::predicate Predicate>
    bool wait(Lock& lock, stop_token token, Predicate p,
              std::source_location caller = std::source_location::current()) {
        return wait_until(lock, token, never, std::move(p), caller);
    }
    template <class Lock, class Clock, class Duration, std::predicate Predicate>
    bool wait_until(Lock& lock, stop_token token, std::chrono::time_point<Clock, Duration> t,
                    Predicate p, std::source_location caller = std::source_location::current()) {
        const time_point deadline = detail::deadline_of(time_limit(t));
        while (!token.stop_requested()) {
            if (p()) return true;
            if (block(lock, deadline, token, caller) == std::cv_status::timeout) break;
        }
        return p();
    }
    template <class Lock, class Rep, class Period, std::predicate Predicate>
    bool wait_for(Lock& lock, stop_token token, std::chrono::duration<Rep, Period> d, Predicate p,
                  std::source_location caller = std::source_location::current()) {
        return wait_until(lock, token, after(now(), d), std::move(p), caller);
    }

    // For co_await: the first returns nothing, the second a cv_status.
    template <detail::awaitable_lock Lock>
    detail::condition_wait_operation<Lock, void> async_wait(
        Lock& lock, std::source_location caller = std::source_location::current()) noexcept {
        return {queue_, lock, {}, caller};
    }
    template <detail::awaitable_lock Lock>
    detail::condition_wait_operation<Lock, std::cv_status> async_wait(
        Lock& lock, time_limit limit,
        std::source_location caller = std::source_location::current()) noexcept {
        return {queue_, lock, limit, caller};
    }

private:
    template <class Lock>
    std::cv_status block(Lock& lock, time_point until, stop_token token,
                         std::source_location caller) {
        return detail::block_for_condition(queue_, lock, until, token, caller);
    }

    detail::condition_queue queue_;
};

}  // namespace weft
