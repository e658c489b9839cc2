// manager_core: the part of a task_manager that depends neither on the type of an id nor of a
// value.
//
//   spawn: admit -> make (managed_fiber, managed_coroutine) -> enter -> start
//   end:   managed_task::ended -> hooks -> leave -> joiners
//
// Design: it owns no thread and runs nothing. It has the live tasks (task_table), the present time
// (from a timer of an executor, or from the caller of tick), and the waiters for the end of all
// tasks.
//
// Model: test/model/live_count_test.cpp, test/model/task_table_test.cpp
#pragma once

#include <source_location>
#include <vector>

#include "weft/base/result.hpp"
#include "weft/manager/detail/manager_timer.hpp"
#include "weft/manager/detail/reply_table.hpp"
#include "weft/manager/detail/task_table.hpp"
#include "weft/manager/manager_options.hpp"
#include "weft/wait/scheduler.hpp"

namespace weft::detail {

class manager_core {
public:
    explicit manager_core(const manager_options& o);
    manager_core(const manager_core&) = delete;
    manager_core& operator=(const manager_core&) = delete;
    ~manager_core();  // kills all, and waits for them

    // Admits one more task, or returns why not. Then enter(), or unadmit(): see admission.
    std::error_code admit() noexcept;
    void unadmit() noexcept { live_.leave(); }
    // Gives the task its id, under which it is found; refused if the manager was closed since.
    // Throws bad_alloc.
    result<std::uint64_t> enter(managed_task& t, duration timeout);
    // Called by the task, as the last thing that it does here.
    void leave(managed_task& t) noexcept;

    scheduler& scheduler_for(scheduler_ref asked, std::source_location caller) const;

    managed_ref find(std::uint64_t id) noexcept { return table_.find(id); }
    // See task_table.
    resume_offer offer(std::uint64_t id, type_id type, kept_value* keep) noexcept {
        const resume_offer o = table_.offer(id, type, keep);
        if (o.refused == manager_errc::type_mismatch) [[unlikely]]
            misfits_.fetch_add(1, std::memory_order_relaxed);
        return o;
    }
    kept_value* suspend(managed_task& t, waiter& w, type_id type) noexcept {
        return table_.suspend(t, w, type);
    }
    [[nodiscard]] bool cancel_suspended(managed_task& t, waiter& w) noexcept {
        return table_.cancel(t, w);
    }

    std::error_code start(std::uint64_t id);
    std::error_code cancel(std::uint64_t id, stop_reason reason) noexcept;
    std::error_code kill(std::uint64_t id, stop_reason reason) noexcept;
    std::error_code set_deadline(std::uint64_t id, time_point t) noexcept;
    time_point deadline_of(std::uint64_t id) noexcept;

    std::size_t tick(time_point now, std::size_t budget) noexcept;
    time_point next_deadline() const noexcept;
    time_point now() const noexcept;

    void stop_all(stop_reason reason, duration grace) noexcept;
    void restart() noexcept { live_.restart(); }
    std::vector<std::uint64_t> ids() const { return table_.ids(); }
    std::size_t count() const noexcept { return live_.count(); }
    manager_stats stats() const noexcept;
    void check() const noexcept { table_.check(); }

    reply_table& replies() noexcept { return replies_; }
    void count_misfit() noexcept { misfits_.fetch_add(1, std::memory_order_relaxed); }
    home_lock& joins_lock() noexcept { return joins_lock_; }

    // The wait until no task is live.
    class [[nodiscard]] idle_operation {
    public:
        static constexpr bool reports_stop = true;

        idle_operation(manager_core& c, time_limit limit) noexcept : core_(&c), limit_(limit) {}
        // Only before the operation is awaited.
        idle_operation(idle_operation&& other) noexcept
            : core_(other.core_), limit_(other.limit_) {}
        bool ready() const noexcept { return core_->live_.is_empty(); }
        bool start(waiter& w) noexcept;
        time_point deadline() const noexcept { return detail::deadline_of(limit_); }
        result<void> take(const waiter*, wait_status how) const;

    private:
        manager_core* core_;
        time_limit limit_;
        wait_node node_;
    };
    [[nodiscard]] idle_operation async_wait_until_idle(time_limit limit) noexcept {
        return {*this, limit};
    }

private:
    static time_point on_time(void* self) noexcept;
    std::error_code cancel(managed_task& t, stop_reason reason) noexcept;
    std::error_code kill(managed_task& t, stop_reason reason) noexcept;
    void expire(managed_task& t) noexcept;
    void rest_timer() noexcept;
    void need_timer(weft::tick deadline) noexcept {
        if (timer_ != nullptr && deadline != tick_never) timer_->need(time_of(deadline));
    }
    weft::tick tick_of(time_point t) const noexcept;  // the first that is not before t
    weft::tick tick_at(time_point t) const noexcept;  // the last that is not after t
    time_point time_of(weft::tick n) const noexcept;

    const manager_options options_;
    const time_point base_;            // tick 0
    atomic<time_point::rep> present_;  // the latest time that tick() was given
    task_table table_;
    reply_table replies_;
    home_lock joins_lock_;  // guards `joins` of each task
    // Orders: relaxed, these are only counted.
    atomic<std::uint64_t> refused_{0};
    atomic<std::uint64_t> misfits_{0};
    live_count live_;
    manager_timer* timer_ = nullptr;
};

// A task on its way into a manager; dropped if it does not get there.
class admission {
public:
    explicit admission(manager_core& c) noexcept : core_(c), refused_(c.admit()) {}
    admission(const admission&) = delete;
    admission& operator=(const admission&) = delete;
    ~admission() {
        if (refused_ || entered_) return;
        if (task_ != nullptr) {
            task_->kind->drop(*task_);
            task_->release();
        }
        core_.unadmit();
    }

    std::error_code refused() const noexcept { return refused_; }
    managed_task& hold(managed_task& t) noexcept { return *(task_ = &t); }
    result<std::uint64_t> enter(duration timeout) {
        auto id = core_.enter(*task_, timeout);
        entered_ = id.has_value();
        return id;
    }

private:
    manager_core& core_;
    const std::error_code refused_;
    managed_task* task_ = nullptr;
    bool entered_ = false;
};

}  // namespace weft::detail
