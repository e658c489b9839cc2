// schedule_on, resume_on: choose the executor that a task runs on.
//
// Design: schedule_on(executor, task) runs the task on that executor, as a flow of its own; the
// awaiter resumes on its own executor. A stop of the awaiter is forwarded to the task; the await
// returns when the task is done. A pool may be given in place of the executor.
//
// co_await resume_on(executor) resumes the coroutine on that executor. The whole awaiter chain
// migrates with the coroutine, up to the task that was spawned, or awaited by a fiber or a thread.
// A result may therefore be delivered on another thread than the one that awaited the task. The
// fiber, the thread or the scope that waits for the chain stays on its executor. resume_on is not a
// wait, so a stop does not end the task in it.
//
// Limits: destroying a frame that is posted to an executor cancels the post; only the thread that
// runs the executor may do so, or any thread while none runs it. Destroying a frame that is posted
// to a pool aborts: any worker may run the frame at any time, so a cancellation would race. A loop
// that ends while a flow of it waits for a task on another executor requests a stop of that task
// and waits for the task's end, for at most a second. A task that has not ended by then aborts the
// program.
//
//   bytes b = co_await weft::schedule_on(pool, compress(text));
//   co_await weft::resume_on(loop);
#pragma once

#include <optional>

#include "weft/task/sync_wait.hpp"
#include "weft/wait/operation.hpp"

namespace weft {

// The operation that schedule_on() returns.
template <class T>
class [[nodiscard]] schedule_operation {
public:
    static constexpr bool reports_stop = false;

    schedule_operation(scheduler& on, task<T>&& t) noexcept : on_(&on), task_(std::move(t)) {}
    // Only before the await.
    schedule_operation(schedule_operation&& other) noexcept
        : on_(other.on_), task_(std::move(other.task_)) {}

    bool ready() const noexcept { return false; }
    bool start(waiter& w) {
        run_ = detail::task_run<T>(std::move(task_), on_->fixed_executor());
        end_.emplace(*run_, true);
        run_->post_first_turn(*on_);
        return end_->start(w);
    }
    T take(const waiter* w, wait_status how) {
        if (!run_) end_taken(w, how);
        return run_.take();
    }

private:
    [[noreturn]] static void end_taken(const waiter* w, wait_status) {
        detail::throw_stopped(w->reason());
    }

    scheduler* on_;
    task<T> task_;
    detail::task_run<T> run_;
    std::optional<detail::task_end> end_;
};

template <class T>
schedule_operation<T> schedule_on(scheduler& on, task<T> t) noexcept {
    return schedule_operation<T>(on, std::move(t));
}

// For the message alone.
template <class X>
    requires(!detail::is_task<std::remove_cvref_t<X>>)
void schedule_on(scheduler&, X&&) {
    static_assert(detail::is_task<X>,
                  "schedule_on takes a task; a function is called first, and another awaitable is "
                  "awaited in a task");
}

class [[nodiscard]] resume_on {
public:
    explicit resume_on(scheduler& there,
                       std::source_location caller = std::source_location::current()) noexcept
        : there_(&there), caller_(caller) {}
    // Only before the await.
    resume_on(resume_on&& other) noexcept : there_(other.there_), caller_(other.caller_) {}
    // Cancels the post, on the thread that runs the executor. Aborts if a pool has the post.
    ~resume_on() {
        if (under_way_) take_back();
    }

    bool await_ready() const noexcept {
        executor* const here = current_executor();
        return here != nullptr && (there_ == here || there_ == &here->default_scheduler());
    }
    void await_suspend(std::coroutine_handle<> h) noexcept;
    void await_resume() noexcept;

private:
    void take_back() noexcept;

    scheduler* const there_;
    const std::source_location caller_;
    bool under_way_ = false;
    runnable turn_;
};

}  // namespace weft
