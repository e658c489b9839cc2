// once_flag, call_once: the first caller runs a function; the other callers wait until the function
// has returned. As std's, for fibers, coroutines and threads.
//
// Design: one caller at a time has the turn to run the function, until one succeeds. If the
// function throws, the exception goes to the caller that ran it, and the first waiter runs the
// function again.
//
// Limits: the flag is not reset, and outlives its waiters. A function that calls call_once with its
// own flag waits for itself.
//
//   weft::once_flag loaded;
//   weft::call_once(loaded, [&] { table = load(); });
//
//   if (co_await loaded.async_acquire()) {         // in a coroutine: true for one caller
//       weft::once_guard mine(loaded);              // without commit(), the next waiter tries
//       table = co_await async_load();
//       mine.commit();
//   }
//
// Model: none, what changes, changes under the lock of its atomic_wait_queue, which has one.
#pragma once

#include <source_location>
#include <utility>

#include "weft/base/detail/invoke.hpp"
#include "weft/sync/detail/atomic_wait_queue.hpp"
#include "weft/sync/detail/timed.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class once_flag;

namespace detail {

class [[nodiscard]] once_operation {
public:
    static constexpr bool reports_stop = false;

    explicit once_operation(once_flag& f) noexcept : flag_(&f) {}
    // Only before the operation is awaited.
    once_operation(once_operation&& other) noexcept : flag_(other.flag_) {}
    once_operation& operator=(const once_operation&) = delete;
    ~once_operation();

    bool ready() const noexcept;
    bool start(waiter& w) noexcept;
    // True: the caller has the turn to run the function.
    [[nodiscard]] bool take(const waiter* w, wait_status how) {
        const bool chosen = std::exchange(node_.given, false);
        if (how == wait_status::stopped) throw_stopped(w->reason());
        return chosen;
    }

private:
    once_flag* flag_;
    queue_node node_;
};

}  // namespace detail

class once_flag {
public:
    constexpr once_flag() noexcept : queue_(fresh) {}
    once_flag(const once_flag&) = delete;
    once_flag& operator=(const once_flag&) = delete;

    bool is_done() const noexcept { return queue_.value() == done; }

    // Waits until the function is done, or until the caller has the turn to run it. In the second
    // case the wait returns true, and the caller owes a release(), which a once_guard calls.
    // release(true): the function is done. release(false): the next waiter is to try.
    detail::once_operation async_acquire() noexcept { return detail::once_operation(*this); }
    void release(bool committed,
                 std::source_location caller = std::source_location::current()) noexcept;

private:
    friend class detail::once_operation;
    static constexpr detail::atomic_wait_queue::word fresh = 0;
    static constexpr detail::atomic_wait_queue::word running = detail::atomic_wait_queue::unit;
    static constexpr detail::atomic_wait_queue::word done = 2 * detail::atomic_wait_queue::unit;

    detail::atomic_wait_queue queue_;
};

inline bool detail::once_operation::ready() const noexcept { return flag_->is_done(); }

// The turn of a caller that async_acquire() chose. The destructor ends the turn; the turn is a
// success if commit() was called.
class once_guard {
public:
    explicit once_guard(once_flag& entered) noexcept : flag_(entered) {}
    once_guard(const once_guard&) = delete;
    once_guard& operator=(const once_guard&) = delete;
    // Ends the turn.
    ~once_guard() { flag_.release(committed_, unknown_caller); }

    void commit() noexcept { committed_ = true; }

private:
    once_flag& flag_;
    bool committed_ = false;
};

// Throws stopped, and what f throws.
template <class F, class... Args>
void call_once(detail::with_caller<once_flag&> flag, F&& f, Args&&... args) {
    once_flag& once = flag.value;
    if (once.is_done() || !await(once.async_acquire(), flag.caller)) return;
    once_guard mine(once);
    detail::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    mine.commit();
}

}  // namespace weft
