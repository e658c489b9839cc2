// run: the short way to start: a loop on this thread, and the program's first fiber in it.
//
// Design: the loop exists as long as the call, which returns what the function returns, or the
// value of the awaitable, when it and all that it started has ended. The call throws what leaves
// the function, and weft::stopped if the function was stopped.
//
// Limits: a function that returns a task is refused by the compiler: pass the task, run(f()). A
// thread runs one loop at a time. run_scope.hpp does the same for a block of code.
//
//   int main() { return weft::run([] { return 0; }); }
//   int status = weft::run(main_task());        // a task, or another awaitable
#pragma once

#include <concepts>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/fiber/spawn.hpp"
#include "weft/sched/loop.hpp"
#include "weft/wait/await.hpp"

namespace weft {

template <class F>
    requires std::invocable<std::decay_t<F>>
std::invoke_result_t<std::decay_t<F>> run(F&& f, const fiber_options& options = {}) {
    using T = std::invoke_result_t<std::decay_t<F>>;
    loop l;
    fiber_options own = options;
    own.on = l;
    if (own.name.empty()) own.name = "main";
    detail::returned<T> value;
    fiber main(
        [&value, f = std::decay_t<F>(std::forward<F>(f))]() mutable { value.keep(std::move(f)); },
        own);
    if (own.launch == launch::deferred) main.start();
    l.run();
    const join_result how = main.join();
    if (how.is_stopped()) detail::throw_stopped(how.reason());
    return value.take();
}

// The fiber awaits the object itself, also a task, whichever other overloads of await are declared.
// The object is moved from only if a co_await of it would move.
template <class A>
    requires(operation<A> || awaitable<A>) && (!std::invocable<std::decay_t<A>>)
auto run(A&& a, const fiber_options& options = {},
         std::source_location caller = std::source_location::current())
    -> decltype(weft::await<A>(std::forward<A>(a), caller)) {
    return run([&]() -> decltype(auto) { return weft::await<A>(std::forward<A>(a), caller); },
               options);
}

namespace detail {
// A function with parameters, or something that is no object of a class. Another object may be
// meant for a run() of the user's, which this one must not compete with.
template <class X>
concept not_to_be_run = !std::is_class_v<X> || requires { &X::operator(); };
}  // namespace detail

// For the message alone.
template <class X>
    requires(!std::invocable<std::decay_t<X>> && !operation<X> && !awaitable<X> &&
             detail::not_to_be_run<std::decay_t<X>>)
void run(X&&, const fiber_options& = {}) {
    static_assert(std::invocable<std::decay_t<X>>,
                  "run takes a function without parameters, or an awaitable such as a task");
}

}  // namespace weft
