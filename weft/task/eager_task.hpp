// eager_task<T>: a task that starts within the call that makes it, and is awaited later.
//
// Design: an eager_task is a flow of its own, whose first turn is the call itself. The task then
// runs on the caller's executor, whether it is awaited or not. The first awaiter gets the result; a
// stop of the awaiter is forwarded to the task. An exception is kept for the awaiter.
//
// Limits: destroying an eager_task that has not ended destroys the frame; only the thread of the
// task's executor may do so. Within the task's own body, which is running then, the destruction
// requests a stop and lets the body run to its end. To let a task end by itself, spawn it into a
// nursery.
//
//   weft::eager_task<bytes> ahead = read_ahead(file);     // the request is on its way
//   prepare();
//   bytes b = co_await ahead;
#pragma once

#include <optional>
#include <source_location>
#include <utility>

#include "weft/task/detail/task_run.hpp"
#include "weft/wait/operation.hpp"

namespace weft {

template <class T = void>
class [[nodiscard]] eager_task {
public:
    using value_type = T;
    static constexpr bool reports_stop = false;

    eager_task() noexcept = default;
    explicit eager_task(detail::task_run<T>&& run) noexcept : run_(std::move(run)) {}
    // Only while no awaiter waits for `other`.
    eager_task(eager_task&& other) noexcept : run_(std::move(other.run_)) {}
    eager_task& operator=(eager_task&& other) noexcept {
        if (this != &other) {
            end();
            end_.reset();
            run_ = std::move(other.run_);
        }
        return *this;
    }
    // Destroys the frame, or within the body requests a stop. Aborts on another executor.
    ~eager_task() { end(); }

    explicit operator bool() const noexcept { return static_cast<bool>(run_); }
    bool done() const noexcept { return !run_ || run_->has_ended(); }
    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return !done() && run_->request_stop(reason);
    }

    // An eager_task is an operation itself, for co_await, weft::await or sync_wait.
    bool ready(std::source_location caller = std::source_location::current()) const {
        return checked(caller)->has_ended();
    }
    bool start(waiter& w) noexcept { return end_.emplace(*run_, true).start(w); }
    T take(const waiter* w, wait_status how) {
        if (how == wait_status::stopped) detail::throw_stopped(w->reason());
        end_.reset();
        return std::exchange(run_, {}).take();
    }

private:
    const detail::task_run<T>& checked(std::source_location caller) const {
        if (!run_) fail("await of an eager_task that is empty", {}, caller);
        if (end_) fail("second await of an eager_task", run_->info(), caller);
        return run_;
    }
    void end() noexcept {
        if (done()) return;
        if (!run_->is_at(&detail::executor_here()))
            fail("an eager_task is destroyed that runs on another executor", run_->info(),
                 unknown_caller);
        if (run_.get() == current_flow())
            run_->request_stop(stop_reason::user);  // the task's last turn destroys the frame
        else
            run_->kind->end(*run_);
    }

    detail::task_run<T> run_;
    std::optional<detail::task_end> end_;
};

namespace detail {

template <class T>
class eager_promise : public task_return<T> {
public:
    eager_task<T> get_return_object() {
        task_run<T> run = task_run<T>::for_frame(
            std::coroutine_handle<eager_promise>::from_promise(*this), &executor_here());
        this->awaiter = run->frame::handle();
        return eager_task<T>(std::move(run));
    }
    struct begin_here {
        bool await_ready() const noexcept { return false; }
        // A kill of the stack that this turn runs on aborts: both the call that made the frame and
        // the flow would destroy the frame.
        void await_suspend(std::coroutine_handle<eager_promise> h) const noexcept {
            auto* f = static_cast<frame*>(h.promise().awaiter.address());
            static_cast<task_flow*>(f)->run_first_turn();
        }
        void await_resume() const noexcept {}
    };
    WEFT_ALWAYS_INLINE begin_here initial_suspend() noexcept {
        static_cast<void>(task_return<T>::initial_suspend());
        return {};
    }
};

}  // namespace detail
}  // namespace weft

template <class T, class... Args>
struct std::coroutine_traits<weft::eager_task<T>, Args...> {
    using promise_type = weft::detail::promise_for<weft::detail::eager_promise<T>, void, Args...>;
};
