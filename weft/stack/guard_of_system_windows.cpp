// Windows has no markers, and no limit of how many pieces of different access there may be.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include <limits>

#include "weft/stack/detail/guard.hpp"

namespace weft::detail {

bool a_marker_faults(const os_memory&) noexcept { return false; }

std::size_t mapping_limit(const char*) noexcept { return std::numeric_limits<std::size_t>::max(); }

}  // namespace weft::detail

#endif
