// condition_queue: the waiters of a condition, whatever the type of their lock; the common part of
// condition_variable and condition_variable_any.
//
// Design: each wait is two waits, for the notification and then for the lock. The second wait
// cannot be stopped, so a wait always ends with the lock held, even if it ends by an exception. The
// queue knows no type of lock: it unlocks and locks through the functions of the wait.
//
//      enlist ---> unlock ---> park ... notified, late or stopped ---> lock, shielded ---> return
//
// A waiter is queued before its lock is unlocked, so a notification between the two is not missed.
// A lock object owns nothing during the wait, because its frame may be destroyed meanwhile; a bare
// mutex is what the caller says that it is.
//
// Model: test/model/condition_variable_test.cpp
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/stop/stop_token.hpp"
#include "weft/sync/detail/atomic_wait_queue.hpp"
#include "weft/wait/await.hpp"

namespace weft::detail {

class condition_queue;

// A node in the queue. `given`: notify_one() chose this node; the destructor passes an unused
// notification to the next waiter.
struct notice : queue_node {
    explicit notice(condition_queue& c) noexcept : condition(&c) {}
    ~notice() {
        if (given) [[unlikely]]
            hand_on();
    }
    void hand_on() noexcept;

    condition_queue* const condition;
};

// The lock of a wait that blocks. unlock() does not suspend: the waiter is queued by then.
struct condition_lock {
    void* object;
    void (*unlock)(void* object, std::source_location caller) noexcept;
    void (*lock)(void* object, std::source_location caller);
};

class condition_queue {
public:
    condition_queue() noexcept : queue_(0) {}

    void notify_one() noexcept;
    void notify_all() noexcept;
    // Throws stopped, with the lock held.
    std::cv_status block(const condition_lock& lock, time_point until, stop_token token,
                         std::source_location caller);

private:
    friend class condition_awaiter;

    void enlist(notice& n, waiter& w) noexcept;
    void notify(notice& n) noexcept;  // wakes n's waiter if it still waits

    atomic_wait_queue queue_;
};

// How a wait uses a lock. The primary template has what every BasicLockable has; for a lock of
// weft's, messages name the caller's line, and a coroutine can await the lock.
template <class Lock>
struct lock_access {
    static void unlock(Lock& l, std::source_location) noexcept { l.unlock(); }
    static void lock(Lock& l, std::source_location) { l.lock(); }
};

template <class Lock>
struct owning_lock_access {
    // Says that `l`, which has a mutex, owns it or not. Neither locks nor unlocks.
    template <class How>
    static void mark(Lock& l, How how) noexcept {
        auto& m = *l.release();
        l = Lock(m, how);
    }
};

template <class M>
    requires requires(M& m, std::source_location c) { m.async_lock(c); }
struct lock_access<std::unique_lock<M>> : owning_lock_access<std::unique_lock<M>> {
    using lock_type = std::unique_lock<M>;
    static void unlock(lock_type& l, std::source_location caller) noexcept {
        lock_access::mark(l, std::defer_lock);
        l.mutex()->unlock(caller);
    }
    static void lock(lock_type& l, std::source_location caller) {
        l.mutex()->lock(caller);
        lock_access::mark(l, std::adopt_lock);
    }
    static auto async_lock(M& m, std::source_location caller) noexcept {
        return m.async_lock(caller);
    }
};

template <class M>
    requires requires(M& m, std::source_location c) { m.async_lock_shared(c); }
struct lock_access<std::shared_lock<M>> : owning_lock_access<std::shared_lock<M>> {
    using lock_type = std::shared_lock<M>;
    static void unlock(lock_type& l, std::source_location caller) noexcept {
        lock_access::mark(l, std::defer_lock);
        l.mutex()->unlock_shared(caller);
    }
    static void lock(lock_type& l, std::source_location caller) {
        l.mutex()->lock_shared(caller);
        lock_access::mark(l, std::adopt_lock);
    }
    static auto async_lock(M& m, std::source_location caller) noexcept {
        return m.async_lock_shared(caller);
    }
};

// A lock that a coroutine can wait with.
template <class Lock>
concept awaitable_lock =
    requires(Lock& l, std::source_location c) { lock_access<Lock>::async_lock(*l.mutex(), c); };

template <class Lock>
void check_is_held(const Lock& l, std::source_location caller) noexcept {
    if constexpr (requires { l.owns_lock(); })
        WEFT_ASSERT_AT(l.owns_lock(), "a wait for a condition without its mutex", caller);
}

template <class Lock>
std::cv_status block_for_condition(condition_queue& q, Lock& l, time_point until, stop_token token,
                                   std::source_location caller) {
    check_is_held(l, caller);
    const condition_lock erased{
        std::addressof(l),
        [](void* o, std::source_location c) noexcept {
            lock_access<Lock>::unlock(*static_cast<Lock*>(o), c);
        },
        [](void* o, std::source_location c) { lock_access<Lock>::lock(*static_cast<Lock*>(o), c); },
    };
    return q.block(erased, until, token, caller);
}

// Both waits of a coroutine in sequence: the first wait resumes this frame, which begins the second
// wait, which resumes the coroutine.
class condition_awaiter : frame {
public:
    condition_awaiter(const condition_awaiter&) = delete;
    condition_awaiter& operator=(const condition_awaiter&) = delete;

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> h);

protected:
    // What the type of the lock adds.
    struct lock_functions {
        void (*unlock)(condition_awaiter&) noexcept;
        bool (*ready)(condition_awaiter&) noexcept;  // makes the operation, and asks it
        bool (*start)(condition_awaiter&, waiter&) noexcept;
        void (*take)(condition_awaiter&);  // the lock object owns the lock again
    };

    condition_awaiter(const lock_functions& of_lock, condition_queue& q, time_limit limit,
                      std::source_location caller) noexcept;
    ~condition_awaiter() { unshield(); }
    // Before the operation of the lock is destroyed: ends a wait for the lock.
    void leave_lock() noexcept { for_lock_.reset(); }

    std::source_location caller() const noexcept { return caller_; }
    wait_status finish();  // returns or throws stopped with the lock held

private:
    static void notified(frame* f);
    static void drop(frame* f) { static_cast<condition_awaiter*>(f)->awaiting_.destroy(); }
    bool begin_lock();  // false: this wait has the lock already
    waiter& make(std::optional<waiter>& w) noexcept;
    void unshield() noexcept;

    const lock_functions& of_lock_;
    const time_limit limit_;
    const std::source_location caller_;  // of the call, for messages
    wait_status status_ = wait_status::woken;
    stop_reason reason_ = stop_reason::none;
    std::coroutine_handle<> awaiting_;
    flow* flow_ = nullptr;
    bool unlocked_ = false;
    bool shielded_ = false;
    notice notice_;
    std::optional<waiter> for_notice_;
    std::optional<waiter> for_lock_;
};

// Result is the type that the wait returns: void or cv_status.
template <awaitable_lock Lock, class Result>
class typed_condition_awaiter : public condition_awaiter {
    using access = lock_access<Lock>;
    using lock_operation =
        decltype(access::async_lock(std::declval<typename Lock::mutex_type&>(), {}));

public:
    typed_condition_awaiter(condition_queue& q, Lock& lock, time_limit limit,
                            std::source_location caller) noexcept
        : condition_awaiter(functions, q, limit, caller), lock_(lock) {
        check_is_held(lock, caller);
    }
    ~typed_condition_awaiter() { leave_lock(); }

    Result await_resume() {
        const wait_status how = finish();
        if constexpr (!std::is_void_v<Result>)
            return how == wait_status::woken ? Result::no_timeout : Result::timeout;
    }

private:
    Lock& lock_;
    std::optional<lock_operation> locking_;

    static typed_condition_awaiter& of(condition_awaiter& a) noexcept {
        return static_cast<typed_condition_awaiter&>(a);
    }
    static constexpr lock_functions functions{
        [](condition_awaiter& a) noexcept { access::unlock(of(a).lock_, of(a).caller()); },
        [](condition_awaiter& a) noexcept {
            auto& op = of(a).locking_;
            op.emplace(access::async_lock(*of(a).lock_.mutex(), of(a).caller()));
            return op->ready();
        },
        [](condition_awaiter& a, waiter& w) noexcept { return of(a).locking_->start(w); },
        [](condition_awaiter& a) {
            of(a).locking_->take(nullptr, wait_status::woken);
            access::mark(of(a).lock_, std::adopt_lock);
        },
    };
};

// A wait that is not awaited yet.
template <class Lock, class Result>
class [[nodiscard]] condition_wait_operation {
public:
    condition_wait_operation(condition_queue& q, Lock& lock, time_limit limit,
                             std::source_location caller) noexcept
        : queue_(&q), lock_(&lock), limit_(limit), caller_(caller) {}
    typed_condition_awaiter<Lock, Result> operator co_await() const noexcept {
        return {*queue_, *lock_, limit_, caller_};
    }

private:
    condition_queue* queue_;
    Lock* lock_;
    time_limit limit_;
    std::source_location caller_;
};

}  // namespace weft::detail
