// fork_join: tasks that may run at the same time, at the price of awaiting one after the other.
//
// Design: the awaiter runs the tasks in order, and idle workers of the pool take tasks that the
// awaiter has not begun (child stealing). On any other executor the tasks run one after the other.
//
// The result holds the result of each task, in order. If a task fails, tasks that have not begun
// never begin, tasks that run elsewhere are asked to stop, all are awaited, and fork_join throws
// the first error. A stop of the awaiter is a stop of the tasks.
//
// The idea is that of Cilk and libfork; that a child becomes a flow when it is taken is weft's.
//
// Limits: fork_join is for work that computes. Waits for outside events side by side want when_all,
// which makes a flow for each task from the beginning. If a task waits nevertheless, the next task
// begins meanwhile. A fork_join that is destroyed before its end must have no child on another
// thread.
//
//   weft::task<long> fib(int n) {
//       if (n < 2) co_return n;
//       auto [a, b] = co_await weft::fork_join(fib(n - 1), fib(n - 2));
//       co_return a + b;
//   }
//   weft::pool p;
//   long f = weft::sync_wait(weft::schedule_on(p, fib(40)));
#pragma once

#include <array>
#include <iterator>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/parallel/detail/fork_core.hpp"
#include "weft/task/detail/task_group.hpp"

namespace weft {

// The operation is its own awaiter, and does not move.
template <class... Ts>
class [[nodiscard]] fork_operation : detail::fork_core {
public:
    template <class... As>
    WEFT_ALWAYS_INLINE explicit fork_operation(std::in_place_t, As&&... tasks) {
        hold(std::index_sequence_for<Ts...>(), detail::as_task(std::forward<As>(tasks))...);
    }
    fork_operation(const fork_operation&) = delete;
    fork_operation& operator=(const fork_operation&) = delete;
    // Destroys the frames of the tasks, which must not run on another thread.
    WEFT_ALWAYS_INLINE ~fork_operation() { this->drop(children_, sizeof...(Ts)); }
    bool await_ready() const noexcept { return false; }
    template <class P>
    WEFT_ALWAYS_INLINE std::coroutine_handle<> await_suspend(std::coroutine_handle<P> h) {
        return this->template begin<sizeof...(Ts)>(h, children_, sizeof...(Ts));
    }
    WEFT_ALWAYS_INLINE std::tuple<detail::kept_t<Ts>...> await_resume() {
        this->end();
        return results(std::index_sequence_for<Ts...>());
    }

private:
    // All arguments are tasks before the first is taken: if one task cannot be made, each of the
    // others still owns its frame and destroys it.
    template <std::size_t... I>
    WEFT_ALWAYS_INLINE void hold(std::index_sequence<I...>, task<Ts>&&... tasks) noexcept {
        ((children_[I].body = detail::task_run<Ts>::frame_of(std::move(tasks))), ...);
    }
    template <std::size_t... I>
    WEFT_ALWAYS_INLINE std::tuple<detail::kept_t<Ts>...> results(std::index_sequence<I...>) {
        return {detail::task_run<Ts>::take_of(children_[I].body)...};
    }

    detail::fork_child children_[sizeof...(Ts)];
};

// The operation that fork_join() of a range of tasks returns.
template <class T>
class [[nodiscard]] fork_range_operation : detail::fork_core {
public:
    explicit fork_range_operation(std::vector<task<T>> tasks)
        : count_of_all_(tasks.size()), children_(new detail::fork_child[tasks.size()]) {
        for (std::size_t i = 0; i != tasks.size(); ++i)
            children_[i].body = detail::task_run<T>::frame_of(std::move(tasks[i]));
    }
    fork_range_operation(const fork_range_operation&) = delete;
    fork_range_operation& operator=(const fork_range_operation&) = delete;
    // As ~fork_operation().
    ~fork_range_operation() { this->drop(children_.get(), count_of_all_); }
    bool await_ready() const noexcept { return count_of_all_ == 0; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> h) {
        return this->template begin<0>(h, children_.get(), count_of_all_);
    }
    std::vector<detail::kept_t<T>> await_resume() {
        this->end();
        std::vector<detail::kept_t<T>> all;
        all.reserve(count_of_all_);
        for (std::size_t i = 0; i != count_of_all_; ++i)
            all.push_back(detail::task_run<T>::take_of(children_[i].body));
        return all;
    }

private:
    const std::size_t count_of_all_;
    std::unique_ptr<detail::fork_child[]> children_;
};

// Any awaitable may be passed in place of a task.
template <awaitable... As>
    requires(sizeof...(As) != 0)
WEFT_ALWAYS_INLINE auto fork_join(As&&... tasks) {
    return fork_operation<detail::task_result_t<As>...>(std::in_place, std::forward<As>(tasks)...);
}
template <detail::range_of_awaitables R>
auto fork_join(R&& tasks) {
    return fork_range_operation(detail::tasks_of(std::forward<R>(tasks)));
}

}  // namespace weft
