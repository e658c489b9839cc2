// The membarrier of sources compiled for the checker. Replaces weft/base/asymmetric_fence.cpp.
#include "model/model.hpp"
#include "weft/base/detail/asymmetric_fence.hpp"

bool weft::detail::membarrier_works() noexcept { return model::has_membarrier; }
void weft::detail::membarrier() noexcept { model::membarrier(); }
