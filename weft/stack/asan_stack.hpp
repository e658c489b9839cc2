// asan_stack: what AddressSanitizer is told about a stack that is free.
//
// A free stack is poisoned, so that a pointer into a finished coroutine is caught; before it is
// used again or unmapped it is cleaned, also of what frames that never returned have left behind.
// Nothing without the sanitizer.
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
