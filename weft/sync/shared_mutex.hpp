// shared_mutex: many readers or one writer. As std::shared_timed_mutex, for fibers, coroutines and
// threads.
//
// Design: readers and writers share one FIFO queue. A caller that finds a waiter is queued behind
// it, so a stream of readers cannot starve a writer, nor writers a reader. Adjacent readers are
// admitted together.
//
//      queue:  R R | W | R R R | W       each group at once, when the group before it has left
//
// The writer is known as the owner of a weft::mutex is: an unlock by another agent, a second lock
// by the writer, or the end of a writer that owns the lock, aborts the program.
//
// Limits: of the readers only the count is known. A reader that locks once more waits for ever
// where a writer is queued in between.
//
// Works with std::unique_lock and std::shared_lock, which are also the results of
//
//   const auto writes = co_await m.async_scoped_lock();
//   const auto reads = co_await m.async_scoped_lock_shared();
//
// Model: test/model/locks_test.cpp
#pragma once

#include <mutex>
#include <shared_mutex>

#include "weft/sync/detail/atomic_wait_queue.hpp"
#include "weft/sync/detail/lock_owner.hpp"
#include "weft/sync/detail/scoped_lock_operation.hpp"
#include "weft/sync/detail/timed.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class shared_mutex;

namespace detail {

enum class lock_mode : unsigned char { none, shared };

class [[nodiscard]] shared_lock_operation {
public:
    static constexpr bool reports_stop = false;

    shared_lock_operation(shared_mutex& m, lock_mode how, std::source_location caller) noexcept
        : mutex_(&m), caller_(caller) {
        node_.how = how;
    }
    // Only before the operation is awaited.
    shared_lock_operation(shared_lock_operation&& other) noexcept
        : shared_lock_operation(*other.mutex_, other.node_.how, other.caller_) {}
    shared_lock_operation& operator=(const shared_lock_operation&) = delete;
    ~shared_lock_operation();

    bool ready() noexcept { return try_now(lock_owner_in_coroutine()); }
    bool blocking_ready() noexcept { return try_now(lock_owner_here()); }
    bool start(waiter& w) noexcept { return start(w, false); }
    void take(const waiter* w, wait_status how);

protected:
    bool start(waiter& w, bool gives_up) noexcept;

private:
    friend class weft::shared_mutex;
    struct node : queue_node {
        lock_mode how = lock_mode::none;
        lock_owner as = 0;  // this waiter's value as writer
        shared_mutex* mutex = nullptr;
    };
    bool try_now(lock_owner me) noexcept;
    static void cancel(waiter& w) noexcept;

    shared_mutex* mutex_;
    std::source_location caller_;  // of the call, for messages
    node node_;
};

class [[nodiscard]] timed_shared_lock_operation : public timed<shared_lock_operation> {
public:
    using timed::timed;
    bool start(waiter& w) noexcept { return shared_lock_operation::start(w, true); }
};

}  // namespace detail

class shared_mutex {
    using atomic_wait_queue = detail::atomic_wait_queue;

public:
    constexpr shared_mutex() noexcept : queue_(0) {}
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;
    // Aborts if the shared_mutex is held.
    ~shared_mutex() {
        if (const auto held = queue_.load()) [[unlikely]]
            fail_held(held);
    }

    // Throw stopped.
    void lock(std::source_location caller = std::source_location::current()) {
        if (!try_lock()) await(async_lock(caller), caller);
    }
    void lock_shared(std::source_location caller = std::source_location::current()) {
        if (!try_lock_shared()) await(async_lock_shared(caller), caller);
    }
    // A loop around either starves the executor.
    [[nodiscard]] bool try_lock() noexcept { return try_lock_as(detail::lock_owner_here()); }
    [[nodiscard]] bool try_lock_shared() noexcept;

    // False when the time is up. The time points are those of the steady clock or the system clock.
    // Throw stopped.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(
        std::chrono::time_point<Clock, Duration> t,
        std::source_location caller = std::source_location::current()) {
        return await(async_lock(t, caller), caller);
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(
        std::chrono::time_point<Clock, Duration> t,
        std::source_location caller = std::source_location::current()) {
        return await(async_lock_shared(t, caller), caller);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> d,
                                    std::source_location caller = std::source_location::current()) {
        return await(async_lock(d, caller), caller);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(
        std::chrono::duration<Rep, Period> d,
        std::source_location caller = std::source_location::current()) {
        return await(async_lock_shared(d, caller), caller);
    }

    // Abort if the lock is not held in that mode, or if another agent is the writer.
    void unlock(std::source_location caller = std::source_location::current()) noexcept;
    void unlock_shared(std::source_location caller = std::source_location::current()) noexcept;

    // Whether the caller is the writer, as far as the writer is known; whether readers own the
    // lock.
    bool is_owned_by_caller() const noexcept {
        return held_by_.load(std::memory_order_relaxed) == detail::lock_owner_here();  // see there
    }
    bool is_shared() const noexcept { return queue_.value() >= reader; }

    detail::shared_lock_operation async_lock(
        std::source_location caller = std::source_location::current()) noexcept {
        return {*this, detail::lock_mode::none, caller};
    }
    detail::shared_lock_operation async_lock_shared(
        std::source_location caller = std::source_location::current()) noexcept {
        return {*this, detail::lock_mode::shared, caller};
    }
    detail::timed_shared_lock_operation async_lock(
        time_limit limit, std::source_location caller = std::source_location::current()) noexcept {
        return detail::timed_shared_lock_operation(limit, *this, detail::lock_mode::none, caller);
    }
    detail::timed_shared_lock_operation async_lock_shared(
        time_limit limit, std::source_location caller = std::source_location::current()) noexcept {
        return detail::timed_shared_lock_operation(limit, *this, detail::lock_mode::shared, caller);
    }
    // A std::unique_lock or std::shared_lock that owns the lock.
    detail::scoped_lock_operation<detail::shared_lock_operation, std::unique_lock<shared_mutex>>
    async_scoped_lock(std::source_location caller = std::source_location::current()) noexcept {
        return detail::scoped_lock_operation<detail::shared_lock_operation,
                                             std::unique_lock<shared_mutex>>(
            *this, *this, detail::lock_mode::none, caller);
    }
    detail::scoped_lock_operation<detail::shared_lock_operation, std::shared_lock<shared_mutex>>
    async_scoped_lock_shared(
        std::source_location caller = std::source_location::current()) noexcept {
        return detail::scoped_lock_operation<detail::shared_lock_operation,
                                             std::shared_lock<shared_mutex>>(
            *this, *this, detail::lock_mode::shared, caller);
    }

private:
    friend class detail::shared_lock_operation;
    static constexpr atomic_wait_queue::word writer = atomic_wait_queue::unit;
    static constexpr atomic_wait_queue::word reader = 2 * atomic_wait_queue::unit;

    static bool admits(atomic_wait_queue::word v, detail::lock_mode how) noexcept {
        return how == detail::lock_mode::shared ? (v & writer) == 0 : v == 0;
    }
    static atomic_wait_queue::word joined(atomic_wait_queue::word v,
                                          detail::lock_mode how) noexcept {
        return how == detail::lock_mode::shared ? v + reader : writer;
    }
    bool try_lock_as(detail::lock_owner me) noexcept;
    [[noreturn]] void fail_held(atomic_wait_queue::word w) const noexcept;  // in the destructor
    void belongs_to(detail::lock_owner me) noexcept;                        // records the writer
    void give_up(std::source_location caller) noexcept;  // releases the writer's lock
    void hand_on(atomic_wait_queue::word v) noexcept;    // call under the lock; releases the lock

    atomic_wait_queue queue_;
    // The writer, from belongs_to() until unlock(). Orders: relaxed, the value is compared with the
    // calling agent, and only the writer stores or clears its own value.
    atomic<detail::lock_owner> held_by_{0};
};

}  // namespace weft
