// poll_task<A>: anything that can be awaited, as a poll_future: the bridge from weft's own waits to
// who polls.
//
// A fiber's value for who polls by hand, a task's for a fiber or the reverse: what co_await takes
// (an operation, a task, somebody else's awaitable) begins with the first poll or await, goes on by
// itself, and leaves its value or its exception here.
//
//   weft::join_handle<int> stackful = weft::spawn(computes);
//   weft::poll_task value(stackful.async_get());
//   while (!value.poll()) draw_a_frame();            // or co_await value, or weft::await(value)
//   use(value.take());
//
// Its one idea: a coroutine in between awaits, whose frame comes from the block cache, and is gone
// with the poll_task, wherever it stands. What it waits for it waits for in the flow that polled
// first, beside what that one waits for; so it does not outlive that flow.
#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "weft/base/block_cache.hpp"
#include "weft/poll/poll_future.hpp"
#include "weft/wait/awaitable.hpp"

namespace weft {
namespace detail {

template <class A>
using polled_t = std::conditional_t<std::is_rvalue_reference_v<await_result_t<A>>,
                                    std::remove_cvref_t<await_result_t<A>>, await_result_t<A>>;

// Fills the future, and makes it ready when the coroutine has suspended for good: who sees that may
// destroy the frame.
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
    void unhandled_exception() noexcept { to->error_ = std::current_exception(); }

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

// The coroutine in between; owns its frame.
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
    // It may end the future with that: nothing is touched afterwards.
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
    // An awaiter that is given by reference is named: GCC 12 makes a copy of what a call gives so.
    if constexpr (std::is_reference_v<awaiter_t<A>>) {
        auto&& awaiter = awaiter_of(std::forward<A>(a));
        co_return co_await awaiter;
    } else {
        co_return co_await std::forward<A>(a);
    }
}

// A is a type, and the awaitable lies here; or a reference, and it lies elsewhere.
template <class A>
class drives {
    using T = polled_t<A>;

public:
    explicit drives(A&& a) : awaitable_(std::forward<A>(a)) {}
    drives(const drives&) = delete;

    bool begun() const noexcept { return static_cast<bool>(drive_); }
    void operator()(poll_future<T>& to, poll_context<drives>&) {
        if (begun()) return;  // it goes on by itself
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

    bool poll(std::source_location place = std::source_location::current()) {
        return expect_first(place), future::poll();
    }
    bool ready(std::source_location place = std::source_location::current()) {
        return expect_first(place), future::ready();
    }
    // What it awaits says itself whether it comes from outside.
    bool start(waiter& w) noexcept { return this->start_wait(w, false); }

private:
    void expect_first(std::source_location place) {
        WEFT_ASSERT_AT(this->asked_ || !this->data().begun(),
                       "a poll_task has given its value away", place);
    }
};
template <class A>
poll_task(A&&) -> poll_task<A>;

}  // namespace weft
