// schedule_on, resume_on: where a task runs.
//
// schedule_on(executor, task) runs the task there, as a flow of its own, and whoever awaits it goes
// on where he was. Whoever waits is stopped: the task is, and it is waited for. In place of an
// executor it may be a pool.
//
// co_await resume_on(executor) goes on there: from here on the whole line of tasks, up to the one
// that was spawned or awaited by a fiber or a thread, is that executor's. The result of a task is
// so handed over on another thread than it was asked for on; the fiber, the thread or the scope
// that waits for the line stays where it is. No wait, and so no place where a stop ends the task.
//
// A frame that is destroyed on its way to an executor is taken back: by the thread that runs the
// executor, or while none does. Any worker of a pool may run it at any moment, so that a frame on
// its way there cannot be destroyed without a race: it ends the program.
//
// A loop that ends while what lives in it waits for a task elsewhere asks that to stop and waits
// for its end, for a second at most: what does not end then ends the program.
//
//   bytes b = co_await weft::schedule_on(pool, compress(text));
//   co_await weft::resume_on(loop);
#pragma once

#include <optional>

#include "weft/task/sync_wait.hpp"
#include "weft/wait/operation.hpp"

namespace weft {

template <class T>
class [[nodiscard]] schedule_operation {
public:
    static constexpr bool reports_stop = false;

    schedule_operation(launcher& on, task<T>&& t) noexcept : on_(&on), task_(std::move(t)) {}
    // Before it is awaited.
    schedule_operation(schedule_operation&& other) noexcept
        : on_(other.on_), task_(std::move(other.task_)) {}

    bool ready() const noexcept { return false; }
    bool start(waiter& w) {
        run_ = detail::task_run<T>(std::move(task_), on_->only_executor());
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

    launcher* on_;
    task<T> task_;
    detail::task_run<T> run_;
    std::optional<detail::task_end> end_;
};

template <class T>
schedule_operation<T> schedule_on(launcher& on, task<T> t) noexcept {
    return schedule_operation<T>(on, std::move(t));
}

class [[nodiscard]] resume_on {
public:
    explicit resume_on(launcher& there,
                       std::source_location place = std::source_location::current()) noexcept
        : there_(&there), place_(place) {}
    // Before it is awaited.
    resume_on(resume_on&& other) noexcept : there_(other.there_), place_(other.place_) {}
    ~resume_on() {
        if (under_way_) take_back();
    }

    bool await_ready() const noexcept {
        executor* const here = current_executor();
        return here != nullptr && (there_ == here || there_ == &here->begins_on());
    }
    void await_suspend(std::coroutine_handle<> h) noexcept;
    void await_resume() noexcept;

private:
    void take_back() noexcept;

    launcher* const there_;
    const std::source_location place_;
    bool under_way_ = false;
    runnable turn_;
};

}  // namespace weft
