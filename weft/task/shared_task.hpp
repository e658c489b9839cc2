// shared_task<T>: a task whose result any number of agents may await, on any threads.
//
// Design: a shared_task is a flow of its own that starts once, with a queue of the waiters for its
// end. Copies are handles of the same task; the result lives as long as one of the handles.
// co_await of a named handle gives a reference to the result, co_await of a temporary handle a
// copy. An exception is thrown to each awaiter.
//
// A stop of an awaiter ends that awaiter's wait and not the task; request_stop() stops the task. A
// task that has started runs to its end, even if the last handle is gone.
//
// Limits: the task runs on the executor of the awaiter that starts it. If that executor is a plain
// thread that ends before the task, the task stays unfinished and all other waiters wait forever. A
// task that several threads await is therefore started on a loop, for example by schedule_on.
//
//   weft::shared_task<config> load() { co_return co_await read("weft.conf"); }
//   weft::shared_task<config> c = load();       // nothing runs yet
//   const config& x = co_await c;               // the first await starts the task, on its executor
//
// Model: test/model/shared_task_test.cpp
#pragma once

#include <atomic>
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/task/detail/task_run.hpp"
#include "weft/wait/operation.hpp"

namespace weft {

template <class T = void>
class shared_task;

namespace detail {

template <class T>
struct shared_state {
    task_run<T> run;  // has no executor before the start: an earlier stop has no flow to notify
    atomic<bool> begun{false};

    // Called by each awaiter; the first call starts the task on the caller's executor.
    void begin() noexcept {
        // Relaxed: only decides which call is first; the post publishes the task.
        if (begun.exchange(true, std::memory_order_relaxed)) return;
        run->migrate_to(&executor_here());
        run->post_first_turn();
    }
};

// Result: a reference, or a value for an awaiter whose handle is a temporary.
template <class T, class Result>
class shared_operation {
public:
    static constexpr bool reports_stop = false;

    explicit shared_operation(std::shared_ptr<shared_state<T>> s) noexcept
        : state_(std::move(s)), end_(*state_->run, false) {}
    bool ready() const noexcept { return end_.ready(); }
    bool start(waiter& w) noexcept {
        state_->begin();  // posts the task, which does not run before start() returns
        return end_.start(w);
    }
    Result take(const waiter* w, wait_status how) {
        end_.take(w, how);
        return state_->run.get_result();
    }

private:
    std::shared_ptr<shared_state<T>> state_;
    task_end end_;
};

// An operation and its awaiter in one.
template <class Op>
class owning_awaiter {
public:
    template <class... Args>
    explicit owning_awaiter(Args&&... args) : op_(std::forward<Args>(args)...), awaiter_(op_) {}
    owning_awaiter(const owning_awaiter&) = delete;
    owning_awaiter& operator=(const owning_awaiter&) = delete;
    bool await_ready() { return awaiter_.await_ready(); }
    bool await_suspend(std::coroutine_handle<> h) { return awaiter_.await_suspend(h); }
    decltype(auto) await_resume() { return awaiter_.await_resume(); }

private:
    Op op_;
    operation_awaiter<Op> awaiter_;
};

}  // namespace detail

template <class T>
class [[nodiscard]] shared_task {
    using reference = std::add_lvalue_reference_t<std::add_const_t<T>>;
    using copy = std::conditional_t<std::is_reference_v<T>, T, std::remove_cv_t<T>>;

public:
    using value_type = T;

    shared_task() noexcept = default;
    explicit shared_task(std::shared_ptr<detail::shared_state<T>> s) noexcept
        : state_(std::move(s)) {}
    // Takes any task that has not begun.
    explicit shared_task(task<T>&& t) : state_(std::make_shared<detail::shared_state<T>>()) {
        state_->run = detail::task_run<T>(std::move(t), nullptr);
    }

    explicit operator bool() const noexcept { return state_ != nullptr; }
    bool done() const noexcept { return !state_ || state_->run->has_ended(); }
    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return !done() && state_->run->request_stop(reason);
    }

    auto operator co_await() const& {
        return detail::owning_awaiter<detail::shared_operation<T, reference>>(checked());
    }
    auto operator co_await() const&& {
        return detail::owning_awaiter<detail::shared_operation<T, copy>>(checked());
    }

private:
    const std::shared_ptr<detail::shared_state<T>>& checked() const {
        if (!state_) fail("await of a shared_task that is empty", {}, unknown_caller);
        return state_;
    }

    std::shared_ptr<detail::shared_state<T>> state_;
};

namespace detail {

template <class T>
class shared_promise : public task_return<T> {
public:
    // The state is made first: if that throws, the frame still belongs to this function's caller.
    shared_task<T> get_return_object() {
        auto state = std::make_shared<shared_state<T>>();
        state->run = task_run<T>::for_frame(
            std::coroutine_handle<shared_promise>::from_promise(*this), nullptr);
        return shared_task<T>(std::move(state));
    }
};

}  // namespace detail
}  // namespace weft

template <class T, class... Args>
struct std::coroutine_traits<weft::shared_task<T>, Args...> {
    using promise_type = weft::detail::promise_for<weft::detail::shared_promise<T>, void, Args...>;
};
