// mutex: one owner at a time. As std::timed_mutex, for fibers, coroutines and threads.
//
// Design: unlock() passes ownership to the waiter that has waited longest. That waiter owns the
// mutex before it resumes, so a later caller cannot barge ahead. Without contention, lock() and
// unlock() are one atomic operation each.
//
//      lock()    0 ---------> owner              no waiter: the word is the owner, or 0
//      unlock()  owner -----> 0
//      unlock()  owner + waiters -----> the first waiter (+ waiters)      and posts that waiter
//
// The owner is a fiber, a thread, or a task with all that the task awaits. An unlock by another
// agent, or a second lock by the owner, aborts the program, and the message names both agents.
// A fiber or task that ends while it owns a mutex aborts the program too. Coroutines that user code
// resumes may lock a mutex side by side; their owner is unknown and not checked (lock_owner.hpp).
//
// Limits: try_lock() never suspends. A fiber that calls try_lock() in a loop keeps its thread, and
// an owner that needs that thread never reaches its unlock: use lock(), or yield between two
// attempts. A debug build reports a fiber that fails very often in one iteration of its loop.
//
// Works with std::lock_guard, unique_lock and scoped_lock; a coroutine writes
//
//   const auto held = co_await m.async_scoped_lock();     // a std::unique_lock
//
// Model: test/model/locks_test.cpp
#pragma once

#include <mutex>

#include "weft/sync/detail/lock_owner.hpp"
#include "weft/sync/detail/scoped_lock_operation.hpp"
#include "weft/sync/detail/timed.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class mutex;

namespace detail {

class [[nodiscard]] lock_operation {
public:
    static constexpr bool reports_stop = false;

    lock_operation(mutex& m, std::source_location caller) noexcept : mutex_(&m), caller_(caller) {}
    // Only before the operation is awaited.
    lock_operation(lock_operation&& other) noexcept
        : lock_operation(*other.mutex_, other.caller_) {}
    lock_operation& operator=(const lock_operation&) = delete;
    ~lock_operation();

    bool ready() noexcept;
    bool blocking_ready() noexcept;
    bool start(waiter& w) noexcept { return start(w, false); }
    void take(const waiter* w, wait_status how) {
        if (std::exchange(node_.given, false) && node_.as != anonymous_owner) count_lock(1);
        if (how == wait_status::stopped) throw_stopped(w->reason());
    }

protected:
    bool start(waiter& w, bool gives_up) noexcept;
    std::source_location caller() const noexcept { return caller_; }

private:
    friend class weft::mutex;
    struct node : queue_node {
        lock_owner as = 0;  // this waiter's value as owner
    };

    mutex* mutex_;
    std::source_location caller_;  // of the call, for messages
    node node_;
};

class [[nodiscard]] timed_lock_operation : public timed<lock_operation> {
public:
    using timed::timed;
    bool start(waiter& w) noexcept { return lock_operation::start(w, true); }
};

}  // namespace detail

class mutex {
public:
    constexpr mutex() noexcept : queue_(0) {}
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    // Aborts if the mutex is held.
    ~mutex() {
        if (const auto held = queue_.load()) [[unlikely]]
            detail::fail_not_owner("a mutex is destroyed", detail::lock_owner_here(),
                                   "which is held by", detail::atomic_wait_queue::value_of(held),
                                   unknown_caller);
    }

    // Throws stopped.
    void lock(std::source_location caller = std::source_location::current()) {
        if (!try_lock(caller)) lock_slowly(caller);
    }
    [[nodiscard]] bool try_lock(
        std::source_location caller = std::source_location::current()) noexcept {
        detail::atomic_wait_queue::word nobody = 0;
        if (queue_.load() != 0 || !queue_.change(nobody, detail::lock_owner_here())) {
            if constexpr (WEFT_DEBUG != 0) detail::count_failed_try(caller);
            return false;
        }
        detail::count_lock(1);
        return true;
    }
    // False when the time is up. The time points are those of the steady clock or the system clock.
    // Throws stopped.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(
        std::chrono::time_point<Clock, Duration> t,
        std::source_location caller = std::source_location::current()) {
        return try_lock(caller) || await(async_lock(t, caller), caller);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> d,
                                    std::source_location caller = std::source_location::current()) {
        return try_lock(caller) || await(async_lock(d, caller), caller);
    }
    void unlock(std::source_location caller = std::source_location::current()) noexcept {
        const detail::lock_owner me = detail::lock_owner_here();
        detail::atomic_wait_queue::word w = queue_.load();
        if ((w == me && queue_.change(w, 0)) || unlock_slowly(me, caller)) detail::count_lock(-1);
    }

    detail::lock_operation async_lock(
        std::source_location caller = std::source_location::current()) noexcept {
        return detail::lock_operation(*this, caller);
    }
    detail::timed_lock_operation async_lock(
        time_limit limit, std::source_location caller = std::source_location::current()) noexcept {
        return detail::timed_lock_operation(limit, *this, caller);
    }

    // A std::unique_lock that owns the mutex; the mutex is unlocked at once if it is not kept. Its
    // blocking form is the constructor of std::unique_lock.
    detail::scoped_lock_operation<detail::lock_operation, std::unique_lock<mutex>>
    async_scoped_lock(std::source_location caller = std::source_location::current()) noexcept {
        return detail::scoped_lock_operation<detail::lock_operation, std::unique_lock<mutex>>(
            *this, *this, caller);
    }

    // Whether the caller is the owner, as far as the owner is known.
    bool is_owned_by_caller() const noexcept { return queue_.value() == detail::lock_owner_here(); }

private:
    friend class detail::lock_operation;

    WEFT_NOINLINE void lock_slowly(std::source_location caller);
    // Returns whether the owner was known.
    WEFT_NOINLINE bool unlock_slowly(detail::lock_owner me, std::source_location caller) noexcept;

    detail::atomic_wait_queue queue_;
};

inline bool detail::lock_operation::ready() noexcept {
    detail::atomic_wait_queue::word nobody = 0;
    const lock_owner me = lock_owner_in_coroutine();
    if (mutex_->queue_.load() != 0 || !mutex_->queue_.change(nobody, me)) return false;
    if (me != anonymous_owner) count_lock(1);
    return true;
}
inline bool detail::lock_operation::blocking_ready() noexcept { return mutex_->try_lock(caller_); }

}  // namespace weft
