// valgrind_stack: registers a piece of memory with Valgrind as a stack, while it is one.
//
// Without that, Valgrind takes a switch for a huge frame and reports the bytes in between as
// undefined. Whether Valgrind is notified is decided where weft is compiled, and the state for it
// is stored there, so that a user's own choice of NDEBUG changes no layout. Empty in a build that
// is not a debug build or has no header of Valgrind's; a few instructions if the program does not
// run under Valgrind.
//
//   valgrind_stack::begin(s);  ...  valgrind_stack::end(s);
//
// Model: none, one table under one lock.
#pragma once

#include "weft/base/platform.hpp"
#include "weft/stack/stack.hpp"

#if WEFT_DEBUG && __has_include(<valgrind/memcheck.h>)
#define WEFT_VALGRIND 1
#else
#define WEFT_VALGRIND 0
#endif

namespace weft::detail {

struct valgrind_stack {
    // All bytes above sp may be written, whatever code has popped a frame from there before, and
    // may not be read before they are written. begin() does this for the whole stack.
#if WEFT_VALGRIND
    static void open_down_to(stack s, const std::byte* sp) noexcept;
    static void begin(stack s) noexcept;
    static void end(stack s) noexcept;  // no effect on a stack without a begin()
#else
    static void open_down_to(stack, const std::byte*) noexcept {}
    static void begin(stack) noexcept {}
    static void end(stack) noexcept {}
#endif
};

}  // namespace weft::detail
