#include "weft/base/detail/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "weft/base/detail/timespec.hpp"

namespace weft::detail {
namespace {

// The system call itself: `syscall` may be a hook. A negative result is an error number.
long futex_call(const void* word, int op, std::uint32_t value, const timespec* moment,
                std::uint32_t bits) noexcept {
#if defined(__x86_64__)
    long r = SYS_futex;
    register const timespec* const r10 __asm__("r10") = moment;
    register const void* const r8 __asm__("r8") = nullptr;
    register const std::uint64_t r9 __asm__("r9") = bits;
    __asm__ volatile("syscall"
                     : "+a"(r)
                     : "D"(word), "S"(static_cast<long>(op)),
                       "d"(static_cast<std::uint64_t>(value)), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return r;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = SYS_futex;
    register std::uintptr_t x0 __asm__("x0") = reinterpret_cast<std::uintptr_t>(word);
    register long x1 __asm__("x1") = op;
    register std::uint64_t x2 __asm__("x2") = value;
    register const timespec* x3 __asm__("x3") = moment;
    register const void* x4 __asm__("x4") = nullptr;
    register std::uint64_t x5 __asm__("x5") = bits;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return static_cast<long>(x0);
#else
    const int before = errno;
    const long r = ::syscall(SYS_futex, word, op, value, moment, nullptr, bits);
    const int why = errno;
    errno = before;
    return r < 0 ? -why : r;
#endif
}

}  // namespace

bool futex_wait_at(void* word, std::uint32_t expected, time_point until) noexcept {
    const timespec moment = timespec_of(until.time_since_epoch());
    // With bits the time is absolute, and of CLOCK_MONOTONIC.
    return futex_call(word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                      until == never ? nullptr : &moment, FUTEX_BITSET_MATCH_ANY) != -ETIMEDOUT;
}

bool futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept {
    static_assert(sizeof word == sizeof(std::uint32_t));
    return futex_wait_at(&word, expected, until);
}

int futex_wake(const void* word, int most) noexcept {
    const long n = futex_call(word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG,
                              static_cast<std::uint32_t>(most), nullptr, 0);
    return n < 0 ? 0 : static_cast<int>(n);
}

}  // namespace weft::detail
