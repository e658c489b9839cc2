// caught_exception(): what a catch (...) has caught, to be kept and thrown elsewhere.
//
// Design: a forced unwind is not an outcome. The kill of a fiber, and the cancellation of a thread,
// run through a catch (...) as an exception does, but they are meant for the stack that they
// unwind: to store one would end it there, with null as the outcome. So a forced unwind continues
// from here, and leaves the call that stores an outcome.
//
//   void unhandled_exception() { error_ = weft::detail::caught_exception(); }
//
// Precondition: a handler is being run. Throws a forced unwind, nothing else.
//
// keep_thrown(e, f) calls f and keeps in e what it throws, for a caller that is noexcept. It is
// never inlined there: a kill within f then finds the caller's noexcept beyond the handler, and is
// refused by name before anything is destroyed. With the handler in the caller itself, compilers
// leave no trace of a noexcept that nothing but a forced unwind could reach.
//
//   void fill() noexcept { weft::detail::keep_thrown(error_, [&] { value_.emplace(make()); }); }
//
// Model: none, it keeps nothing.
#pragma once

#include <exception>

#include "weft/base/platform.hpp"

namespace weft::detail {

WEFT_COLD std::exception_ptr caught_exception();

template <class F>
WEFT_NOINLINE void keep_thrown(std::exception_ptr& kept, F&& f) {
#if WEFT_EXCEPTIONS
    try {
        f();
    } catch (...) {
        kept = caught_exception();
    }
#else
    static_cast<void>(kept);
    f();
#endif
}

}  // namespace weft::detail
