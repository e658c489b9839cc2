// Whether locals are on the stack. Clang's AddressSanitizer stores them elsewhere, to find uses
// after their function has returned; so nothing that must not be on a shared stack is there.
#pragma once

#include "weft/base/platform.hpp"

namespace weft::testing {

inline constexpr bool locals_lie_on_the_stack = !(WEFT_ASAN && WEFT_CLANG);

}  // namespace weft::testing
