// operation: something that can be waited for, once, by anybody: the contract.
//
// An operation is lazy, made where it is used and waited for there; nothing happens before:
//
//      bool ready()             completes without waiting if it can. Called first.
//      bool start(waiter&)      enlists the waiter; false when it has completed after all, and then
//                               the waiter is in no queue. Once it has returned true the operation
//                               stays where it is until the waiter was run.
//      T take(const waiter*, wait_status)   what came of it: a value, or the throw of `stopped`.
//                               The waiter is null when none was needed.
//
//      time_point deadline()    if it has one: `timed_out` is its status then. Optional.
//
//      bool again(waiter&)      asked on the party's own thread when the event or the deadline has
//                               come: true if this is the end of the wait; false if the operation
//                               has enlisted the waiter once more (waiter::renew). Optional.
//
//      bool blocking_ready()    in the place of ready(), if it matters that the caller blocks and
//                               is no coroutine. Optional.
//
//      static constexpr bool reports_stop   whether T can say that it was stopped. Where it cannot,
//                               take() throws, and in a build without exceptions the wait is not
//                               ended by a stop.
//
// One definition serves three spellings: `co_await op` in any coroutine, weft::await(op) in a fiber
// and weft::sync_wait(op) on a thread (await.hpp); and x.lock() beside x.async_lock().
#pragma once

#include <concepts>
#include <coroutine>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/wait/runnable.hpp"
#include "weft/wait/stopped.hpp"
#include "weft/wait/thread_host.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {

template <class Op>
concept operation = requires(std::remove_reference_t<Op>& op, waiter& w) {
    { op.ready() } -> std::same_as<bool>;
    { op.start(w) } -> std::same_as<bool>;
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
bool is_ready(Op& op, std::source_location place) {
    if constexpr (requires { op.ready(place); })
        return op.ready(place);
    else
        return op.ready();
}

// Whether an event need not be the end.
template <class Op>
concept repeated = requires(Op& op, waiter& w) {
    { op.again(w) } -> std::same_as<bool>;
};

// Where a coroutine goes on that runs in no flow: where it runs now. On a plain thread that is when
// the thread waits: it must, until the coroutine is through, or have begun it in an executor.
inline executor& home_of_nobody() noexcept {
    executor* e = current_executor();
    return e != nullptr ? *e : this_thread_host();
}

template <class Op>
class operation_awaiter {
public:
    explicit operation_awaiter(Op& op) noexcept : op_(op) {}

    bool await_ready(std::source_location place = std::source_location::current()) {
        return is_ready(op_, place);
    }
    bool await_suspend(std::coroutine_handle<> h) {
        flow* f = current_flow();
        waiter& w = f != nullptr ? waiter_.emplace(*f) : waiter_.emplace(home_of_nobody());
        if constexpr (repeated<Op>) {
            again_.emplace(*this, h);
            w.handle = again_->handle();
        } else {
            w.handle = h;
        }
        if (!w.admit(Op::reports_stop) || !op_.start(w)) return false;
        w.engage(deadline_of(op_));
        return true;
    }
    decltype(auto) await_resume() {
        return waiter_ ? op_.take(&*waiter_, waiter_->conclude())
                       : op_.take(nullptr, wait_status::woken);
    }

private:
    // What is run in place of the coroutine, until the operation is complete.
    struct look_again : frame {
        operation_awaiter& self;
        std::coroutine_handle<> then;

        look_again(operation_awaiter& a, std::coroutine_handle<> h) noexcept
            : frame{look, look}, self(a), then(h) {}
        static void look(frame* f) {
            auto& me = *static_cast<look_again*>(f);
            waiter& w = *me.self.waiter_;
            if (w.status() != wait_status::stopped && !me.self.op_.again(w)) return;
            me.then.resume();
        }
    };
    struct nothing {};

    Op& op_;
    std::optional<waiter> waiter_;
    [[no_unique_address]] std::conditional_t<repeated<Op>, std::optional<look_again>, nothing>
        again_;
};

}  // namespace detail

// Of an operation that stands in the co_await itself, or of one that outlives it.
template <operation Op>
auto operator co_await(Op&& op) noexcept {
    return detail::operation_awaiter<std::remove_reference_t<Op>>(op);
}

namespace detail {
using weft::operator co_await;  // is looked for where the operation is
}

}  // namespace weft
