#include "test/noexcept/with_exceptions.hpp"

#include <cstdio>

#include "weft/coroutine/coroutine.hpp"

#if !WEFT_EXCEPTIONS
#error "to be compiled with -fexceptions"
#endif

namespace weft {
namespace {

struct shouting {
    ~shouting() { std::fputs("destroyed\n", stderr); }
};

}  // namespace

void yield_with_something_to_clean_up() {
    const shouting one;
    this_coroutine::yield();
}

void yield_with_nothing_to_clean_up() {
    this_coroutine::yield();
    asm volatile("");  // not a tail call
}

}  // namespace weft
