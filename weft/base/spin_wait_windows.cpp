#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include <windows.h>

#include <algorithm>
#include <chrono>

#include "weft/base/detail/spin_wait.hpp"

namespace weft::detail {

// The system sleeps from tick to tick of its clock, and may come back before the time is over.
void nap(duration d) noexcept {
    const time_point until = after(steady_now(), d);
    do {
        const duration left = time_left(steady_now(), until);
        ::Sleep(static_cast<DWORD>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    } while (steady_now() < until);
}

#if !WEFT_MODEL
void yield_processor() noexcept { ::SwitchToThread(); }

void spin_wait::sleep() noexcept {
    nap(next_);
    next_ = std::min(2 * next_, longest);
}
#endif

}  // namespace weft::detail

#endif
