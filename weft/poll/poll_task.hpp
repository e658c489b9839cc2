// poll_task<A>: any awaitable as a poll_future: lets code that polls use weft's own waits.
//
// Design: a coroutine in between awaits. Its frame comes from the block cache, and is destroyed
// with the poll_task, wherever the coroutine is suspended.
//
// A poll_task gives a fiber's value to user code that polls, or a task's value to a fiber, or the
// reverse. The awaitable (an operation, a task, an awaitable of another library) starts with the
// first poll or await, continues by itself, and stores its value or its exception in the poll_task.
//
// Limits: the coroutine waits in the flow that polled first, concurrently with that flow's own
// waits, so a poll_task must not outlive that flow.
//
//   weft::join_handle<int> stackful = weft::spawn(computes);
//   weft::poll_task value(stackful.async_get());
//   while (!value.poll()) draw_a_frame();            // or co_await value, or weft::await(value)
//   use(value.take());
#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/caught_exception.hpp"
#include "weft/poll/poll_future.hpp"
#include "weft/wait/awaitable.hpp"

namespace weft {
namespace detail {

template <class A>
using polled_t = std::conditional_t<std::is_rvalue_reference_v<await_result_t<A>>,
                                    std::remove_cvref_t<await_result_t<A>>, await_result_t<A>>;

// Fills the future, and makes it ready when the coroutine has reached its final suspension, so an
// agent that sees the future ready may destroy the frame.
template <class T>
class poll_promise {
public:
    struct ending {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
            h.promise().to->state_.publish();
        }
        void await_resume() const noexcept {}
    };

    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    ending final_suspend() const noexcept { return {}; }
    void unhandled_exception() { to->error_ = caught_exception(); }

    poll_future<T>* to = nullptr;

protected:
    template <class... U>
    void fill(U&&... u) {
        to->slot_.fill(std::forward<U>(u)...);
    }
};

template <class T>
struct poll_promise_with_value : poll_promise<T> {
    template <class U>
    void return_value(U&& u) {
        this->fill(std::forward<U>(u));
    }
};
template <>
struct poll_promise_with_value<void> : poll_promise<void> {
    void return_void() noexcept { fill(); }
};

// Owns the frame of the coroutine in between.
template <class T>
class poll_drive {
public:
    struct promise_type : poll_promise_with_value<T> {
        poll_drive get_return_object() noexcept {
            return poll_drive(std::coroutine_handle<promise_type>::from_promise(*this));
        }
    };

    poll_drive() noexcept = default;
    poll_drive(poll_drive&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    poll_drive& operator=(poll_drive&& other) noexcept {
        std::swap(frame_, other.frame_);
        return *this;
    }
    ~poll_drive() {
        if (frame_) frame_.destroy();
    }

    explicit operator bool() const noexcept { return frame_ != nullptr; }
    // The future may be destroyed during resume(): nothing is touched afterwards.
    void start(poll_future<T>& to) {
        frame_.promise().to = &to;
        frame_.resume();
    }

private:
    explicit poll_drive(std::coroutine_handle<promise_type> h) noexcept : frame_(h) {}
    std::coroutine_handle<promise_type> frame_;
};

template <class T, class A>
poll_drive<T> drive(A& a) {
    // An awaiter that is returned by reference gets a name: GCC 12 copies the result of such a
    // call.
    if constexpr (std::is_reference_v<awaiter_t<A>>) {
        auto&& awaiter = awaiter_of(std::forward<A>(a));
        co_return co_await awaiter;
    } else {
        co_return co_await std::forward<A>(a);
    }
}

// If A is a reference, the awaitable is stored elsewhere; otherwise the awaitable is stored here.
template <class A>
class drives {
    using T = polled_t<A>;

public:
    explicit drives(A&& a) : awaitable_(std::forward<A>(a)) {}
    drives(const drives&) = delete;
    drives& operator=(const drives&) = delete;

    bool is_begun() const noexcept { return static_cast<bool>(drive_); }
    void operator()(poll_future<T>& to, poll_context<drives>&) {
        if (is_begun()) return;  // the coroutine continues by itself
        drive_ = drive<T, A>(awaitable_);
        drive_.start(to);
    }

private:
    A awaitable_;
    poll_drive<T> drive_;
};

}  // namespace detail

template <awaitable A>
class [[nodiscard]] poll_task : public poll_future<detail::polled_t<A>, detail::drives<A>> {
    using future = poll_future<detail::polled_t<A>, detail::drives<A>>;

public:
    explicit poll_task(A&& a) : future(std::forward<A>(a)) {}
    poll_task(const poll_task&) = delete;
    poll_task& operator=(const poll_task&) = delete;

    bool poll(std::source_location caller = std::source_location::current()) {
        return expect_first(caller), future::poll();
    }
    bool ready(std::source_location caller = std::source_location::current()) {
        return expect_first(caller), future::ready();
    }
    // The awaited operation itself marks whether its event comes from outside.
    bool start(waiter& w) noexcept { return this->start_wait(w, false); }

private:
    void expect_first(std::source_location caller) {
        WEFT_ASSERT_AT(this->asked_ || !this->data().is_begun(),
                       "a poll_task has given its value away", caller);
    }
};
template <class A>
poll_task(A&&) -> poll_task<A>;

}  // namespace weft
