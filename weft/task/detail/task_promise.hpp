// task_promise<T>: the part of a task that is stored in its coroutine frame. See task.hpp.
//
// Design: as small as possible, because each frame has a promise: a word of state, the awaiter, and
// storage for the result.
//
//   | word | awaiter | T or exception_ptr |
//
// The class is the same whether the body was compiled with tail calls or not (see transfer.hpp).
#pragma once

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/platform.hpp"
#include "weft/task/detail/frame_memory.hpp"
#include "weft/task/detail/result_slot.hpp"
#include "weft/task/detail/transfer.hpp"

namespace weft {

template <class T>
class task;

namespace detail {

// Invariants:
// I1  slot_ holds an exception if `error` is set; else, once the task has ended, a T, and `value`
//     is set if that T has a destructor to run
// I2  slot_ begins right behind transfer_base, where error_of and destroy_task find the exception
template <class T>
class task_state : public transfer_base, public frame_memory {
public:
    task_state() noexcept = default;
    task_state(const task_state&) = delete;
    task_state& operator=(const task_state&) = delete;
    ~task_state() {
        if constexpr (!slot::trivial)
            if ((word & value) != 0) slot_.destroy_value();
    }

    WEFT_ALWAYS_INLINE std::suspend_always initial_suspend() noexcept {
        word = tail_call_bits;
        return {};
    }

    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        WEFT_ALWAYS_INLINE std::coroutine_handle<> await_suspend(
            std::coroutine_handle<Promise> h) const noexcept {
            return resume_awaiter(h.promise());
        }
        void await_resume() const noexcept {}
    };
    final_awaiter final_suspend() noexcept { return {}; }

    // A kill of the fiber that the body runs in continues into the fiber. The task then has no
    // result, which is represented by a null error.
    WEFT_COLD void unhandled_exception() {
        slot_.make_error(nullptr);
        word |= error;  // I1
        slot_.set_error(caught_exception());
    }

    // The task's value, or throws the task's exception. Precondition: the task has ended.
    T take() {
        if (__builtin_expect((word & error) != 0, 0)) slot_.rethrow();
        return slot_.take();
    }
    std::add_lvalue_reference_t<T> get() {
        if (__builtin_expect((word & error) != 0, 0)) slot_.rethrow();
        return slot_.get();
    }

protected:
    using slot = result_slot<T>;

    void holds_value() noexcept {
        if constexpr (!slot::trivial) word |= value;  // I1
    }

    slot slot_;
};

// A promise has either return_value or return_void.
template <class T>
class task_return : public task_state<T> {
public:
    template <class U = std::remove_cv_t<T>>
        requires(std::is_reference_v<T> ? std::convertible_to<U &&, T>
                                        : std::constructible_from<T, U>)
    void return_value(U&& result) noexcept(std::is_nothrow_constructible_v<T, U>) {
        this->slot_.make_value(std::forward<U>(result));
        this->holds_value();
    }
};
template <class T>
    requires std::is_void_v<T>
class task_return<T> : public task_state<T> {
public:
    void return_void() noexcept {}
};

template <class T>
class task_promise : public task_return<T> {
public:
    task<T> get_return_object() noexcept {
        return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
    }
};

}  // namespace detail
}  // namespace weft
