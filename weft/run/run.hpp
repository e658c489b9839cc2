// run: the short way to start: a loop on this thread, and the program's first fiber in it.
//
//   int main() { return weft::run([] { ...; return 0; }); }
//
// Returns what the function returns, when the function and all that it started has ended. Throws
// what leaves the function, and weft::stopped if it was stopped. A thread runs one loop at a time.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include "weft/fiber/spawn.hpp"
#include "weft/sched/loop.hpp"

namespace weft {

template <class F>
    requires std::invocable<std::decay_t<F>>
std::invoke_result_t<std::decay_t<F>> run(F&& f, fiber_options options = {}) {
    using T = std::invoke_result_t<std::decay_t<F>>;
    loop l;
    options.on = &l;
    if (options.name.empty()) options.name = "main";
    detail::returned<T> value;
    fiber main(
        [&value, f = std::decay_t<F>(std::forward<F>(f))]() mutable { value.keep(std::move(f)); },
        options);
    main.start();  // also a deferred one
    l.run();
    const join_outcome how = main.join();
    if (how.stopped()) detail::throw_stopped(how.reason());
    return value.take();
}

}  // namespace weft
