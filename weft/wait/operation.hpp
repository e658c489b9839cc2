// operation: the contract of an object that can be awaited once, by a coroutine, a fiber or a
// thread.
//
// Design: one definition serves three spellings: `co_await op` in any coroutine, weft::await(op) in
// a fiber and weft::sync_wait(op) on a thread (await.hpp); and also x.lock() beside x.async_lock().
//
// An operation is lazy, made where it is used and awaited there; nothing happens before that:
//
//      bool ready()             completes without waiting if it can. Called first.
//      bool start(waiter&)      enlists the waiter; false when it has completed after all, and then
//                               the waiter is in no queue. Once it has returned true the operation
//                               stays where it is until the waiter was run.
//      T take(const waiter*, wait_status)   the outcome: returns a value, or throws `stopped`. The
//                               waiter is null when none was needed.
//
//      time_point deadline()    if it has one; the status is `timed_out` then. Called once, when
//                               start() has returned true: there a time_limit that is a duration
//                               begins (detail::deadline_of). Optional.
//
//      bool again(waiter&)      called on the waiter's own thread when the event or the deadline
//                               comes: true if this ends the wait; false if the operation has
//                               enlisted the waiter once more (waiter::rearm). Where possible it is
//                               called on the stack of the waiter's executor, so that only the end
//                               of the wait costs a switch; so it neither blocks nor throws.
//                               Optional.
//
//      struct room;             what it needs only while it waits, where that is large. It stays
//      bool start(waiter&, room&)   until the wait is over, take() included. A coroutine stores it
//                               in a block of the cache, with the waiter, so that a frame that
//                               awaits in ten places has ten operations in it, and no room.
//                               Optional; with it there is
//      void lacks_memory()      there was none for that block: the next call is take().
//
//      bool blocking_ready()    replaces ready(), if it matters that the caller blocks and is no
//                               coroutine. Optional.
//
//      static constexpr bool reports_stop   whether T can say that it was stopped. Where it cannot,
//                               take() throws, and in a build without exceptions the wait is not
//                               ended by a stop.
//
// Limits: an operation may be moved until it starts, borrows its arguments until it ends, and is
// destroyed in the flow that started it. co_await finds an operation of another namespace than weft
// where that namespace has weft's operator by a using-declaration.
//
//   namespace mine {
//       struct seven {
//           static constexpr bool reports_stop = false;
//           bool ready() noexcept { return true; }
//           bool start(weft::waiter&) noexcept { return false; }
//           int take(const weft::waiter*, weft::wait_status) { return 7; }
//       };
//       using weft::operator co_await;
//   }
//   int n = co_await mine::seven{};
#pragma once

#include <concepts>
#include <coroutine>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/wait/detail/thread_executor.hpp"
#include "weft/wait/runnable.hpp"
#include "weft/wait/stopped.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {

namespace detail {

template <class Op>
concept roomy = requires(Op& op, waiter& w, typename Op::room& r) {
    { op.start(w, r) } -> std::same_as<bool>;
    op.lacks_memory();
};
template <class Op>
concept roomless = requires(Op& op, waiter& w) {
    { op.start(w) } -> std::same_as<bool>;
};

}  // namespace detail

template <class Op>
concept operation = requires(std::remove_reference_t<Op>& op, waiter& w) {
    { op.ready() } -> std::same_as<bool>;
    requires detail::roomy<std::remove_reference_t<Op>> ||
                 detail::roomless<std::remove_reference_t<Op>>;
    op.take(&std::as_const(w), wait_status::woken);
    { std::remove_reference_t<Op>::reports_stop } -> std::convertible_to<bool>;
};

namespace detail {

template <class Op>
time_point deadline_of(const Op& op) noexcept {
    if constexpr (requires { op.deadline(); })
        return op.deadline();
    else
        return never;
}

template <class Op>
bool is_ready(Op& op, std::source_location caller) {
    if constexpr (requires { op.ready(caller); })
        return op.ready(caller);
    else
        return op.ready();
}

// Whether an event need not end the wait.
template <class Op>
concept repeated = requires(Op& op, waiter& w) {
    { op.again(w) } -> std::same_as<bool>;
};

// Where a coroutine outside any flow resumes: on the executor that runs it now. On a plain thread
// it resumes when the thread waits: the thread has to wait until the coroutine is done, or has to
// start it in an executor.
inline executor& home_of_nobody() noexcept {
    executor* e = current_executor();
    return e != nullptr ? *e : this_thread_host();
}

// The room of an operation, if it has one. It outlives the waiter.
template <class Op>
struct wait_room {
    bool start(Op& op, waiter& w) { return op.start(w); }
};
template <roomy Op>
struct wait_room<Op> {
    typename Op::room room;
    bool start(Op& op, waiter& w) { return op.start(w, room); }
};

// A waiter that is run in its flow's turn, in place of the flow, until the operation is complete.
template <class Op>
struct look_again : look_frame {
    Op& op;
};
template <class Op>
class looking_waiter : look_again<Op>, public waiter {  // in this order in memory
public:
    template <class Home>
    looking_waiter(Home& at, Op& of_it, std::coroutine_handle<> after) noexcept
        : look_again<Op>{{{look, look}, after}, of_it}, waiter(at) {
        looks_by(*this);
    }

private:
    static void look(frame* f) {
        auto& me = static_cast<looking_waiter&>(*f);
        if (me.status() != wait_status::stopped && !me.op.again(me)) return;
        me.then.resume();
    }
};

template <class Op>
class operation_awaiter {
public:
    explicit operation_awaiter(Op& op) noexcept : op_(op) {}
    operation_awaiter(const operation_awaiter&) = delete;
    operation_awaiter& operator=(const operation_awaiter&) = delete;
    ~operation_awaiter() {
        if (waits_) detail::destroy_at(&waiter_);
    }

    bool await_ready(std::source_location caller = std::source_location::current()) {
        return is_ready(op_, caller);
    }
    bool await_suspend(std::coroutine_handle<> h) {
        if (flow* const f = current_flow()) [[likely]]
            make_waiter(*f, h);
        else
            make_waiter(home_of_nobody(), h);
        if (!waiter_.may_begin(Op::reports_stop) || !op_.start(waiter_)) return false;
        waiter_.begin_wait(deadline_of(op_));
        return true;
    }
    decltype(auto) await_resume() {
        return waits_ ? op_.take(&std::as_const(static_cast<waiter&>(waiter_)), waiter_.end_wait())
                      : op_.take(nullptr, wait_status::woken);
    }

private:
    template <class Home>
    void make_waiter(Home& home, std::coroutine_handle<> h) noexcept {
        if constexpr (repeated<Op>) {
            detail::construct_at(&waiter_, home, op_, h);
        } else {
            detail::construct_at(&waiter_, home);
            waiter_.handle = h;
        }
        waits_ = true;
    }

    Op& op_;
    bool waits_ = false;
    union {  // beside the flag for it: an awaiter that need not wait touches no more
        std::conditional_t<repeated<Op>, looking_waiter<Op>, waiter> waiter_;
    };
};

// The same for an operation with a room: room and waiter are made when it waits, outside the frame.
template <roomy Op>
class operation_awaiter<Op> {
public:
    explicit operation_awaiter(Op& op) noexcept : op_(op) {}
    operation_awaiter(const operation_awaiter&) = delete;
    operation_awaiter& operator=(const operation_awaiter&) = delete;
    ~operation_awaiter() {
        if (wait_ == nullptr) return;
        detail::destroy_at(wait_);
        block_cache::release(wait_, sizeof(wait));
    }

    bool await_ready(std::source_location caller = std::source_location::current()) {
        return is_ready(op_, caller);
    }
    bool await_suspend(std::coroutine_handle<> h) {
        void* const block = block_cache::try_acquire(sizeof(wait));
        if (block == nullptr) [[unlikely]] {
            op_.lacks_memory();
            return false;
        }
        flow* const f = current_flow();
        wait_ = f != nullptr ? ::new (block) wait(*f, op_, h)
                             : ::new (block) wait(home_of_nobody(), op_, h);
        if (!wait_->by.may_begin(Op::reports_stop) || !wait_->room.start(op_, wait_->by))
            return false;
        wait_->by.begin_wait(deadline_of(op_));
        return true;
    }
    decltype(auto) await_resume() {
        return wait_ != nullptr
                   ? op_.take(&std::as_const(static_cast<waiter&>(wait_->by)), wait_->by.end_wait())
                   : op_.take(nullptr, wait_status::woken);
    }

private:
    // The waiter comes first in memory, and is destroyed first.
    struct wait {
        union {
            std::conditional_t<repeated<Op>, looking_waiter<Op>, waiter> by;
        };
        wait_room<Op> room;

        template <class Home>
        wait(Home& at, Op& op, std::coroutine_handle<> h) noexcept
            requires repeated<Op>
            : by(at, op, h) {}
        template <class Home>
        wait(Home& at, Op&, std::coroutine_handle<> h) noexcept : by(at) {
            by.handle = h;
        }
        ~wait() { detail::destroy_at(&by); }
    };
    static_assert(sizeof(wait) <= block_cache::maximum_block_bytes &&
                  alignof(wait) <= block_cache::alignment);

    Op& op_;
    wait* wait_ = nullptr;
};

}  // namespace detail

// For an operation that is part of the co_await expression, or that outlives it.
template <operation Op>
auto operator co_await(Op&& op) noexcept {
    return detail::operation_awaiter<std::remove_reference_t<Op>>(op);
}

namespace detail {
using weft::operator co_await;  // found by the lookup from an operation's namespace
}

}  // namespace weft
