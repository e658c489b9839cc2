// when_any, when_n: await several awaitables at once, until one, or n of them, have ended.
//
// Design: the other tasks, the losers, are then asked to stop, and have ended when the await
// returns: everything that the losers held is released. Each is a task of its own, as in when_all.
// A task that fails counts as ended: if a winner failed, its error is thrown.
//
// Limits: the outcome of a loser is lost. A loser that does not end when it is stopped holds the
// awaiter.
//
//   auto first = co_await weft::when_any(from_cache(k), from_disk(k));   // a variant
//   if (first.index == 0) use(std::get<0>(first.value));
//   auto two = co_await weft::when_n(2, std::move(replicas));            // in the order of ending
#pragma once

#include <array>
#include <span>
#include <tuple>
#include <variant>
#include <vector>

#include "weft/task/detail/task_group.hpp"
#include "weft/wait/when_any_result.hpp"

namespace weft {

namespace detail {

// The indices of the first `count` tasks to end, in the order of their ends.
std::vector<std::size_t> winners(std::span<task_flow* const> tasks, std::size_t count);

template <class T>
when_any_result<kept_t<T>> take_winner(std::vector<task_run<T>>& runs, std::size_t index) {
    return {index, take_kept(runs[index])};
}

template <class... Ts>
when_any_result<std::variant<kept_t<Ts>...>> take_winner(std::tuple<task_run<Ts>...>& runs,
                                                         std::size_t index) {
    using value = std::variant<kept_t<Ts>...>;
    using taker = value (*)(std::tuple<task_run<Ts>...>&);
    static constexpr auto takers = []<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<taker, sizeof...(Ts)>{[](std::tuple<task_run<Ts>...>& r) {
            return value(std::in_place_index<I>, take_kept(std::get<I>(r)));
        }...};
    }(std::index_sequence_for<Ts...>());
    return {index, takers[index](runs)};
}

}  // namespace detail

// The operation that when_any() of several tasks returns.
template <class... Ts>
class [[nodiscard]] when_any_operation : public detail::mixed_group<Ts...> {
public:
    using detail::mixed_group<Ts...>::mixed_group;

    when_any_result<std::variant<detail::kept_t<Ts>...>> take(const waiter* w, wait_status how) {
        this->check_begun(w, how);
        return detail::take_winner(*this->runs_, detail::winners(this->flows(), 1).front());
    }
};

// The operation that when_n() of several tasks returns.
template <class... Ts>
class [[nodiscard]] when_n_operation : public detail::mixed_group<Ts...> {
public:
    using detail::mixed_group<Ts...>::mixed_group;

    std::vector<when_any_result<std::variant<detail::kept_t<Ts>...>>> take(const waiter* w,
                                                                           wait_status how) {
        this->check_begun(w, how);
        std::vector<when_any_result<std::variant<detail::kept_t<Ts>...>>> all;
        for (const std::size_t i : detail::winners(this->flows(), this->enough_))
            all.push_back(detail::take_winner(*this->runs_, i));
        return all;
    }
};

// The operation that when_any() of a range of tasks returns.
template <class T>
class [[nodiscard]] when_any_range_operation : public detail::range_group<T> {
public:
    using detail::range_group<T>::range_group;

    bool ready(std::source_location caller = std::source_location::current()) const {
        WEFT_ASSERT_AT(!this->tasks_.empty(), "when_any of an empty range", caller);
        return false;
    }
    when_any_result<detail::kept_t<T>> take(const waiter* w, wait_status how) {
        this->check_begun(w, how);
        return detail::take_winner(this->runs_, detail::winners(this->flows_, 1).front());
    }
};

// The operation that when_n() of a range of tasks returns.
template <class T>
class [[nodiscard]] when_n_range_operation : public detail::range_group<T> {
public:
    using detail::range_group<T>::range_group;

    std::vector<when_any_result<detail::kept_t<T>>> take(const waiter* w, wait_status how) {
        this->check_begun(w, how);
        std::vector<when_any_result<detail::kept_t<T>>> all;
        for (const std::size_t i : detail::winners(this->flows_, this->enough_))
            all.push_back(detail::take_winner(this->runs_, i));
        return all;
    }
};

template <awaitable... As>
    requires(sizeof...(As) > 0)
auto when_any(As&&... awaitables) {
    return when_any_operation<detail::task_result_t<As>...>(
        std::size_t{1}, detail::as_task(std::forward<As>(awaitables))...);
}
template <detail::range_of_awaitables R>
auto when_any(R&& range) {
    auto tasks = detail::tasks_of(std::forward<R>(range));
    using T = typename decltype(tasks)::value_type::value_type;
    return when_any_range_operation<T>(std::size_t{1}, std::move(tasks));
}

// Waits for all if there are fewer than `count`. Precondition: `count` is not 0.
template <awaitable... As>
    requires(sizeof...(As) > 0)
auto when_n(detail::with_caller<std::size_t> count, As&&... awaitables) {
    WEFT_ASSERT_AT(count.value > 0, "when_n of none", count.caller);
    return when_n_operation<detail::task_result_t<As>...>(
        count.value, detail::as_task(std::forward<As>(awaitables))...);
}
template <detail::range_of_awaitables R>
auto when_n(std::size_t count, R&& range,
            std::source_location caller = std::source_location::current()) {
    WEFT_ASSERT_AT(count > 0, "when_n of none", caller);
    auto tasks = detail::tasks_of(std::forward<R>(range));
    using T = typename decltype(tasks)::value_type::value_type;
    return when_n_range_operation<T>(count, std::move(tasks));
}

}  // namespace weft
