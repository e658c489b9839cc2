// condition_variable: releases a mutex and waits until another agent notifies a change. As std's,
// with weft::mutex and with time points of the steady clock.
//
// Design: each wait is two waits, for the notification and then for the mutex. The second wait
// cannot be stopped, so a wait always ends with the mutex locked, even if it ends by an exception.
// No waiter wakes without a notification, a deadline or a stop, but the condition may have changed
// again before the waiter has the mutex: use a predicate.
//
//   std::unique_lock lock(m);
//   changed.wait(lock, [&] { return !queue.empty(); });
//
//   while (queue.empty()) co_await changed.async_wait(lock);    // in a coroutine
//
// If the frame of a notified waiter is destroyed before the waiter has the mutex, the notification
// goes to the next waiter. The condition_variable must therefore exist until no waiter waits for
// the mutex either.
//
// Model: test/model/condition_variable_test.cpp
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/stop/stop_token.hpp"
#include "weft/sync/mutex.hpp"

namespace weft {

class condition_variable;

namespace detail {

// A node in the queue. `given`: notify_one() chose this node; the destructor passes an unused
// notification to the next waiter.
struct notice : queue_node {
    explicit notice(condition_variable& c) noexcept : condition(&c) {}
    ~notice() {
        if (given) [[unlikely]]
            hand_on();
    }
    void hand_on() noexcept;

    condition_variable* const condition;
};

// Both waits of a coroutine in sequence: the first wait resumes this frame, which begins the second
// wait, which resumes the coroutine.
class condition_awaiter : frame {
public:
    condition_awaiter(condition_variable& c, std::unique_lock<mutex>& lock, time_point until,
                      std::source_location caller) noexcept;
    condition_awaiter(const condition_awaiter&) = delete;
    condition_awaiter& operator=(const condition_awaiter&) = delete;
    ~condition_awaiter();

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> h);

protected:
    wait_status finish();  // returns or throws stopped with the mutex locked

private:
    static void notified(frame* f);
    static void drop(frame* f) { static_cast<condition_awaiter*>(f)->awaiting_.destroy(); }
    bool begin_lock();  // false: this wait has the mutex already
    waiter& make(std::optional<waiter>& w) noexcept;
    void unshield() noexcept;

    std::unique_lock<mutex>& lock_;
    mutex* mutex_ = nullptr;  // while the mutex is released
    const time_point until_;
    const std::source_location caller_;  // of the call, for messages
    wait_status status_ = wait_status::woken;
    stop_reason reason_ = stop_reason::none;
    std::coroutine_handle<> awaiting_;
    flow* flow_ = nullptr;
    bool shielded_ = false;
    notice notice_;
    std::optional<lock_operation> locking_;
    std::optional<waiter> for_notice_;
    std::optional<waiter> for_lock_;
};

// Result is the type that the wait returns: void or cv_status.
template <class Result>
class typed_condition_awaiter : public condition_awaiter {
public:
    using condition_awaiter::condition_awaiter;
    Result await_resume() {
        const wait_status how = finish();
        if constexpr (!std::is_void_v<Result>)
            return how == wait_status::woken ? Result::no_timeout : Result::timeout;
    }
};

// A wait that is not awaited yet.
template <class Result>
class [[nodiscard]] condition_wait {
public:
    condition_wait(condition_variable& c, std::unique_lock<mutex>& lock, time_point until,
                   std::source_location caller) noexcept
        : condition_(&c), lock_(&lock), until_(until), caller_(caller) {}
    typed_condition_awaiter<Result> operator co_await() const noexcept {
        return {*condition_, *lock_, until_, caller_};
    }

private:
    condition_variable* condition_;
    std::unique_lock<mutex>* lock_;
    time_point until_;
    std::source_location caller_;
};

}  // namespace detail

class condition_variable {
public:
    condition_variable() noexcept : queue_(0) {}
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;

    void notify_one() noexcept;
    void notify_all() noexcept;

    // All waits throw stopped, with the mutex held.
    void wait(std::unique_lock<mutex>& lock,
              std::source_location caller = std::source_location::current()) {
        wait_until(lock, never, caller);
    }
    template <class Predicate>
    void wait(std::unique_lock<mutex>& lock, Predicate p,
              std::source_location caller = std::source_location::current()) {
        while (!p()) wait(lock, caller);
    }

    std::cv_status wait_until(std::unique_lock<mutex>& lock, time_point deadline,
                              std::source_location caller = std::source_location::current()) {
        return block(lock, deadline, stop_token(), caller);
    }
    // Returns the predicate's last value.
    template <class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock, time_point deadline, Predicate p,
                    std::source_location caller = std::source_location::current()) {
        while (!p())
            if (wait_until(lock, deadline, caller) == std::cv_status::timeout) return p();
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
    template <class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock, stop_token token, time_point deadline,
                    Predicate p, std::source_location caller = std::source_location::current()) {
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
    detail::condition_wait<void> async_wait(
        std::unique_lock<mutex>& lock,
        std::source_location caller = std::source_location::current()) noexcept {
        return {*this, lock, never, caller};
    }
    detail::condition_wait<std::cv_status> async_wait_until(
        std::unique_lock<mutex>& lock, time_point deadline,
        std::source_location caller = std::source_location::current()) noexcept {
        return {*this, lock, deadline, caller};
    }

private:
    friend class detail::condition_awaiter;

    std::cv_status block(std::unique_lock<mutex>& lock, time_point until, stop_token token,
                         std::source_location caller);
    // Queues n before the mutex is unlocked, so that a notification between the two is not missed.
    void enlist_and_release(detail::notice& n, waiter& w, mutex& m,
                            std::source_location caller) noexcept;
    void notify(detail::notice& n) noexcept;  // wakes n's waiter if it still waits

    detail::atomic_wait_queue queue_;
};

}  // namespace weft
