#include "weft/base/detail/spin_wait.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace weft::detail {

void nap(duration d) noexcept {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
    const ::timespec some = {static_cast<std::time_t>(seconds.count()),
                             static_cast<long>((d - seconds).count())};
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
