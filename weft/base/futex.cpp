#include "weft/base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

namespace weft::detail {
namespace {

// Moments before the clock's first have come.
timespec timespec_of(time_point t) noexcept {
    const auto since = t < time_point{} ? duration::zero() : t.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((since - seconds).count())};
}

}  // namespace

bool futex_wait_at(void* word, std::uint32_t expected, time_point until) noexcept {
    const int before = errno;
    const timespec moment = timespec_of(until);
    // With bits the moment is absolute, and of CLOCK_MONOTONIC.
    const long r = ::syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                             until == never ? nullptr : &moment, nullptr, FUTEX_BITSET_MATCH_ANY);
    const bool late = r != 0 && errno == ETIMEDOUT;
    errno = before;
    return !late;
}

bool futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept {
    static_assert(sizeof word == sizeof(std::uint32_t));
    return futex_wait_at(&word, expected, until);
}

int futex_wake(const void* word, int most) noexcept {
    const int before = errno;
    const long n = ::syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, most);
    errno = before;
    return n < 0 ? 0 : static_cast<int>(n);
}

}  // namespace weft::detail
