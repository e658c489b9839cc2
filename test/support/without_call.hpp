// without_call: a system that lacks one of its calls, as an older one does, or one with a seccomp
// profile that refuses the call.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace weft::testing {

// The calls behind the C library's functions of these names: newer processors have the newer alone.
#if defined(SYS_epoll_wait)
inline constexpr long call_of_epoll_wait = SYS_epoll_wait;
inline constexpr long call_of_poll = SYS_poll;
#else
inline constexpr long call_of_epoll_wait = SYS_epoll_pwait;
inline constexpr long call_of_poll = SYS_ppoll;
#endif

// From now on the call fails in the calling thread, and in the threads and processes that it
// starts, as a call that does not exist, or with `error`: this cannot be undone. False: the thread
// may not install that.
[[nodiscard]] inline bool without_call(long number, int error = ENOSYS) noexcept {
    std::array<::sock_filter, 4> steps = {{
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(::seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(number)},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    }};
    const ::sock_fprog all = {static_cast<unsigned short>(steps.size()), steps.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

}  // namespace weft::testing
