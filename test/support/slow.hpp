// slow: whether each access is checked, or each instruction emulated, so that a test that only
// repeats does so less often.
#pragma once

#include "weft/base/platform.hpp"

namespace weft::testing {

// Set by the build, where its toolchain names an emulator.
#if defined(WEFT_TEST_EMULATED)
inline constexpr bool emulated = true;
#else
inline constexpr bool emulated = false;
#endif

inline constexpr bool slow = WEFT_ASAN || WEFT_TSAN || emulated;

}  // namespace weft::testing
