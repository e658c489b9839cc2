// async: starts a function in a fiber of its own, and returns the future of its result. As
// std::async with a policy of async, except that the function shares the executor's thread.
//
// Design: the first link of a chain: a future that is ready at once, and a continuation of it. The
// function and its arguments are moved or copied into the future's block, as std::async does;
// std::ref passes a reference. The function runs in a later turn of the executor, never within
// async(), in a borrowed fiber (in_fiber.hpp): it may wait, and other work runs meanwhile. If it
// returns a future, its outcome is the outcome.
//
// request_stop() of the future stops the function where it waits, or before it begins. A future
// that is dropped waits for nothing and stops nothing: the function runs to its end. An exception
// of the function goes into the future; that of a copy of an argument, and bad_alloc, leave
// async().
//
// Limits: without an executor, the function runs on that of the caller: in the caller's loop, or on
// a plain thread, when the thread waits. It runs in parallel with the caller only if an executor of
// another thread is named, such as pool.worker(i). The executor outlives the function.
//
//   weft::future<int> f = weft::async(checksum, std::string("a.txt"));
//   weft::future<int> g = weft::async(pool.worker(0), [&] { return parse(text); });
//   int sum = f.get() + g.get();                  // suspends a fiber, blocks a thread
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "weft/base/detail/invoke.hpp"
#include "weft/future/promise.hpp"

namespace weft {

// Any thread.
template <class F, class... Args>
auto async(executor& on, F&& f, Args&&... args) {
    constexpr bool can_be_called = std::invocable<std::decay_t<F>, std::decay_t<Args>...>;
    static_assert(can_be_called,
                  "async: the function cannot be called with these arguments, which it gets as "
                  "moved copies; std::ref passes a reference");
    if constexpr (can_be_called)
        return make_ready_future(on).then(
            [f = std::decay_t<F>(std::forward<F>(f)),
             ... args = std::decay_t<Args>(std::forward<Args>(args))]() mutable -> decltype(auto) {
                return detail::invoke(std::move(f), std::move(args)...);
            });
}
template <class F, class... Args>
    requires(!std::derived_from<std::remove_cvref_t<F>, executor>)
auto async(F&& f, Args&&... args) {
    return async(detail::executor_of_caller(), std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace weft
