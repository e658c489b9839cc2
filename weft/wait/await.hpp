// await, sync_wait: how a fiber and a thread wait for anything that can be awaited.
//
// Design: what co_await does for a coroutine, these do for a caller that has a stack. An operation
// enlists the caller itself. Anything else is awaited by a small coroutine, which runs on the
// caller's own thread, starts at once, and wakes the caller when it is done.
//
// Both do what fits the place of the call: a fiber suspends, a thread sleeps. The name sync_wait
// says that a thread was meant. In the body of a C++20 coroutine neither can suspend, and the call
// ends the program: write co_await there.
//
// Limits: an awaited object that is not an operation can deliver a result aligned to a cache line
// at most: the result passes through a coroutine frame, and compilers align frames for no more.
//
//   auto r = weft::await(channel.async_recv());       // in a fiber: suspends it alone
//   int m = weft::sync_wait(some_task());             // on a thread: sleeps
//
// Model: test/model/await_test.cpp
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/base/detail/owned.hpp"
#include "weft/wait/awaitable.hpp"
#include "weft/wait/detail/off_stack.hpp"
#include "weft/wait/operation.hpp"

namespace weft {
namespace detail {

// The flow that blocks here. Ends the program where no flow can block.
flow& blocking_flow_rarely(std::source_location caller) noexcept;
inline flow& blocking_flow(std::source_location caller) noexcept {
    flow* const f = current_flow();
    return f != nullptr && f->kind->suspend != nullptr ? *f : blocking_flow_rarely(caller);
}

// Whether a look may run in a turn of the flow instead of the flow's own handle. An object on a
// shared stack can be looked at only when that stack is back in place, and a flow that may migrate
// does so by its own handle.
inline bool may_look_first(const flow& f) noexcept {
    return f.kind->may_look_first &&
           (f.pending_flags & (flow_hot::stack_is_shared | flow_hot::may_migrate)) == 0;
}

// The parts of a wait beside its operation, where no look runs first.
template <class Op>
struct plain_wait {
    [[no_unique_address]] wait_room<Op> room;
    waiter w;
    explicit plain_wait(flow& f) noexcept : w(f) {}
};

template <class Op>
WEFT_ALWAYS_INLINE decltype(auto) block_with_in_place(plain_wait<Op>& by, Op& op) {
    waiter& w = by.w;
    w.handle = w.of->handle;
    if (!w.may_begin(Op::reports_stop, true) || !by.room.start(op, w))
        return op.take(&w, w.end_wait());
    refuse_on_shared_stack(w.thing(), "a wait for something that lies on a shared stack");
    if constexpr (repeated<Op>)
        return op.take(&w, w.park_again(deadline_of(op), [&] { return op.again(w); }));
    else
        return op.take(&w, w.park(deadline_of(op)));
}
template <class Op>
decltype(auto) block_with(plain_wait<Op>& by, Op& op) {
    return block_with_in_place(by, op);
}

template <class Op>
bool ready_to_block(Op& op, std::source_location caller) {
    if constexpr (requires { op.blocking_ready(); })
        return op.blocking_ready();
    else
        return is_ready(op, caller);
}

// A wait that is stored off the stack, with its operation.
template <class Op>
struct moved_wait {
    Op op;
    plain_wait<Op> by;
    template <class... Args>
    explicit moved_wait(flow& f, Args&&... args) : op(std::forward<Args>(args)...), by(f) {}
};

// For a flow on a shared stack. The operation is made in the block at once, because others reach it
// there while the stack belongs to another flow. A function of its own, so that the caller's frame,
// which is copied out, does not include what only this path needs.
template <class Op, class... Args>
WEFT_NOINLINE auto block_apart(flow& f, std::source_location caller, Args... args)
    -> decltype(std::declval<Op&>().take(nullptr, wait_status::woken)) {
    const auto there = make_owned<boxed_in_cache<moved_wait<Op>>>(f, args...);
    Op& op = there->value.op;
    if (ready_to_block(op, caller)) return op.take(nullptr, wait_status::woken);
    return block_with_in_place(there->value.by, op);
}

// For a flow on a shared stack. The operation has not been asked yet whether it is ready, and may
// be moved until then.
template <class Op>
WEFT_NOINLINE auto block_off_stack(Op& op, flow& f, std::source_location caller)
    -> decltype(op.take(nullptr, wait_status::woken)) {
    if constexpr (std::is_move_constructible_v<Op>) {
        if (f.kind->has_on_stack(f, detail::address_of(op))) {
            const auto there = make_owned<boxed_in_cache<moved_wait<Op>>>(f, std::move(op));
            Op& moved = there->value.op;
            if (ready_to_block(moved, caller)) return moved.take(nullptr, wait_status::woken);
            return block_with(there->value.by, moved);
        }
    } else if (f.kind->has_on_stack(f, detail::address_of(op))) {
        fail("an operation that cannot be moved is awaited on a shared stack", f.info(), caller);
    }
    if (ready_to_block(op, caller)) return op.take(nullptr, wait_status::woken);
    const auto there = make_owned<boxed_in_cache<plain_wait<Op>>>(f);
    return block_with(there->value, op);
}

// For an operation that was found not ready, by a flow that may look first. Inlined into the
// caller's frame: the waiter lies on a part of the flow's stack that is cold when the flow resumes,
// so fewer frames are better.
template <class Op>
WEFT_ALWAYS_INLINE decltype(auto) block_looking(Op& op, flow& f) {
    [[maybe_unused]] wait_room<Op> room;
    looking_waiter<Op> w(f, op, f.handle);
    if (!w.may_begin(Op::reports_stop, true) || !room.start(op, w))
        return op.take(&w, w.end_wait());
    return op.take(&w, w.park(deadline_of(op)));
}

// For an operation that the caller, and not the operation itself, has just found not ready.
template <class Op>
decltype(auto) block_unready(Op& op, std::source_location caller) {
    flow& f = blocking_flow(caller);
    if constexpr (repeated<Op>) {
        if (may_look_first(f)) [[likely]]
            return block_looking(op, f);
    }
    if (f.shares_stack()) [[unlikely]]
        return block_off_stack(op, f, caller);
    plain_wait<Op> by(f);
    return block_with(by, op);
}

template <class Op>
decltype(auto) block_for(Op& op, std::source_location caller) {
    if (flow* const f = current_flow(); f != nullptr && f->shares_stack()) [[unlikely]]
        return block_off_stack(op, *f, caller);
    if (ready_to_block(op, caller)) return op.take(nullptr, wait_status::woken);
    return block_unready(op, caller);
}

// As block_for, for an operation that is made here from small arguments, in a frame of its own.
template <class Op, class... Args>
WEFT_NOINLINE auto block_here(std::source_location caller, Args... args) {
    Op op(args...);
    return block_for(op, caller);
}
// The same in the caller's frame, where the gain is worth a copy of this code in each caller.
template <class Op, class... Args>
WEFT_ALWAYS_INLINE auto block_in_place(std::source_location caller, Args... args) {
    flow* const f = current_flow();
    if (f == nullptr || !may_look_first(*f)) [[unlikely]]
        return block_here<Op>(caller, args...);
    Op op(args...);
    if (op.ready()) return op.take(nullptr, wait_status::woken);
    return block_looking(op, *f);
}

// While a destructor runs because of an exception, the awaited object is not stopped. A wait can
// detect that by itself (waiter::may_begin), but not a wait that a coroutine reaches in a later
// turn.
class unwinding_shield {
public:
    explicit unwinding_shield(flow& f) noexcept : flow_(f), held_(std::uncaught_exceptions() != 0) {
        if (held_) flow_.raise_shield();
    }
    unwinding_shield(const unwinding_shield&) = delete;
    unwinding_shield& operator=(const unwinding_shield&) = delete;
    ~unwinding_shield() {
        if (held_) flow_.lower_shield();
    }

private:
    flow& flow_;
    const bool held_;
};

// The result of an await adapter. It lies on the stack of the blocked caller, so T may have any
// alignment.
template <class T>
class adapter_value {
    std::optional<std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>
        value_;

public:
    template <class U>
    void set(U&& u) {
        if constexpr (std::is_reference_v<T>)
            value_.emplace(detail::address_of(u));
        else
            value_.emplace(std::forward<U>(u));
    }
    T take() {
        if constexpr (std::is_reference_v<T>)
            return static_cast<T>(**value_);
        else
            return std::move(*value_);
    }
};
template <>
class adapter_value<void> {
public:
    void take() noexcept {}
};

// The rendezvous of the coroutine and the blocked caller; the second to arrive sees the first. The
// coroutine may end on another thread than it started on, if the object that it awaits is not
// weft's.
struct rendezvous {
    enum state : unsigned char { neither, waits, ended };

    atomic<unsigned char> met{neither};
    waiter* blocked = nullptr;  // set before `waits`
    std::exception_ptr error;   // set before `ended`

    // Called by the coroutine as its last step: if the caller does not wait yet, this object may be
    // gone after the exchange.
    void finish() noexcept {
        // Acquire and release: pairs with the exchange in wait(), both ways.
        if (met.exchange(ended, std::memory_order_acq_rel) != waits) return;
        if (blocked->claim()) blocked->wake();
    }
    void wait(flow& f) {
        // Acquire: pairs with finish().
        if (met.load(std::memory_order_acquire) == ended) return;
        maybe_boxed<waiter> w(f, f);
        w->handle = f.handle;
        blocked = &*w;
        // Acquire and release: pairs with finish(), both ways.
        if (met.exchange(waits, std::memory_order_acq_rel) != ended) w->park_outer();
    }
};

template <class T>
struct adapter_promise_value {
    adapter_value<T>* value = nullptr;
    template <class U>
    void return_value(U&& u) {
        value->set(std::forward<U>(u));
    }
};
template <>
struct adapter_promise_value<void> {
    adapter_value<void>* value = nullptr;
    void return_void() noexcept {}
};

// The coroutine that awaits on behalf of a blocked caller. It starts on the caller's thread.
template <class T>
class await_adapter {
public:
    struct ending {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
            h.promise().end->finish();
        }
        void await_resume() const noexcept {}
    };
    struct promise_type : adapter_promise_value<T> {
        rendezvous* end = nullptr;

        static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
        static void operator delete(void* p, std::size_t bytes) noexcept {
            block_cache::release(p, bytes);
        }
        await_adapter get_return_object() noexcept { return await_adapter(*this); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        ending final_suspend() const noexcept { return {}; }
        void unhandled_exception() { end->error = caught_exception(); }
    };

    explicit await_adapter(promise_type& p) noexcept
        : frame_(std::coroutine_handle<promise_type>::from_promise(p)) {}
    await_adapter(const await_adapter&) = delete;
    await_adapter& operator=(const await_adapter&) = delete;
    ~await_adapter() { frame_.destroy(); }

    T wait(flow& f) {
        struct meeting {
            rendezvous end;
            adapter_value<T> value;
        };
        maybe_boxed<meeting> place(f);
        frame_.promise().end = &place->end;
        frame_.promise().value = &place->value;
        frame_.resume();
        place->end.wait(f);
        if (place->end.error) std::rethrow_exception(place->end.error);
        return place->value.take();
    }

private:
    std::coroutine_handle<promise_type> frame_;
};

template <class A>
await_adapter<await_result_t<A>> adapter_to(A&& a) {
    // An awaiter that is returned by reference gets a name: GCC 12 copies one that a call returns.
    if constexpr (std::is_reference_v<awaiter_t<A>>) {
        auto&& awaiter = awaiter_of(std::forward<A>(a));
        co_return co_await awaiter;
    } else {
        co_return co_await std::forward<A>(a);
    }
}

// The same for an object on a shared stack, which is moved into the coroutine, or copied if the
// caller keeps it. That happens in the coroutine's first turn, in which the caller still runs.
template <class A>
await_adapter<await_result_t<A>> adapter_with(A&& on_stack) {
    std::remove_cvref_t<A> a(std::forward<A>(on_stack));
    if constexpr (std::is_reference_v<awaiter_t<A>>) {
        auto&& awaiter = awaiter_of(static_cast<A&&>(a));
        co_return co_await awaiter;
    } else {
        co_return co_await static_cast<A&&>(a);
    }
}

template <class A>
await_result_t<A> await_off_stack(A&& a, flow& f, std::source_location caller) {
    if constexpr (std::is_constructible_v<std::remove_cvref_t<A>, A&&>)
        return adapter_with<A>(std::forward<A>(a)).wait(f);
    else
        fail("what cannot be moved is awaited on a shared stack", f.info(), caller);
}

}  // namespace detail

// Waits for an object that is part of the call, or outlives it.
template <class A>
    requires operation<A> || awaitable<A>
decltype(auto) await(A&& a, std::source_location caller = std::source_location::current()) {
    if constexpr (operation<A>) {
        return detail::block_for(a, caller);
    } else {
        flow& f = detail::blocking_flow(caller);
        const detail::unwinding_shield until_it_is_through(f);
        if (detail::is_on_shared_stack(detail::address_of(a))) [[unlikely]]
            return detail::await_off_stack(std::forward<A>(a), f, caller);
        return detail::adapter_to(std::forward<A>(a)).wait(f);
    }
}

template <class A>
decltype(auto) sync_wait(A&& a, std::source_location caller = std::source_location::current()) {
    return await(std::forward<A>(a), caller);
}

}  // namespace weft
