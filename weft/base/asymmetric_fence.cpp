#include "weft/base/detail/asymmetric_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weft/base/assert.hpp"

namespace weft::detail {

namespace {

bool ask_for_membarrier(int command) noexcept {
    return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

// To be registered is not enough: a sandbox may know the one command and not the other.
bool membarrier_works() noexcept {
    static const bool works = !WEFT_TSAN &&
                              ask_for_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                              ask_for_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    return works;
}

void membarrier() noexcept {
    WEFT_ASSERT(ask_for_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
                "asymmetric_fence: the system no longer lets this process call membarrier");
}

}  // namespace weft::detail
