// slow: whether each access is checked, so that a test that only repeats does so less often.
#pragma once

#include "weft/base/platform.hpp"

namespace weft::testing {

inline constexpr bool slow = WEFT_ASAN || WEFT_TSAN;

}  // namespace weft::testing
