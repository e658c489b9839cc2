// readable: whether memory of the caller's can be read, where a call of libc's would say EFAULT,
// and a look at it would end the program. It takes a system call: for calls that wait in any case.
//
// Model: none, the system is asked.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <cerrno>

#include "weft/hook/calls.hpp"

namespace weft::hook {

// What the system says of a wait that it need not make: EFAULT, EAGAIN, or 0. By a request to move
// none of those that wait, which looks at the word and is no wait at all.
inline int look_at_word(long word, long value) noexcept {
    const int before = errno;
    const long r = real::syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, word, value);
    const int why = r < 0 ? errno : 0;
    errno = before;
    return why == EFAULT || why == EAGAIN ? why : 0;  // others are of this request alone
}

// Memory ends with a page, so that the first and the last word stand for all.
inline bool is_readable(const timespec* t) noexcept {
    constexpr long word_bytes = 4;
    const auto first = reinterpret_cast<long>(t) & ~(word_bytes - 1);
    const auto last = (reinterpret_cast<long>(t + 1) - 1) & ~(word_bytes - 1);
    constexpr long page = 4096;  // or more
    return look_at_word(first, 0) != EFAULT &&
           (first / page == last / page || look_at_word(last, 0) != EFAULT);
}

}  // namespace weft::hook
