// touch: a write that is made, and where it is written; by its address the memory is in use, or
// the access faults.
#pragma once

#include <cstddef>

namespace weft::testing {

[[gnu::noinline]] inline void touch(volatile std::byte* p) { *p = std::byte{1}; }

}  // namespace weft::testing
