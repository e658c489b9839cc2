// recursive_mutex: a mutex that its owner may lock again. As std::recursive_timed_mutex.
//
// Design: an adapter: a depth count beside weft::mutex, for code that needs recursion.
//
// Limits: only agents that can be distinguished may use it: fibers, threads, and tasks that were
// spawned or are awaited. A coroutine that user code resumes may run beside another one
// (lock_owner.hpp): a co_await of the lock in such a coroutine aborts.
//
//   weft::recursive_mutex m;
//   const std::lock_guard outer(m);
//   const std::lock_guard inner(m);             // in a coroutine: co_await m.async_scoped_lock()
#pragma once

#include <mutex>
#include <utility>

#include "weft/sync/mutex.hpp"

namespace weft {

class recursive_mutex;

namespace detail {

template <class Op>
class [[nodiscard]] recursive : public Op {
public:
    template <class... Args>
    explicit recursive(recursive_mutex& m, Args&&... args) noexcept
        : Op(std::forward<Args>(args)...), mutex_(&m) {}

    using taken = decltype(std::declval<Op&>().take(nullptr, wait_status::woken));

    bool ready() noexcept;
    bool blocking_ready() noexcept;
    taken take(const waiter* w, wait_status how);

private:
    recursive_mutex* mutex_;
};

}  // namespace detail

class recursive_mutex {
public:
    recursive_mutex() noexcept = default;
    recursive_mutex(const recursive_mutex&) = delete;
    recursive_mutex& operator=(const recursive_mutex&) = delete;

    // Throws stopped.
    void lock(std::source_location caller = std::source_location::current()) {
        if (!try_lock(caller)) await(async_lock(caller), caller);
    }
    // A loop around it starves the executor.
    [[nodiscard]] bool try_lock(
        std::source_location caller = std::source_location::current()) noexcept {
        if (!is_owned_by_caller(caller) && !mutex_.try_lock(caller)) return false;
        ++depth_;
        return true;
    }
    // False when the time is up. The time points are those of the steady clock or the system clock.
    // Throws stopped.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(
        std::chrono::time_point<Clock, Duration> t,
        std::source_location caller = std::source_location::current()) {
        return await(async_lock(t, caller), caller);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> d,
                                    std::source_location caller = std::source_location::current()) {
        return await(async_lock(d, caller), caller);
    }
    void unlock(std::source_location caller = std::source_location::current()) noexcept {
        if (is_owned_by_caller(caller) && --depth_ != 0) return;
        mutex_.unlock(caller);
    }

    detail::recursive<detail::lock_operation> async_lock(
        std::source_location caller = std::source_location::current()) noexcept {
        return detail::recursive<detail::lock_operation>(*this, mutex_, caller);
    }
    detail::recursive<detail::timed_lock_operation> async_lock(
        time_limit limit, std::source_location caller = std::source_location::current()) noexcept {
        return detail::recursive<detail::timed_lock_operation>(*this, limit, mutex_, caller);
    }
    // A std::unique_lock that owns the mutex once more.
    detail::scoped_lock_operation<detail::recursive<detail::lock_operation>,
                                  std::unique_lock<recursive_mutex>>
    async_scoped_lock(std::source_location caller = std::source_location::current()) noexcept {
        return detail::scoped_lock_operation<detail::recursive<detail::lock_operation>,
                                             std::unique_lock<recursive_mutex>>(*this, *this,
                                                                                mutex_, caller);
    }

    bool is_owned_by_caller(
        std::source_location caller = std::source_location::current()) const noexcept {
        WEFT_ASSERT_AT(detail::lock_owner_here() != detail::anonymous_owner,
                       "a recursive_mutex is used by a coroutine outside any flow", caller);
        return mutex_.is_owned_by_caller();
    }

private:
    template <class>
    friend class detail::recursive;

    mutex mutex_;
    unsigned depth_ = 0;  // written by the owner
};

template <class Op>
bool detail::recursive<Op>::ready() noexcept {
    const lock_owner me = lock_owner_in_coroutine();
    if (me == anonymous_owner) [[unlikely]]
        fail_unknown("async_lock of a recursive_mutex in a coroutine that is no task of its own",
                     Op::caller());
    return mutex_->is_owned_by_caller(Op::caller()) || Op::ready();
}

template <class Op>
bool detail::recursive<Op>::blocking_ready() noexcept {
    return mutex_->is_owned_by_caller(Op::caller()) || Op::blocking_ready();
}

template <class Op>
auto detail::recursive<Op>::take(const waiter* w, wait_status how) -> taken {
    if (how == wait_status::woken) ++mutex_->depth_;
    return Op::take(w, how);
}

}  // namespace weft
