// when_all_ready: awaits several awaitables at once, until all have ended, and gives the outcome of
// each.
//
// Design: the tasks start and end as in when_all, and none stops another. Where when_all throws the
// first error, when_all_ready has an outcome for each task, in the order of the arguments: in a
// tuple, or for a range in a vector. The failure of one task therefore does not lose the value of
// another, and shows which task failed. A stop of the awaiter is forwarded to each task, and the
// await returns when all have ended; only a stop that came before the tasks began is thrown.
//
// Limits: of no argument, or of an empty range, the result is there at once. A task that does not
// end when it is stopped holds the awaiter.
//
//   auto [a, b] = co_await weft::when_all_ready(price("apple"), channel.async_recv());
//   if (a.has_value()) use(a.value());
//   else if (a.is_stopped()) log("stopped", a.reason());
//   else std::rethrow_exception(a.exception());        // as a.value() does
#pragma once

#include <exception>
#include <tuple>
#include <variant>
#include <vector>

#include "weft/task/when_all.hpp"

namespace weft {

// The outcome of a task: a value, an exception, or a stop.
template <class T>
class [[nodiscard]] when_all_ready_result {
    using kept = detail::kept_t<T>;
    using reference = std::add_lvalue_reference_t<T>;

public:
    explicit when_all_ready_result(detail::task_run<T>& ended) : state_(taken(ended)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    bool is_stopped() const noexcept { return state_.index() == 2; }
    // The reason of the stop; none if the task was not stopped.
    stop_reason reason() const noexcept {
        return is_stopped() ? *std::get_if<2>(&state_) : stop_reason::none;
    }
    // The exception that the task threw; null if the task threw nothing, or `stopped`.
    std::exception_ptr exception() const noexcept {
        const auto* e = std::get_if<1>(&state_);
        return e != nullptr ? *e : nullptr;
    }

    // Without a value, throws the exception, or `stopped`.
    reference value() & {
        check();
        if constexpr (!std::is_void_v<T>) return *std::get_if<0>(&state_);
    }
    T value() && {
        check();
        if constexpr (std::is_reference_v<T>)
            return static_cast<T>(std::get_if<0>(&state_)->get());
        else if constexpr (!std::is_void_v<T>)
            return std::move(*std::get_if<0>(&state_));
    }

private:
    using state = std::variant<kept, std::exception_ptr, stop_reason>;

    static state taken(detail::task_run<T>& ended) {
        const detail::scope_member& m = ended->member;
        if (m.stopped_by != stop_reason::none) return state(std::in_place_index<2>, m.stopped_by);
        if (m.error != nullptr) return state(std::in_place_index<1>, m.error);
        return state(std::in_place_index<0>, detail::take_kept(ended));
    }
    void check() const {
        if (is_stopped()) detail::throw_stopped(reason());
        if (!has_value()) std::rethrow_exception(*std::get_if<1>(&state_));
    }

    state state_;
};

// The operation that when_all_ready() of several tasks returns.
template <class... Ts>
class [[nodiscard]] when_all_ready_operation : public detail::mixed_group<Ts...> {
public:
    using detail::mixed_group<Ts...>::mixed_group;

    std::tuple<when_all_ready_result<Ts>...> take([[maybe_unused]] const waiter* w,
                                                  [[maybe_unused]] wait_status how) {
        if constexpr (sizeof...(Ts) == 0) {
            return {};
        } else {
            this->check_begun(w, how);
            return std::apply(
                [](auto&... r) {
                    return std::tuple<when_all_ready_result<Ts>...>{
                        when_all_ready_result<Ts>(r)...};
                },
                *this->runs_);
        }
    }
};

// The operation that when_all_ready() of a range of tasks returns.
template <class T>
class [[nodiscard]] when_all_ready_range_operation : public detail::range_group<T> {
public:
    using detail::range_group<T>::range_group;

    std::vector<when_all_ready_result<T>> take(const waiter* w, wait_status how) {
        this->check_begun(w, how);
        std::vector<when_all_ready_result<T>> all;
        all.reserve(this->runs_.size());
        for (auto& r : this->runs_) all.emplace_back(r);
        return all;
    }
};

template <awaitable... As>
auto when_all_ready(As&&... awaitables) {
    return when_all_ready_operation<detail::task_result_t<As>...>(
        detail::all_of_them, detail::as_task(std::forward<As>(awaitables))...);
}

// Tasks and temporaries among the elements are moved from; the other elements are referred to.
template <detail::range_of_awaitables R>
auto when_all_ready(R&& range) {
    auto tasks = detail::tasks_of(std::forward<R>(range));
    using T = typename decltype(tasks)::value_type::value_type;
    return when_all_ready_range_operation<T>(detail::all_of_them, std::move(tasks));
}

}  // namespace weft
