// valgrind_stack: tells Valgrind that a piece of memory is a stack, while it is one.
//
// Without that Valgrind takes a switch for a huge frame and reports what lies between as undefined.
// A type, empty where Valgrind's header is missing or the build is not a debug build, so that its
// users need no #if. Without Valgrind underneath, a few instructions each.
//
//   [[no_unique_address]] valgrind_stack seen;
//   seen.begin(s);  ...  seen.end();
#pragma once

#include "weft/base/platform.hpp"
#include "weft/stack/stack.hpp"

#if WEFT_DEBUG && __has_include(<valgrind/valgrind.h>)
#define WEFT_VALGRIND 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#include <valgrind/valgrind.h>
#pragma GCC diagnostic pop
#else
#define WEFT_VALGRIND 0
#endif

namespace weft::detail {

#if WEFT_VALGRIND
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"

class valgrind_stack {
public:
    void begin(stack s) noexcept { id_ = VALGRIND_STACK_REGISTER(s.limit, s.top); }
    void end() noexcept { VALGRIND_STACK_DEREGISTER(id_); }

private:
    unsigned long id_ = 0;
};

#pragma GCC diagnostic pop
#else

class valgrind_stack {
public:
    void begin(stack) noexcept {}
    void end() noexcept {}
};

#endif

}  // namespace weft::detail
