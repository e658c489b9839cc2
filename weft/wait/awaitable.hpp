// awaitable: what may stand behind co_await, and what comes of it, for code that is given any.
//
//   template <weft::awaitable A> weft::await_result_t<A> run(A&& a);
#pragma once

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace weft {
namespace detail {

// In this order: Clang takes the operator for a plain type not for a "no" but for an error.
template <class A>
concept has_free_co_await =
    (std::is_class_v<std::remove_cvref_t<A>> || std::is_enum_v<std::remove_cvref_t<A>>) &&
    requires(A&& a) { operator co_await(std::forward<A>(a)); };

// The awaiter of an awaitable, as the compiler finds it where no await_transform is in the way.
template <class A>
decltype(auto) awaiter_of(A&& a) {
    if constexpr (requires { std::forward<A>(a).operator co_await(); })
        return std::forward<A>(a).operator co_await();
    else if constexpr (has_free_co_await<A>)
        return operator co_await(std::forward<A>(a));
    else
        return std::forward<A>(a);
}

template <class A>
concept awaiter = requires(std::remove_reference_t<A>& a, std::coroutine_handle<> h) {
    { a.await_ready() } -> std::convertible_to<bool>;
    a.await_suspend(h);
    a.await_resume();
};

template <class A>
using awaiter_t = decltype(awaiter_of(std::declval<A>()));

}  // namespace detail

template <class A>
concept awaitable =
    requires { typename detail::awaiter_t<A>; } && detail::awaiter<detail::awaiter_t<A>>;

template <awaitable A>
using await_result_t =
    decltype(std::declval<std::remove_reference_t<detail::awaiter_t<A>>&>().await_resume());

}  // namespace weft
