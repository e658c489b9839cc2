// task_group: tasks that start together and are awaited together; the common part of when_all,
// when_any and when_n.
//
// Design: each task is a flow of its own in one scope. The tasks start in order on the awaiter's
// executor, or in no order in the awaiter's pool; the last task to end wakes the awaiter. No task
// is left behind: a stop of the awaiter, or the end of the race, is forwarded to every task, and
// the await returns when all have ended.
//
// The result is taken from the tasks' own frames when all have ended; the derived classes define
// its type.
#pragma once

#include <array>
#include <exception>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/task/detail/as_task.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/wait/detail/scope.hpp"

namespace weft {
namespace detail {

class task_group {
public:
    static constexpr bool reports_stop = false;

    explicit task_group(std::size_t enough) noexcept : enough_(enough) {}

    // The errors of all tasks that failed, in the order of failure: the first is the one that was
    // thrown. Empty before the await.
    std::vector<std::exception_ptr> errors() const {
        return scope_ ? scope_->errors() : std::vector<std::exception_ptr>();
    }

protected:
    ~task_group() = default;

    // False if there is no task to wait for.
    bool begin(waiter& w, std::span<task_flow* const> tasks);
    // Throws if the wait was stopped before the tasks began.
    void check_begun(const waiter* w, wait_status how) const;
    // Throws the first error; without an error, throws `stopped` if a task was stopped.
    void check_all(std::span<task_flow* const> tasks) const;

    std::size_t enough_;

private:
    std::optional<scope> scope_;
    std::optional<scope::end_operation> join_;
};

// Tasks of several types, or a range of one.
template <class... Ts>
class mixed_group : public task_group {
public:
    explicit mixed_group(std::size_t enough, task<Ts>&&... tasks) noexcept
        : task_group(enough), tasks_(std::move(tasks)...) {}
    // Only before the await.
    mixed_group(mixed_group&& other) noexcept
        : task_group(other.enough_), tasks_(std::move(other.tasks_)) {}

    bool ready() const noexcept { return sizeof...(Ts) == 0; }
    bool start(waiter& w) {
        std::apply(
            [&](auto&... t) {
                runs_.emplace(task_run<Ts>(std::move(t), scheduler_here().fixed_executor())...);
            },
            tasks_);
        return begin(w, flows());
    }

protected:
    ~mixed_group() = default;

    std::array<task_flow*, sizeof...(Ts)> flows() const noexcept {
        return std::apply(
            [](auto&... r) { return std::array<task_flow*, sizeof...(Ts)>{r.get()...}; }, *runs_);
    }

    std::tuple<task<Ts>...> tasks_;
    std::optional<std::tuple<task_run<Ts>...>> runs_;
};

template <class T>
class range_group : public task_group {
public:
    explicit range_group(std::size_t enough, std::vector<task<T>> tasks) noexcept
        : task_group(enough), tasks_(std::move(tasks)) {}
    range_group(range_group&& other) noexcept
        : task_group(other.enough_), tasks_(std::move(other.tasks_)) {}

    bool ready() const noexcept { return tasks_.empty(); }
    bool start(waiter& w) {
        runs_.reserve(tasks_.size());
        flows_.reserve(tasks_.size());
        for (task<T>& t : tasks_) {
            runs_.emplace_back(std::move(t), scheduler_here().fixed_executor());
            flows_.push_back(runs_.back().get());
        }
        return begin(w, flows_);
    }

protected:
    ~range_group() = default;

    std::vector<task<T>> tasks_;
    std::vector<task_run<T>> runs_;
    std::vector<task_flow*> flows_;
};

// The value of a task that ended with one.
template <class T>
kept_t<T> take_kept(task_run<T>& run) {
    if constexpr (std::is_void_v<T>) {
        run.take();
        return {};
    } else {
        return run.take();
    }
}

template <class R>
auto tasks_of(R&& range) {
    std::vector<task<task_result_t<decltype(*std::begin(range))>>> tasks;
    for (auto&& a : range) tasks.push_back(as_task(std::forward<decltype(a)>(a)));
    return tasks;
}

}  // namespace detail
}  // namespace weft
