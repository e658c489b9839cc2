// asan_stack: the state that AddressSanitizer keeps for the memory of a free stack.
//
// A free stack is poisoned, so that a pointer into a finished coroutine is caught. Before the stack
// is used again or unmapped its poison is removed, also what frames that never returned have left
// behind. Empty without the sanitizer.
#pragma once

#include "weft/base/platform.hpp"
#include "weft/stack/stack.hpp"

#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weft::detail {

inline void poison_stack([[maybe_unused]] stack s) noexcept {
#if WEFT_ASAN
    __asan_poison_memory_region(s.limit, s.bytes());
#endif
}

inline void unpoison_stack([[maybe_unused]] stack s) noexcept {
#if WEFT_ASAN
    __asan_unpoison_memory_region(s.limit, s.bytes());
#endif
}

}  // namespace weft::detail
