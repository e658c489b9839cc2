// await, sync_wait: how a fiber and a thread wait for anything that can be awaited.
//
// Its one idea: what co_await does for a coroutine, these do for whoever has a stack. An operation
// enlists the caller itself; anything else is awaited by a small coroutine that runs on the
// caller's own thread, begins at once, and wakes the caller when it is through.
//
//   int n = weft::await(channel.async_recv());        // in a fiber: suspends it alone
//   int m = weft::sync_wait(some_task());             // on a thread: sleeps
//
// Both do what fits where they are called; sync_wait says that a thread was meant. In the body of a
// C++20 coroutine neither can suspend, and the call ends the program: there it is co_await.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/block_cache.hpp"
#include "weft/wait/awaitable.hpp"
#include "weft/wait/operation.hpp"

namespace weft {
namespace detail {

// The flow that blocks here. Ends the program where none can.
flow& blocking_flow(std::source_location place) noexcept;

template <class Op>
decltype(auto) block_for(Op& op, std::source_location place) {
    if (op.ready()) return op.take(nullptr, wait_status::woken);
    flow& f = blocking_flow(place);
    waiter w(f);
    w.handle = f.handle;
    if (!w.admit(Op::reports_stop) || !op.start(w)) return op.take(&w, w.conclude());
    return op.take(&w, w.park(deadline_of(op)));
}

// What a bridge ends with.
template <class T>
class bridge_value {
    std::optional<std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>
        value_;

public:
    template <class U>
    void return_value(U&& u) {
        if constexpr (std::is_reference_v<T>)
            value_.emplace(std::addressof(u));
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
class bridge_value<void> {
public:
    void return_void() noexcept {}
    void take() noexcept {}
};

// The coroutine that awaits for who blocks. It runs on the blocked one's thread.
template <class T>
class bridge {
public:
    struct ending {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
            waiter* w = h.promise().blocked;
            if (w != nullptr && w->claim()) w->wake();
        }
        void await_resume() const noexcept {}
    };
    struct promise_type : bridge_value<T> {
        waiter* blocked = nullptr;  // once the caller waits
        std::exception_ptr error;

        static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
        static void operator delete(void* p, std::size_t bytes) noexcept {
            block_cache::release(p, bytes);
        }
        bridge get_return_object() noexcept { return bridge(*this); }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        ending final_suspend() const noexcept { return {}; }
        void unhandled_exception() noexcept { error = std::current_exception(); }
    };

    explicit bridge(promise_type& p) noexcept
        : frame_(std::coroutine_handle<promise_type>::from_promise(p)) {}
    bridge(const bridge&) = delete;
    ~bridge() { frame_.destroy(); }

    T wait(flow& f) {
        promise_type& p = frame_.promise();
        if (!frame_.done()) {
            waiter w(f);
            w.handle = f.handle;
            p.blocked = &w;
            w.park_outer();
        }
        if (p.error) std::rethrow_exception(std::exchange(p.error, nullptr));
        return p.take();
    }

private:
    std::coroutine_handle<promise_type> frame_;
};

template <class A>
bridge<await_result_t<A>> bridge_to(A&& a) {
    co_return co_await std::forward<A>(a);
}

}  // namespace detail

// Waits for what stands in the call, or outlives it.
template <class A>
    requires operation<A> || awaitable<A>
decltype(auto) await(A&& a, std::source_location place = std::source_location::current()) {
    if constexpr (operation<A>) {
        return detail::block_for(a, place);
    } else {
        flow& f = detail::blocking_flow(place);
        return detail::bridge_to(std::forward<A>(a)).wait(f);
    }
}

template <class A>
decltype(auto) sync_wait(A&& a, std::source_location place = std::source_location::current()) {
    return await(std::forward<A>(a), place);
}

}  // namespace weft
