// fast_unwind is for shared libraries of ELF: there is none.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include "weft/unwind/fast_unwind/fast_unwind.hpp"

namespace weft::fast_unwind {

bool is_linked() noexcept { return false; }
void enable(bool) noexcept {}

}  // namespace weft::fast_unwind

#endif
