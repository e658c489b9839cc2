// task<T>: a C++20 coroutine that yields one T to the one who awaits it.
//
// The one idea: it is lazy and owned. Nothing runs before somebody awaits it or calls start(); then
// it runs on that one's thread until it suspends; when it has ended, its awaiter goes on at once,
// without a queue in between and without the stack growing, however many awaits complete
// on the spot and however long the chain. Destroying a task destroys its frame, and with it
// whatever the frame holds: the tasks that it awaits too, innermost first.
//
//   weft::task<int> length(std::string s) { co_return static_cast<int>(s.size()); }
//   weft::task<> main_task() { int n = co_await length("abc"); }
//
//   weft::task<> t = main_task();
//   t.start();                        // until it ends or awaits something that is not there yet
//   if (t.done()) t.get();            // the result, or the exception
//
// T may be void, a reference, move-only, without a default constructor, over-aligned. Anything that
// can be awaited can be awaited in a task, and a task can be awaited in any coroutine; an event
// resumes the task by the handle that its await_suspend was given.
//
// Rules, checked: a task is awaited once and started once, and never when empty. It may be awaited
// after start(); the awaiter then waits for the rest. Rules, not checked: it is not destroyed while
// it runs, and start(), the await and the resumption by events do not race each other. Give
// parameters by value: they live in the frame; references and a lambda's captures do not. Give a
// type that is built inside a co_await a constructor: the parts of an aggregate GCC 12 destroys
// twice.
//
// Frames come from a per-thread cache (base/block_cache.hpp); a coroutine whose first parameters
// are (std::allocator_arg, a) takes its frame from `a`. Destroying a chain of suspended tasks takes
// stack in proportion to its length.
#pragma once

#include <coroutine>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/task/task_promise.hpp"

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

// Apart, so that a body that never calls them needs no stack for their arguments. Of a co_await the
// compilers tell where its coroutine begins, and no more.
[[noreturn]] WEFT_COLD inline void fail_second_await(std::source_location place) {
    fail("second await of a task", {}, place);
}
[[noreturn]] WEFT_COLD inline void fail_empty_await(std::source_location place) {
    fail("await of an empty task", {}, place);
}

// The await_suspend of a task, in the body of the one who awaits.
template <class Awaiting, class T>
WEFT_ALWAYS_INLINE std::coroutine_handle<> await_task(std::coroutine_handle<Awaiting> h,
                                                      std::coroutine_handle<task_promise<T>> task,
                                                      std::source_location place) {
    constexpr bool from_outside = !std::is_base_of_v<transfer_base, Awaiting>;
    task_promise<T>& child = task.promise();
    if (__builtin_expect(!child.begun(), 1)) {
        child.awaiter = h;
        if constexpr (!from_outside) return hand_over(h.promise(), task, false);
        child.word |= transfer_base::foreign;
        return task;  // without tail calls it makes a trampoline at its first transfer
    }
    // It was begun by hand: the rest is waited for, or the awaiter goes on.
    if (child.awaited()) fail_second_await(place);
    child.awaiter = h;
    if constexpr (!from_outside) child.word &= ~transfer_base::foreign;
    if (!task.done()) return std::noop_coroutine();
    if constexpr (from_outside)
        return h;
    else
        return hand_over(h.promise(), h, false);
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
    // Inlined by force: it lies on the way of each co_await, and GCC, which weighs the whole body,
    // makes a call of it otherwise.
    WEFT_ALWAYS_INLINE ~task() {
        if (frame_) detail::destroy_task(frame_);
    }
    void swap(task& other) noexcept { std::swap(frame_, other.frame_); }

    // Whether there is a coroutine; not so by default, and after a move.
    explicit operator bool() const noexcept { return frame_ != nullptr; }

    // Runs the task until it suspends or ends. From then on events resume it.
    void start(std::source_location place = std::source_location::current());

    // Whether it has ended. An empty task has.
    bool done() const noexcept { return !frame_ || frame_.done(); }

    // The result of a task that is done; its exception is thrown.
    decltype(auto) get(std::source_location place = std::source_location::current()) & {
        return ended(place).get();
    }
    decltype(auto) get(std::source_location place = std::source_location::current()) && {
        return ended(place).take();
    }

    // co_await gives the result away. The task is its own awaiter, which spares the frame a copy.
    static constexpr bool await_ready() noexcept { return false; }
    template <class Awaiting>
    WEFT_ALWAYS_INLINE std::coroutine_handle<> await_suspend(
        std::coroutine_handle<Awaiting> h,
        std::source_location place = std::source_location::current()) {
        if (__builtin_expect(!frame_, 0)) detail::fail_empty_await(place);
        return detail::await_task(h, frame_, place);
    }
    T await_resume() { return frame_.promise().take(); }

private:
    friend promise;              // makes it
    friend detail::task_run<T>;  // takes it over

    explicit task(std::coroutine_handle<promise> frame) noexcept : frame_(frame) {}

    promise& ended(std::source_location place) const {
        if (!frame_) fail("result of an empty task", {}, place);
        if (!done()) fail("result of a task that has not ended", {}, place);
        return frame_.promise();
    }

    std::coroutine_handle<promise> frame_;
};

template <class T>
void task<T>::start(std::source_location place) {
    if (!frame_) fail("start of an empty task", {}, place);
    promise& p = frame_.promise();
    if (p.begun()) fail("second start of a task", {}, place);
    p.awaiter = std::noop_coroutine();
    p.word |= detail::transfer_base::foreign;
    if (p.goes_straight())
        frame_.resume();
    else
        detail::hand_over_slowly(nullptr, frame_, false).resume();
}

}  // namespace weft

template <class T, class... Args>
struct std::coroutine_traits<weft::task<T>, Args...> {
    using promise_type = weft::detail::promise_for<weft::detail::task_promise<T>, void, Args...>;
};
