// High water: how deep a stack has been, to the page.
//
// Design: the kernel knows which pages were touched; nothing is painted, and nothing costs anything
// until high_water_bytes() is called. A page stays touched until it is given back, so a recycled
// stack shows the deepest of all its users; to measure one coroutine, begin with
// reset_high_water().
//
//      | guard | limit ... never touched ... | page page page ... top |
//                                            |<-- high_water_bytes -->|
//
// For stacks of whole pages that hold nothing else (mapped, slab, growable, pools of them). On
// malloc_stack and buffer_stack what lies in the lowest, partial page goes unseen.
//
//   weft::reset_high_water(s);  // after acquire; with sp, of a suspended coroutine
//   ...
//   std::size_t bytes = weft::high_water_bytes(s);
#pragma once

#include <cstddef>

#include "weft/stack/stack.hpp"

namespace weft {

// From the lowest touched page to the top; 0 if none was. All of it if the kernel does not say.
std::size_t high_water_bytes(stack s) noexcept;

// Begins anew: gives back what lies below sp. Nothing may be running below sp.
void reset_high_water(stack s) noexcept;
void reset_high_water(stack s, const void* sp) noexcept;

}  // namespace weft
