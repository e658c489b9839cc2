// readable: whether the caller's memory can be read, where a call of libc's would fail with EFAULT
// and a plain read would end the program. The check is a system call, except for memory on the
// caller's own stack, where most times and deadlines are.
//
// Model: none, the system is asked.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "weft/base/platform.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/hook/detail/calls.hpp"

namespace weft::hook {

// What the system reports for a wait that need not be made: EFAULT, EAGAIN, or 0. Uses a request to
// requeue no waiters, which reads the word and never waits.
inline int look_at_word(long word, long value) noexcept {
    const int before = errno;
    const long r = real::syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, word, value);
    const int why = r < 0 ? errno : 0;
    errno = before;
    return why == EFAULT || why == EAGAIN ? why : 0;  // other errors concern only this request
}

// Whether p is in the frame of a direct or indirect caller, in the coroutine that runs. Not
// inlined: the frame of this function is below all of them.
WEFT_NOINLINE inline bool is_in_a_frame(const void* p, std::size_t bytes) noexcept {
    const detail::control* const c = detail::current();
    if (c == nullptr) return false;
    const auto number = [](const void* q) noexcept { return reinterpret_cast<std::uintptr_t>(q); };
    const std::uintptr_t lowest = number(__builtin_frame_address(0));
    const std::uintptr_t top = number(c->stack.top);
    return lowest <= number(p) && number(p) <= top && bytes <= top - number(p);
}

// Memory is mapped by the page, so the first and the last word are enough.
inline bool is_readable(const timespec* t) noexcept {
    if (is_in_a_frame(t, sizeof *t)) return true;
    constexpr long word_bytes = 4;
    const auto first = reinterpret_cast<long>(t) & ~(word_bytes - 1);
    const auto last = (reinterpret_cast<long>(t + 1) - 1) & ~(word_bytes - 1);
    constexpr long page = 4096;  // or more
    return look_at_word(first, 0) != EFAULT &&
           (first / page == last / page || look_at_word(last, 0) != EFAULT);
}

}  // namespace weft::hook
