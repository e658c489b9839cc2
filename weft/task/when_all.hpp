// when_all: awaits several at once, until all have ended.
//
//   auto [a, b] = co_await weft::when_all(price("apple"), channel.async_recv());
//   std::vector<int> n = co_await weft::when_all(std::move(tasks));
//
// Each is begun in order, as a task of its own on the executor of who awaits; none runs in parallel
// with another there. All run to their end, also when one fails; then the first error is thrown as
// it is. All of them are kept, for who gives the operation a name:
//
//   auto all = weft::when_all(a(), b());
//   try { co_await all; } catch (...) { for (auto& e : all.errors()) log(e); }
//
// The result is a tuple, or of a range a vector (void: nothing); void is std::monostate in a tuple,
// a reference a std::reference_wrapper. A stop of who awaits is a stop of each, and they are waited
// for; if all have their value in spite of it, that is the result.
#pragma once

#include "weft/task/task_group.hpp"

namespace weft {

template <class... Ts>
class [[nodiscard]] when_all_operation : public detail::mixed_group<Ts...> {
public:
    using detail::mixed_group<Ts...>::mixed_group;

    std::tuple<detail::kept_t<Ts>...> take(const waiter* w, wait_status how) {
        this->check_begun(w, how);
        this->check_all(this->flows());
        return std::apply(
            [](auto&... r) { return std::tuple<detail::kept_t<Ts>...>{detail::take_kept(r)...}; },
            *this->runs_);
    }
};

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
    requires(sizeof...(As) > 0)
auto when_all(As&&... awaitables) {
    return when_all_operation<detail::task_result_t<As>...>(
        detail::all_of_them, detail::as_task(std::forward<As>(awaitables))...);
}

// The elements are moved from, where they are not merely referred to.
template <detail::range_of_awaitables R>
auto when_all(R&& range) {
    auto tasks = detail::tasks_of(std::forward<R>(range));
    using T = typename decltype(tasks)::value_type::value_type;
    return when_all_range_operation<T>(detail::all_of_them, std::move(tasks));
}

}  // namespace weft
