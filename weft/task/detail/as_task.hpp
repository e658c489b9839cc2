// as_task: turns any awaitable into a task; a task stays as it is.
//
//   weft::task<weft::result<int>> t = weft::detail::as_task(channel.async_recv());
#pragma once

#include <type_traits>
#include <utility>

#include "weft/task/task.hpp"
#include "weft/wait/awaitable.hpp"
#include "weft/wait/operation.hpp"
#include "weft/wait/when_any_result.hpp"

namespace weft::detail {

// An rvalue reference becomes a value, because the temporary would be gone.
template <class T>
using lasting_t = std::conditional_t<std::is_rvalue_reference_v<T>, std::remove_cvref_t<T>, T>;

// If A is a reference, the awaitable is stored outside the frame, otherwise in the frame.
template <class A>
task<lasting_t<await_result_t<A>>> awaiting_task(A a) {
    // An awaiter that is returned by reference gets a name: GCC 12 would copy the call's result.
    if constexpr (std::is_reference_v<awaiter_t<A>>) {
        auto&& awaiter = awaiter_of(std::forward<A>(a));
        co_return co_await awaiter;
    } else {
        co_return co_await std::forward<A>(a);
    }
}

template <class T>
task<T> as_task(task<T>&& t) noexcept {
    return std::move(t);
}
template <class T>
task<T> as_task(task<T>& t) noexcept {
    return std::move(t);
}
template <awaitable A>
auto as_task(A&& a) {
    return awaiting_task<A>(std::forward<A>(a));
}

template <class A>
using task_result_t = typename decltype(as_task(std::declval<A>()))::value_type;

}  // namespace weft::detail
