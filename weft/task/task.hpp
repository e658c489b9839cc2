// task<T>: a C++20 coroutine that delivers one T to its awaiter.
//
// Design: a task is lazy and owned. Nothing runs before the task is awaited or start() is called;
// the task then runs on the caller's thread until it suspends. When the task ends, its awaiter
// resumes at once, without a queue in between and without the stack growing, however many awaits
// complete immediately and however long the chain is. Destroying a task destroys its frame and
// everything in the frame, which includes the tasks that it awaits, innermost first.
//
// T may be void, a reference, move-only, without a default constructor, over-aligned. Any awaitable
// can be awaited in a task, and a task can be awaited in any coroutine. An event resumes the task
// by the handle that the event's await_suspend received.
//
// Frames come from a per-thread cache (base/detail/block_cache.hpp); a coroutine whose first
// parameters are (std::allocator_arg, a) takes its frame from `a`. Destroying a chain of suspended
// tasks takes stack in proportion to its length. A kill of the fiber on whose stack a body runs
// unwinds the body: the body's objects are destroyed, and the task never ends.
//
// Limits: a task is awaited once and started once, and never when empty; that is checked. A task
// may be awaited after start(); the awaiter then waits for the rest. What is not checked: a task is
// not destroyed while it runs, and start(), the await and the resumption by events do not race each
// other. Pass parameters by value: values are stored in the frame; the targets of references and a
// lambda's captures are not. Give a constructor to a type that is built inside a co_await: GCC 12
// destroys the parts of an aggregate twice.
//
//   weft::task<int> length(std::string s) { co_return static_cast<int>(s.size()); }
//   weft::task<> main_task() { int n = co_await length("abc"); }
//
//   weft::task<> t = main_task();
//   t.start();                        // runs the task until it ends, or has to wait
//   if (t.done()) t.get();            // the result, or the exception
#pragma once

#include <coroutine>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/task/detail/task_promise.hpp"

// Clang may put the frame of `co_await child()` into the parent's.
#if __has_cpp_attribute(clang::coro_await_elidable)
#define WEFT_TASK_ATTRIBUTES [[nodiscard, clang::coro_await_elidable]]
#else
#define WEFT_TASK_ATTRIBUTES [[nodiscard]]
#endif

namespace weft {

template <class T = void>
class task;

namespace detail {

template <class T>
class task_run;

template <class X>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

// Out of line, so that a body that never calls these functions needs no stack for their arguments.
// For a co_await the compilers report only the location where its coroutine begins.
[[noreturn]] WEFT_COLD inline void fail_second_await(std::source_location caller) {
    fail("second await of a task", {}, caller);
}
[[noreturn]] WEFT_COLD inline void fail_empty_await(std::source_location caller) {
    fail("await of an empty task", {}, caller);
}

// The await_suspend of a task, inlined into the body of the awaiter.
template <class Awaiting, class T>
WEFT_ALWAYS_INLINE std::coroutine_handle<> await_task(std::coroutine_handle<Awaiting> h,
                                                      std::coroutine_handle<task_promise<T>> task,
                                                      std::source_location caller) {
    constexpr bool from_outside = !std::is_base_of_v<transfer_base, Awaiting>;
    task_promise<T>& child = task.promise();
    if (__builtin_expect(!child.is_begun(), 1)) {
        child.awaiter = h;
        if constexpr (!from_outside) return transfer_to(h.promise(), task, false);
        child.word |= transfer_base::foreign;
        return task;  // without tail calls, the task makes a trampoline at its first transfer
    }
    // The task was started by start(): the awaiter waits for the rest, or resumes at once.
    if (child.is_awaited()) fail_second_await(caller);
    child.awaiter = h;
    if constexpr (!from_outside) child.word &= ~transfer_base::foreign;
    if (!task.done()) return std::noop_coroutine();
    if constexpr (from_outside)
        return h;
    else
        return transfer_to(h.promise(), h, false);
}

}  // namespace detail

template <class T>
class WEFT_TASK_ATTRIBUTES task {
    using promise = detail::task_promise<T>;

public:
    using value_type = T;

    task() noexcept = default;
    task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        task(std::move(other)).swap(*this);
        return *this;
    }
    // Always inlined: each co_await runs this destructor, and GCC, which judges by the size of the
    // whole body, would otherwise make a call.
    WEFT_ALWAYS_INLINE ~task() {
        if (frame_) detail::destroy_task(frame_);
    }
    void swap(task& other) noexcept { std::swap(frame_, other.frame_); }

    // Whether this object has a coroutine: false by default, and after a move.
    explicit operator bool() const noexcept { return frame_ != nullptr; }

    // Runs the task until it suspends or ends. From then on events resume the task.
    void start(std::source_location caller = std::source_location::current());

    // Whether the task has ended; true for an empty task.
    bool done() const noexcept { return !frame_ || frame_.done(); }

    // The result of a task that is done, or throws the task's exception.
    decltype(auto) get(std::source_location caller = std::source_location::current()) & {
        return ended(caller).get();
    }
    decltype(auto) get(std::source_location caller = std::source_location::current()) && {
        return ended(caller).take();
    }

    // co_await moves the result out. The task is its own awaiter, which saves a copy in the frame.
    static constexpr bool await_ready() noexcept { return false; }
    template <class Awaiting>
    WEFT_ALWAYS_INLINE std::coroutine_handle<> await_suspend(
        std::coroutine_handle<Awaiting> h,
        std::source_location caller = std::source_location::current()) {
        if (__builtin_expect(!frame_, 0)) detail::fail_empty_await(caller);
        return detail::await_task(h, frame_, caller);
    }
    T await_resume() { return frame_.promise().take(); }

private:
    friend promise;              // makes the task
    friend detail::task_run<T>;  // takes the frame

    explicit task(std::coroutine_handle<promise> frame) noexcept : frame_(frame) {}

    promise& ended(std::source_location caller) const {
        if (!frame_) fail("result of an empty task", {}, caller);
        if (!done()) fail("result of a task that has not ended", {}, caller);
        return frame_.promise();
    }

    std::coroutine_handle<promise> frame_;
};

template <class T>
void task<T>::start(std::source_location caller) {
    if (!frame_) fail("start of an empty task", {}, caller);
    promise& p = frame_.promise();
    if (p.is_begun()) fail("second start of a task", {}, caller);
    p.awaiter = std::noop_coroutine();
    p.word |= detail::transfer_base::foreign;
    if (p.goes_straight())
        frame_.resume();
    else
        detail::transfer_slowly(nullptr, frame_, false).resume();
}

}  // namespace weft

template <class T, class... Args>
struct std::coroutine_traits<weft::task<T>, Args...> {
    using promise_type = weft::detail::promise_for<weft::detail::task_promise<T>, void, Args...>;
};
