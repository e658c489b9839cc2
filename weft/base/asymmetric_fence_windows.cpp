// Both sides are full fences. Windows has FlushProcessWriteBuffers, which is documented to do what
// membarrier does, but Wine 8 has a function of that name that does nothing and reports success.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include "weft/base/detail/asymmetric_fence.hpp"

namespace weft::detail {

bool membarrier_works() noexcept { return false; }
void membarrier() noexcept { full_fence(); }

}  // namespace weft::detail

#endif
