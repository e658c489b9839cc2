// task_handle<T>: gives the result of a task that was spawned into a nursery.
//
// Design: get() moves the result out, and a second get() aborts. An exception that left the task is
// thrown by get(). If the task was stopped because a sibling failed, get() throws the sibling's
// error.
//
// Limits: destroying a handle has no effect: the nursery waits for the task. A stop of the caller
// of get() ends that wait, not the task.
//
//   weft::task_handle<bytes> x = nursery.spawn(fetch(a));    // or with {.name = "a", .on = pool}
//   bytes b = x.get();                 // in a fiber, on a thread
//   bytes c = co_await x.async_get();  // in a coroutine
#pragma once

#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/task/detail/task_run.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/nursery.hpp"

namespace weft {

template <class T>
class task_handle;

// The wait for the result of a task_handle.
template <class T>
class [[nodiscard]] task_result_operation : public detail::task_end {
public:
    T take(const waiter* w, wait_status how) {
        task_end::take(w, how);
        return of_->result(caller_);
    }

private:
    friend task_handle<T>;
    task_result_operation(task_handle<T>& h, std::source_location caller) noexcept
        : task_end(*h.run_, false), of_(&h), caller_(caller) {}
    task_handle<T>* of_;
    std::source_location caller_;  // of the call, for messages
};

template <class T>
class task_handle {
public:
    task_handle() noexcept = default;
    explicit task_handle(detail::task_run<T>&& run) noexcept : run_(std::move(run)) {}

    T get(std::source_location caller = std::source_location::current()) {
        return await(async_get(caller), caller);
    }
    [[nodiscard]] task_result_operation<T> async_get(
        std::source_location caller = std::source_location::current()) {
        if (!run_) fail("the result of a task_handle that has no task", {}, caller);
        return task_result_operation<T>(*this, caller);
    }

    explicit operator bool() const noexcept { return static_cast<bool>(run_); }
    bool done() const noexcept { return !run_ || run_->has_ended(); }
    task_status status() const noexcept { return run_ ? run_->status() : task_status::none; }
    std::uint64_t id() const noexcept { return run_ ? run_->id : 0; }
    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return !done() && run_->request_stop(reason);
    }

private:
    friend task_result_operation<T>;

    T result(std::source_location caller) {
        if (std::exchange(given_away_, true))
            fail("the result of a task_handle is asked for twice", run_->info(), caller);
        return run_.take();
    }

    detail::task_run<T> run_;
    bool given_away_ = false;
};

// Of a task in a nursery. A task has no stack, and its first turn is always posted: no more of
// fiber_options fits it.
struct task_options {
    std::string_view name = {};  // copied; for messages
    scheduler_ref on = {};       // an executor or a pool; by default the caller's
};
// A task is spawned with its own.
template <class T>
struct spawn_options_for<task<T>> {
    using type = task_options;
};

namespace detail {

// The body of a task with a name, which lasts as long as this frame. A task without one has no
// frame around its own.
template <class T>
task<T> named_task(task<T> t, [[maybe_unused]] task_name name) {
    if constexpr (std::is_void_v<T>)
        co_await std::move(t);
    else
        co_return co_await std::move(t);
}

template <class T>
task_run<T> run_of(task<T>&& t, const task_options& options, executor* on,
                   std::source_location caller) {
    if (options.name.empty()) return task_run<T>(std::move(t), on, caller);
    if (!task_run<T>::takes(t)) fail_begun(caller);
    task_name name(options.name);
    const char* const letters = name.letters();
    task_run<T> run(named_task(std::move(t), std::move(name)), on, caller);
    run->set_name(letters);
    return run;
}

}  // namespace detail

// The implementation of nursery::spawn for a task.
template <class T>
task_handle<T> spawn_into(nursery& n, task<T>&& t, const task_options& options,
                          std::source_location caller = std::source_location::current()) {
    scheduler& there = options.on ? *options.on : detail::scheduler_here();
    detail::task_run<T> run = detail::run_of(std::move(t), options, there.fixed_executor(), caller);
    n.add_child(run->member);
    run->post_first_turn(there);
    return task_handle<T>(std::move(run));
}

template <class T>
task_handle<T> spawn_into(nursery& n, task<T>&& t,
                          std::source_location caller = std::source_location::current()) {
    return spawn_into(n, std::move(t), task_options(), caller);
}

}  // namespace weft
