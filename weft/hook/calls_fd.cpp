// Calls that open, close and change descriptors: on whatever thread, since descriptors belong to
// the process.

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/device.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/offloaded_call.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/record_lock.hpp"
#include "weft/hook/detail/turn_budget.hpp"
#include "weft/wait/shield.hpp"

#if !defined(CLOSE_RANGE_UNSHARE)
#define CLOSE_RANGE_UNSHARE (1u << 1)
#endif

namespace weft::hook::everywhere {
namespace {

int opened_pair(int r, const int* pair) noexcept {
    if (r == 0) {
        opened(pair[0]);
        opened(pair[1]);
    }
    return r;
}

// An fd that replaces another: the waiters of the replaced file are notified before.
template <class Real>
int replacing(int fd, int as, Real dup) noexcept {
    if (fd != as && as >= 0 && real::fcntl(fd, F_GETFD, nullptr) >= 0) leave_table(as);
    return dup();
}

// The system waits in close() whatever the socket's flags say, so a thread of weft's own makes the
// call.
class close_call final : public offloaded_call {
public:
    explicit close_call(int fd) noexcept : fd_(fd) {}
    int result() const noexcept { return result_; }
    int error() const noexcept { return error_; }
    void run() noexcept override {
        result_ = real::close(fd_);
        error_ = errno;
    }

private:
    const int fd_;
    int result_ = -1;
    int error_ = 0;
};

// No stop ends it. A cancellation request may: the fd is then closed nevertheless, as for a thread,
// and may belong to another file by now.
int close_lingering(int fd) {
    const int before = errno;
    const offloaded_ptr e(new (std::nothrow) close_call(fd));
    const shield from_stops;
    if (!e) return real::close(fd);
    const int why = run_offloaded(*e, "a close that lingers");
    if (!e->is_posted()) return real::close(fd);
    if (why != 0) return errno = why, -1;
    errno = e->result() == 0 ? before : e->error();
    return e->result();
}

}  // namespace

int socket(int family, int type, int protocol) {
    return opened(real::socket(family, type, protocol));
}
int socketpair(int family, int type, int protocol, int* pair) {
    return opened_pair(real::socketpair(family, type, protocol, pair), pair);
}
int pipe(int* ends) { return opened_pair(real::pipe(ends), ends); }
int pipe2(int* ends, int flags) { return opened_pair(real::pipe2(ends, flags), ends); }
int eventfd(unsigned count, int flags) { return opened(real::eventfd(count, flags)); }
int dup(int fd) { return opened(real::dup(fd)); }

int dup2(int fd, int as) {
    return replacing(fd, as, [=] { return real::dup2(fd, as); });
}
int dup3(int fd, int as, int flags) {
    if ((flags & ~O_CLOEXEC) != 0) return real::dup3(fd, as, flags);  // it is refused
    return replacing(fd, as, [=] { return real::dup3(fd, as, flags); });
}

int close(int fd) {
    fiber_core* const f = hooked_fiber();
    const cancellation_point here(f);
    if (fd >= 0) leave_table(fd);
    if (f != nullptr && lingers(fd) && is_own_process()) [[unlikely]]
        return close_lingering(fd);
    return real::close(fd);
}

int close_range(unsigned first, unsigned last, int flags) {
    // Other commands are refused, or close nothing.
    constexpr unsigned that_closes = CLOSE_RANGE_UNSHARE;
    if (first <= last && (static_cast<unsigned>(flags) & ~that_closes) == 0)
        leave_table(first, last);
    return real::close_range(first, last, flags);
}

void closefrom(int first) {
    leave_table(static_cast<unsigned>(std::max(first, 0)), ~0u);
    real::closefrom(first);
}

int fcntl(int fd, int command, void* argument) {
    switch (command) {
        case F_DUPFD:
        case F_DUPFD_CLOEXEC:
            return opened(real::fcntl(fd, command, argument));
        case F_SETLKW:
        case F_OFD_SETLKW:
            if (fiber_core* const f = hooked_fiber()) {
                const cancellation_point here(f);
                return wait_for_record(fd, command, argument);
            }
            return real::fcntl(fd, command, argument);
        case F_SETLK:
        case F_OFD_SETLK:
            pay(price::lock);
            [[fallthrough]];
        default:
            return real::fcntl(fd, command, argument);
    }
}
int fcntl64(int fd, int command, void* argument) {
    return everywhere::fcntl(fd, command, argument);
}

int ioctl(int fd, unsigned long request, void* argument) {
    const int r = real::ioctl(fd, request, argument);
    return request == TIOCGPTPEER ? opened(r) : r;
}

}  // namespace weft::hook::everywhere
