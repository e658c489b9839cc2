// as_task: anything that can be awaited, as a task; what is a task already stays as it is.
//
//   weft::task<weft::result<int>> t = weft::detail::as_task(channel.async_recv());
#pragma once

#include <type_traits>
#include <utility>

#include "weft/task/task.hpp"
#include "weft/wait/awaitable.hpp"
#include "weft/wait/indexed.hpp"
#include "weft/wait/operation.hpp"

namespace weft::detail {

// A temporary would be gone.
template <class T>
using lasting_t = std::conditional_t<std::is_rvalue_reference_v<T>, std::remove_cvref_t<T>, T>;

// A is a type, and the awaitable lies in the frame; or a reference, and it lies elsewhere.
template <class A>
task<lasting_t<await_result_t<A>>> awaiting_task(A a) {
    // An awaiter that is given by reference is named: GCC 12 makes a copy of what a call gives so.
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
