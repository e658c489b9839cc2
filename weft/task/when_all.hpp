// when_all: awaits several awaitables at once, until all have ended.
//
// Design: each runs as a task of its own. The tasks start in order on the awaiter's executor, where
// none runs in parallel with another; in a pool, they start on any of its threads. All run to their
// end, even if one fails; then the first error is thrown unchanged.
//
// The result is a tuple, or for a range a vector (for void: nothing). In a tuple, void becomes
// std::monostate; a reference becomes a std::reference_wrapper. A stop of the awaiter is forwarded
// to each task, and the await returns when all have ended; if all have a value in spite of the
// stop, the values are the result.
//
// Limits: of no argument, or of an empty range, the result is there at once, and no wait begins. A
// task that does not end when it is stopped holds the awaiter.
//
//   auto [a, b] = co_await weft::when_all(price("apple"), channel.async_recv());
//   std::vector<int> n = co_await weft::when_all(std::move(tasks));
//
// A named operation keeps all errors:
//
//   auto all = weft::when_all(a(), b());
//   try { co_await all; } catch (...) { for (auto& e : all.errors()) log(e); }
#pragma once

#include <limits>
#include <tuple>
#include <vector>

#include "weft/task/detail/task_group.hpp"

namespace weft {

// The operation that when_all() of several tasks returns.
template <class... Ts>
class [[nodiscard]] when_all_operation : public detail::mixed_group<Ts...> {
public:
    using detail::mixed_group<Ts...>::mixed_group;

    std::tuple<detail::kept_t<Ts>...> take([[maybe_unused]] const waiter* w,
                                           [[maybe_unused]] wait_status how) {
        if constexpr (sizeof...(Ts) == 0) {
            return {};
        } else {
            this->check_begun(w, how);
            this->check_all(this->flows());
            return std::apply(
                [](auto&... r) {
                    return std::tuple<detail::kept_t<Ts>...>{detail::take_kept(r)...};
                },
                *this->runs_);
        }
    }
};

// The operation that when_all() of a range of tasks returns.
template <class T>
class [[nodiscard]] when_all_range_operation : public detail::range_group<T> {
public:
    using detail::range_group<T>::range_group;

    auto take(const waiter* w, wait_status how) {
        this->check_begun(w, how);
        this->check_all(this->flows_);
        if constexpr (!std::is_void_v<T>) {
            std::vector<detail::kept_t<T>> all;
            all.reserve(this->runs_.size());
            for (auto& r : this->runs_) all.push_back(detail::take_kept(r));
            return all;
        }
    }
};

namespace detail {
inline constexpr std::size_t all_of_them = std::numeric_limits<std::size_t>::max();
}

template <awaitable... As>
auto when_all(As&&... awaitables) {
    return when_all_operation<detail::task_result_t<As>...>(
        detail::all_of_them, detail::as_task(std::forward<As>(awaitables))...);
}

// Tasks and temporaries among the elements are moved from; the other elements are referred to.
template <detail::range_of_awaitables R>
auto when_all(R&& range) {
    auto tasks = detail::tasks_of(std::forward<R>(range));
    using T = typename decltype(tasks)::value_type::value_type;
    return when_all_range_operation<T>(detail::all_of_them, std::move(tasks));
}

}  // namespace weft
