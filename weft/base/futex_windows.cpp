// The futex of Windows: a wait on an address, which is a process's own. A waker learns nothing of
// how many it has woken, and a wake of several is one of all: those that were not meant check
// again.
//
// Model: none, as for the header, test/model has its own in its place.
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include <windows.h>

#include <algorithm>

#include "weft/base/detail/futex.hpp"

namespace weft::detail {
namespace {

// Until then, in the system's unit, rounded up. A longer time is cut: a sleep may end early.
DWORD milliseconds_until(time_point until) noexcept {
    using std::chrono::milliseconds;
    if (until == never) return INFINITE;
    constexpr milliseconds most = std::chrono::hours(24);
    const duration left = std::min<duration>(time_left(steady_now(), until), most);
    return static_cast<DWORD>(std::chrono::ceil<milliseconds>(left).count());
}

}  // namespace

bool futex_wait_at(void* word, std::uint32_t expected, time_point until) noexcept {
    if (::WaitOnAddress(word, &expected, sizeof expected, milliseconds_until(until))) return true;
    return ::GetLastError() != ERROR_TIMEOUT || steady_now() < until;
}

bool futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept {
    static_assert(sizeof word == sizeof(std::uint32_t));
    return futex_wait_at(&word, expected, until);
}

int futex_wake(const void* word, int most) noexcept {
    // Neither of them reads or writes there.
    void* const at = const_cast<void*>(word);
    if (most == 1)
        ::WakeByAddressSingle(at);
    else
        ::WakeByAddressAll(at);
    return 0;
}

}  // namespace weft::detail

#endif
