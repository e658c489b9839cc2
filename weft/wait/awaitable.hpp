// awaitable: which types can be awaited, and which result the await has, for generic code.
// callable_without_arguments: which types can be run, as the function of a fiber or of a post.
//
// Design: a type is asked for its awaiter as the compiler asks it: operator co_await, a member or
// not, or the type itself.
//
// Limits: what only the await_transform of one coroutine type makes awaitable does not count.
//
//   template <weft::awaitable A> weft::await_result_t<A> run(A&& a);
#pragma once

#include <concepts>
#include <coroutine>
#include <iterator>
#include <type_traits>
#include <utility>

namespace weft {
namespace detail {

// In this order: for a non-class type, Clang takes the operator for an error and not for a "no".
template <class A>
concept has_free_co_await =
    (std::is_class_v<std::remove_cvref_t<A>> || std::is_enum_v<std::remove_cvref_t<A>>) &&
    requires(A&& a) { operator co_await(std::forward<A>(a)); };

// The awaiter of an awaitable, as the compiler finds it where no await_transform interferes.
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

template <class F>
concept callable_without_arguments = std::invocable<F>;

template <awaitable A>
using await_result_t =
    decltype(std::declval<std::remove_reference_t<detail::awaiter_t<A>>&>().await_resume());

namespace detail {

template <class R>
concept range_of_awaitables = !awaitable<R> && requires(R& r) {
    std::begin(r);
    std::end(r);
    requires awaitable<decltype(*std::begin(r))>;
};

// A type that runs only when it is awaited, such as task<>.
template <class T>
concept lazy_coroutine =
    awaitable<T> && requires(typename std::coroutine_traits<T>::promise_type& p) {
        { p.initial_suspend() } -> std::same_as<std::suspend_always>;
    };

// Asserted wherever a function that returns T is passed in, to be called later or elsewhere.
template <class T>
consteval bool runs_when_called() {
    static_assert(
        !lazy_coroutine<T>,
        "the function returns a task that is never awaited: it would never run; begin the "
        "task itself where the function was to run, or await it in the function");
    return true;
}

}  // namespace detail
}  // namespace weft
