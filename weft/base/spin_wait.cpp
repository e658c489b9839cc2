#include "weft/base/detail/spin_wait.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "weft/base/detail/timespec.hpp"

namespace weft::detail {

void nap(duration d) noexcept {
    const ::timespec some = timespec_of(d);
    ::syscall(SYS_nanosleep, &some, nullptr);  // ended early by a signal, it is as good
}

#if !WEFT_MODEL
// By a call that nothing replaces: the caller may hold a lock and must not be suspended.
void yield_processor() noexcept { ::syscall(SYS_sched_yield); }

void spin_wait::sleep() noexcept {
    nap(next_);
    next_ = std::min(2 * next_, longest);
}
#endif

}  // namespace weft::detail
