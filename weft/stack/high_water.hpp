// high_water_bytes: how deep a stack has been, to the page.
//
// Design: the kernel knows which pages were touched; nothing is painted, and nothing costs anything
// until high_water_bytes() is called. A page stays touched until it is released, so a recycled
// stack shows the deepest use by any of its coroutines; to measure one coroutine, start with
// reset_high_water().
//
//      | guard | limit ... never touched ... | page page page ... top |
//                                            |<-- high_water_bytes -->|
//
// Limits: for stacks of whole pages that hold nothing else (mapped, slab, growable, pools of them).
// On malloc_stack and buffer_stack, use of the lowest, partial page is not seen.
//
//   weft::reset_high_water(s);  // after acquire; with sp, of a suspended coroutine
//   ...
//   std::size_t bytes = weft::high_water_bytes(s);
#pragma once

#include <cstddef>

#include "weft/stack/stack.hpp"

namespace weft {

// From the lowest touched page to the top; 0 if none was. The whole stack if the kernel does not
// report it.
std::size_t high_water_bytes(stack s) noexcept;

// Restarts the measurement: releases the pages below sp. No code may be running below sp.
void reset_high_water(stack s) noexcept;
void reset_high_water(stack s, const void* sp) noexcept;

}  // namespace weft
