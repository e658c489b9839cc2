// task_run<T>: a task_flow with its type, and the owner of its result.
//
//   task_run<int> run(some_task(), executor);
//   run->post_first_turn();   ...   once the task has ended: run.take()
#pragma once

#include <type_traits>
#include <utility>

#include "weft/task/detail/as_task.hpp"
#include "weft/task/detail/task_flow.hpp"
#include "weft/task/task.hpp"

namespace weft::detail {

[[noreturn]] WEFT_COLD inline void fail_begun(std::source_location caller) {
    fail("a task that is empty or has begun is to be run", {}, caller);
}

template <class T>
class task_run {
public:
    task_run() noexcept = default;
    // Throws bad_alloc, and then leaves t alone. `on` null: the start chooses the executor.
    task_run(task<T>&& t, executor* on,
             std::source_location caller = std::source_location::current()) {
        if (!t.frame_ || t.frame_.promise().is_begun()) fail_begun(caller);
        run_ = new task_flow(t.frame_, on);
        t.frame_ = nullptr;
    }
    task_run(task<T>&& t, executor& on,
             std::source_location caller = std::source_location::current())
        : task_run(std::move(t), &on, caller) {}
    // Takes a coroutine whose promise derives from task_return<T> and adds nothing; called while
    // its frame is made. Throws bad_alloc, and then leaves the frame alone.
    template <class Promise>
    static task_run for_frame(std::coroutine_handle<Promise> h, executor* on) {
        static_assert(std::is_base_of_v<task_return<T>, Promise> &&
                      sizeof(Promise) == sizeof(task_promise<T>) &&
                      alignof(Promise) == alignof(task_promise<T>));
        task_run made;
        made.run_ = new task_flow(h, on);
        return made;
    }
    task_run(task_run&& other) noexcept : run_(std::exchange(other.run_, nullptr)) {}
    task_run& operator=(task_run&& other) noexcept {
        task_run(std::move(other)).swap(*this);
        return *this;
    }
    ~task_run() {
        if (run_ != nullptr) run_->unwant();
    }
    void swap(task_run& other) noexcept { std::swap(run_, other.run_); }

    task_flow* get() const noexcept { return run_; }
    task_flow* operator->() const noexcept { return run_; }
    task_flow& operator*() const noexcept { return *run_; }
    explicit operator bool() const noexcept { return run_ != nullptr; }

    // Called once, after the task has ended.
    T take() {
        run_->check_outcome();
        return promise_of(run_->body).take();
    }

    // Called any number of times, after the task has ended: a reference to the value, which stays.
    std::add_lvalue_reference_t<T> get_result() {
        run_->check_outcome();
        return promise_of(run_->body).get();
    }

    // Whether a task_run can take t. False after start(), when t can still be awaited.
    static bool takes(const task<T>& t) noexcept {
        return t.frame_ && !t.frame_.promise().is_begun();
    }

    // For a caller that runs the task's frame itself, and then owns the frame and its result.
    static std::coroutine_handle<> frame_of(task<T>&& t) noexcept {
        if (!takes(t)) [[unlikely]]
            fail_begun(std::source_location::current());
        return std::exchange(t.frame_, nullptr);
    }
    static kept_t<T> take_of(std::coroutine_handle<> h) {
        if constexpr (std::is_void_v<T>) {
            promise_of(h).take();
            return {};
        } else {
            return promise_of(h).take();
        }
    }

private:
    static task_promise<T>& promise_of(std::coroutine_handle<> h) noexcept {
        return std::coroutine_handle<task_promise<T>>::from_address(h.address()).promise();
    }

    task_flow* run_ = nullptr;
};

}  // namespace weft::detail
