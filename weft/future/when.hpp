// when_all, when_n, when_any and when_n_if, when_any_if: one future of several.
//
// Design: futures that are not needed any more (losers) are asked to stop, and have ended when the
// outcome exists. when_all ends with the first failure, and stops the others because of it. For
// when_n and when_any a failure counts like any other outcome: if one of the winners failed, that
// failure is the outcome. For the _if functions a failure does not count, and neither does a value
// for which the function returns false; if too few count in the end, the outcome is the first
// failure, or errc::too_few_results.
//
// Limits: the group runs on the executor of the first future, or of the caller. The function of the
// _if runs there too, in a turn of the executor, and must not wait. A range is emptied: its futures
// are moved from.
//
//   auto [a, b] = weft::when_all(std::move(f), std::move(g)).get();
//   auto first = weft::when_any(std::move(replicas)).get();         // index and value
//   auto two = weft::when_n(2, std::move(replicas));                // in the order of ending
//   auto good = weft::when_n_if(2, std::move(votes), [](const vote& v) { return v.yes; });
#pragma once

#include <array>
#include <concepts>
#include <exception>
#include <ranges>
#include <source_location>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/detail/min_max.hpp"
#include "weft/future/detail/group.hpp"
#include "weft/future/promise.hpp"
#include "weft/wait/awaitable.hpp"
#include "weft/wait/when_any_result.hpp"

namespace weft {
namespace detail {

template <class R>
concept range_of_futures = range_of_awaitables<R> && std::ranges::forward_range<R> &&
                           std::ranges::sized_range<R> && is_future<std::ranges::range_value_t<R>>;
template <class R>
using range_value_of = typename std::ranges::range_value_t<R>::value_type;

// Takes the value in the form that is kept beside others. Precondition: `up` has a value.
template <class T>
kept_t<T> taken_kept(future_core& up) {
    if constexpr (std::is_reference_v<T>)
        return *value_of<T>(up);
    else
        return std::move(value_of<T>(up));
}
template <std::size_t I, class... Ts>
std::variant<kept_t<Ts>...> taken_one(future_core& up) {
    using T = std::tuple_element_t<I, std::tuple<Ts...>>;
    return std::variant<kept_t<Ts>...>(std::in_place_index<I>, taken_kept<T>(up));
}
template <class... Ts>
std::variant<kept_t<Ts>...> taken_of(future_core& up, std::size_t index) {
    using taker = std::variant<kept_t<Ts>...> (*)(future_core&);
    static constexpr auto takers = []<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<taker, sizeof...(Ts)>{taken_one<I, Ts...>...};
    }(std::index_sequence_for<Ts...>());
    return takers[index](up);
}

// -- rules ------------------------------------------------------------------------------------

struct all_rule {
    static when_core::verdict judge(future_core& up, std::size_t) noexcept {
        return up.has_value() ? when_core::verdict::counts : when_core::verdict::ends_all;
    }
};
struct any_rule {
    static when_core::verdict judge(future_core&, std::size_t) noexcept {
        return when_core::verdict::counts;
    }
    // If a winner failed, makes that failure the outcome and returns true.
    static bool take_failure(future_core& c, when_core& g) noexcept {
        for (const std::size_t i : g.winners) {
            if (g.up(i).has_value()) continue;
            c.take_failure_of(g.up(i));
            return true;
        }
        return false;
    }
};

template <class... Ts>
struct mixed_all : all_rule {
    using result = std::tuple<kept_t<Ts>...>;
    static void take(future_core& c, when_core& g) {
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            put_value<result>(c, taken_kept<Ts>(g.up(I))...);
        }(std::index_sequence_for<Ts...>());
    }
};
template <class T>
struct range_all : all_rule {
    using result = std::vector<kept_t<T>>;
    static void take(future_core& c, when_core& g) {
        result all;
        all.reserve(g.count);
        for (std::size_t i = 0; i < g.count; ++i) all.push_back(taken_kept<T>(g.up(i)));
        put_value<result>(c, std::move(all));
    }
};
template <class... Ts>
struct mixed_any : any_rule {
    using result = when_any_result<std::variant<kept_t<Ts>...>>;
    static void take(future_core& c, when_core& g) {
        if (take_failure(c, g)) return;
        const std::size_t i = g.winners.front();
        put_result<result>(c, [&] { return result{i, taken_of<Ts...>(g.up(i), i)}; });
    }
};
template <class T>
struct range_any : any_rule {
    using result = when_any_result<kept_t<T>>;
    static void take(future_core& c, when_core& g) {
        if (take_failure(c, g)) return;
        const std::size_t i = g.winners.front();
        put_result<result>(c, [&] { return result{i, taken_kept<T>(g.up(i))}; });
    }
};
template <class... Ts>
struct mixed_n : any_rule {
    using result = std::vector<when_any_result<std::variant<kept_t<Ts>...>>>;
    static void take(future_core& c, when_core& g) {
        if (take_failure(c, g)) return;
        result all;
        for (const std::size_t i : g.winners) all.push_back({i, taken_of<Ts...>(g.up(i), i)});
        put_value<result>(c, std::move(all));
    }
};
template <class T>
struct range_n : any_rule {
    using result = std::vector<when_any_result<kept_t<T>>>;
    static void take(future_core& c, when_core& g) {
        if (take_failure(c, g)) return;
        result all;
        for (const std::size_t i : g.winners) all.push_back({i, taken_kept<T>(g.up(i))});
        put_value<result>(c, std::move(all));
    }
};
// An exception of the function counts as false.
template <class Rule, class T, class F>
struct where : Rule {
    F f;

    template <class G>
    explicit where(std::in_place_t, G&& g) : f(std::forward<G>(g)) {}
    when_core::verdict judge(future_core& up, std::size_t) noexcept {
        if (!up.has_value()) return when_core::verdict::does_not_count;
        bool yes = false;
        std::exception_ptr unheard;
        keep_thrown(unheard, [&] { yes = says_true<T>(f, value_of<T>(up)); });
        return yes ? when_core::verdict::counts : when_core::verdict::does_not_count;
    }
};

[[noreturn]] WEFT_COLD inline void fail_empty_member(std::source_location caller) {
    fail("a group has a future that is empty, or named twice", {}, caller);
}

// The futures are taken when nothing can fail any more.
template <class Rule, class... Ts>
future<typename Rule::result> group_of(with_caller<std::size_t> n, Rule rule, future<Ts>&... fs) {
    const auto [needed, caller] = n;
    if (!(fs.valid() && ...)) fail_empty_member(caller);
    const std::array<future_core*, sizeof...(Ts)> ups{&core_of_future::core(fs)...};
    future_core& c = group_block<Rule>::make(*ups[0]->home, ups.size(),
                                             detail::min_of(needed, ups.size()), std::move(rule));
    for (const bool was_there : {core_of_future::take(fs) != nullptr...})
        if (!was_there) fail_empty_member(caller);
    return future<typename Rule::result>(group_block<Rule>::begin(c, ups.data()));
}
template <class Rule, class R>
future<typename Rule::result> group_of_range(std::size_t needed, Rule rule, R&& range,
                                             std::source_location caller) {
    std::vector<future_core*> ups;
    ups.reserve(std::ranges::size(range));
    for (auto& f : range) {
        if (!f.valid()) fail_empty_member(caller);
        ups.push_back(&core_of_future::core(f));
    }
    executor& on = ups.empty() ? executor_of_caller() : *ups[0]->home;
    future_core& c = group_block<Rule>::make(on, ups.size(), needed, std::move(rule));
    for (auto& f : range)
        if (core_of_future::take(f) == nullptr) fail_empty_member(caller);
    return future<typename Rule::result>(group_block<Rule>::begin(c, ups.data()));
}

}  // namespace detail

template <class... Ts>
    requires(sizeof...(Ts) > 0)
future<std::tuple<detail::kept_t<Ts>...>> when_all(future<Ts>&&... fs) {
    return detail::group_of({sizeof...(Ts), unknown_caller}, detail::mixed_all<Ts...>(), fs...);
}
template <class T>
future<std::vector<detail::kept_t<T>>> when_all(
    std::span<future<T>> range, std::source_location caller = std::source_location::current()) {
    return detail::group_of_range(range.size(), detail::range_all<T>(), range, caller);
}
template <class T>
auto when_all(std::vector<future<T>>& range,
              std::source_location caller = std::source_location::current()) {
    return when_all(std::span(range), caller);
}
template <class T>
auto when_all(std::vector<future<T>>&& range,
              std::source_location caller = std::source_location::current()) {
    return when_all(std::span(range), caller);
}

template <class... Ts>
    requires(sizeof...(Ts) > 0)
future<when_any_result<std::variant<detail::kept_t<Ts>...>>> when_any(future<Ts>&&... fs) {
    return detail::group_of({1, unknown_caller}, detail::mixed_any<Ts...>(), fs...);
}
// An empty range gives errc::too_few_results.
template <class T>
future<when_any_result<detail::kept_t<T>>> when_any(
    std::span<future<T>> range, std::source_location caller = std::source_location::current()) {
    return detail::group_of_range(1, detail::range_any<T>(), range, caller);
}
template <class T>
auto when_any(std::vector<future<T>>& range,
              std::source_location caller = std::source_location::current()) {
    return when_any(std::span(range), caller);
}
template <class T>
auto when_any(std::vector<future<T>>&& range,
              std::source_location caller = std::source_location::current()) {
    return when_any(std::span(range), caller);
}

// The first n that end; all of them, if n is larger than their count.
template <class... Ts>
    requires(sizeof...(Ts) > 0)
future<std::vector<when_any_result<std::variant<detail::kept_t<Ts>...>>>> when_n(
    detail::with_caller<std::size_t> n, future<Ts>&&... fs) {
    return detail::group_of(n, detail::mixed_n<Ts...>(), fs...);
}
template <detail::range_of_futures R>
auto when_n(std::size_t n, R&& range,
            std::source_location caller = std::source_location::current()) {
    const std::size_t needed = detail::min_of<std::size_t>(n, std::ranges::size(range));
    return detail::group_of_range(needed, detail::range_n<detail::range_value_of<R>>(),
                                  std::forward<R>(range), caller);
}

// The first n for whose values f returns true.
template <detail::range_of_futures R, class F>
auto when_n_if(std::size_t n, R&& range, F&& f,
               std::source_location caller = std::source_location::current()) {
    using T = detail::range_value_of<R>;
    using rule = detail::where<detail::range_n<T>, T, std::decay_t<F>>;
    return detail::group_of_range(n, rule(std::in_place, std::forward<F>(f)),
                                  std::forward<R>(range), caller);
}
template <detail::range_of_futures R, class F>
auto when_any_if(R&& range, F&& f, std::source_location caller = std::source_location::current()) {
    using T = detail::range_value_of<R>;
    using rule = detail::where<detail::range_any<T>, T, std::decay_t<F>>;
    return detail::group_of_range(1, rule(std::in_place, std::forward<F>(f)),
                                  std::forward<R>(range), caller);
}

}  // namespace weft
