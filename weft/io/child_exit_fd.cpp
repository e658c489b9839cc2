#include "weft/io/detail/child_exit_fd.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "weft/base/errno.hpp"

namespace weft::detail {

result<int> child_exit_fd(::pid_t child) noexcept {
    const long number = ::syscall(SYS_pidfd_open, child, 0);
    if (number >= 0) return static_cast<int>(number);
    // ESRCH: the child was reaped already, because the program ignores SIGCHLD; the thread finds
    // that out.
    if (errno == ENOSYS || errno == EPERM || errno == ESRCH)
        return exit_descriptor_by_thread(child);
    return failure(std::error_code(get_errno(), std::system_category()));
}

result<int> exit_descriptor_by_thread(::pid_t child) noexcept {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return failure(std::error_code(get_errno(), std::system_category()));
    std::error_code error;
    ::sigset_t all;
    ::sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
#if WEFT_EXCEPTIONS
    try {
#endif
        std::thread([child, end = ends[1]] {
            ::siginfo_t of;
            while (::waitid(P_PID, static_cast<::id_t>(child), &of, WEXITED | WNOWAIT) != 0 &&
                   errno == EINTR) {
            }
            ::close(end);
        }).detach();
#if WEFT_EXCEPTIONS
    } catch (const std::system_error& e) {
        error = e.code();
    }
#endif
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!error) return ends[0];
    ::close(ends[0]);
    ::close(ends[1]);
    return failure(error);
}

}  // namespace weft::detail
