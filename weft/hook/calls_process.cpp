// The end of children: of one, by a descriptor that is readable when it has ended; of any, by
// asking again and again, since the system tells nobody but a thread that waits.

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "weft/hook/calls.hpp"
#include "weft/hook/readiness.hpp"

namespace weft::hook::in_fiber {
namespace {

int pidfd_of(pid_t child) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, child, 0)); }

// The descriptor of a child, closed with the wait, however that ends.
struct child_end {
    int fd;
    explicit child_end(pid_t child) noexcept : fd(opened(pidfd_of(child))) {}
    child_end(const child_end&) = delete;
    child_end& operator=(const child_end&) = delete;
    ~child_end() {
        if (fd >= 0) everywhere::close(fd);
    }
};

}  // namespace

pid_t wait4(pid_t child, int* status, int options, rusage* used) {
    if ((options & WNOHANG) != 0) return real::wait4(child, status, options, used);
    const int before = errno;
    const auto ended = [=] { return real::wait4(child, status, options | WNOHANG, used); };
    if (const pid_t p = ended(); p != 0) return p;
    // Only its end is told, and not that it was stopped.
    const bool by_descriptor = child > 0 && (options & (WUNTRACED | WCONTINUED)) == 0;
    const child_end end(by_descriptor ? child : 0);
    auto pause = std::chrono::microseconds(500);
    for (;;) {
        const sight seen = end.fd >= 0 ? look(end.fd) : sight{};
        if (const pid_t p = ended(); p != 0) {
            if (p > 0) errno = before;
            return p;
        }
        const int why =
            end.fd >= 0 ? until_ready(end.fd, seen, true, never) : until(after(now(), pause));
        if (why != 0) return errno = why, -1;
        pause = std::min(2 * pause, std::chrono::microseconds(16'000));
    }
}

pid_t waitpid(pid_t child, int* status, int options) {
    return in_fiber::wait4(child, status, options, nullptr);
}

pid_t wait(int* status) { return in_fiber::wait4(-1, status, 0, nullptr); }

}  // namespace weft::hook::in_fiber
