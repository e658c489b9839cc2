// invoke(f, args...): std::invoke, without <functional>.
//
// Design: <functional> is a third of what a small header costs to compile, and weft takes nothing
// but this function from it. The rules are those of [func.invoke]: a pointer to a member is applied
// to an object, a std::reference_wrapper of one or a pointer to one; everything else is called.
//
//   const std::string text = "four";
//   const std::size_t n = weft::detail::invoke(&std::string::size, text);
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace weft::detail {

// The object that a pointer to a member of C is applied to. A std::reference_wrapper is known by
// its get(), which returns a reference to such an object.
template <class C, class T>
constexpr decltype(auto) object_of_member(T&& t) noexcept {
    if constexpr (std::is_base_of_v<C, std::remove_cvref_t<T>>)
        return std::forward<T>(t);
    else if constexpr (requires {
                           { t.get() } -> std::same_as<typename std::remove_cvref_t<T>::type&>;
                       })
        return t.get();
    else
        return *std::forward<T>(t);
}

template <class C, class M, class T, class... Args>
constexpr decltype(auto) invoke_member(M C::* member, T&& t, Args&&... args) {
    if constexpr (std::is_function_v<M>)
        return (object_of_member<C>(std::forward<T>(t)).*member)(std::forward<Args>(args)...);
    else
        return object_of_member<C>(std::forward<T>(t)).*member;
}

template <class F, class... Args>
    requires std::invocable<F, Args...>
constexpr std::invoke_result_t<F, Args...> invoke(F&& f, Args&&... args) noexcept(
    std::is_nothrow_invocable_v<F, Args...>) {
    if constexpr (std::is_member_pointer_v<std::remove_cvref_t<F>>)
        return invoke_member(f, std::forward<Args>(args)...);
    else
        return std::forward<F>(f)(std::forward<Args>(args)...);
}

}  // namespace weft::detail
