// connect and accept.

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/device.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/transfer.hpp"

namespace weft::hook {
namespace {

// One step of a connection: O_NONBLOCK is set for the call itself and for no longer.
int connect_at_once(int fd, const sockaddr* to, socklen_t to_bytes) noexcept {
    int on = 1;
    if (real::ioctl(fd, FIONBIO, &on) != 0) return -1;
    const int r = real::connect(fd, to, to_bytes);
    const int why = errno;
    on = 0;
    real::ioctl(fd, FIONBIO, &on);
    errno = why;
    return r;
}

// The listening socket of a local address is full: no event reports when it has room.
constexpr auto full_wait = std::chrono::milliseconds(2);

// The system takes the fd before it waits. False with the reason in errno.
bool has_number_left(int fd) noexcept {
    const int n = real::fcntl(fd, F_DUPFD_CLOEXEC, nullptr);
    if (n < 0) return false;
    real::close(n);
    return true;
}

// For a descriptor that waits. A call that has to fail does so at once.
int accept_at_once(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags) noexcept {
    if ((flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0)
        return real::accept4(fd, peer, peer_bytes, flags);
    const std::lock_guard held(lock_of(fd));
    if (!is_ready(fd, POLLIN)) {
        int listens = 0;
        ::socklen_t bytes = sizeof listens;
        const bool asked = real::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0;
        if (asked && listens != 0 && !is_nonblocking(fd)) {
            if (has_number_left(fd)) errno = EAGAIN;
            return -1;
        }
    }
    return real::accept4(fd, peer, peer_bytes, flags);
}

}  // namespace

// A connect() that has waited ends by another connect(), which reports the result.
int in_fiber::connect(int fd, const sockaddr* to, socklen_t to_bytes) {
    if (!sort_of(fd).is_socket() || is_nonblocking(fd)) return real::connect(fd, to, to_bytes);
    const time_point deadline = call_deadline(fd, false);
    const int before = errno;
    int begun_as = 0;  // EALREADY where another call has begun it
    interruptible_from_first_wait around;
    const ended_by by = deadline == never ? ended_by::plain_handler : ended_by::any_handler;
    for (;;) {
        const snapshot seen = look(fd);
        const int r = connect_at_once(fd, to, to_bytes);
        if (r == 0 || (begun_as != 0 && errno == EISCONN)) {
            errno = before;
            return 0;
        }
        int why = errno;
        if (why == EAGAIN) {
            if (deadline <= now()) return errno = EAGAIN, -1;
            const time_point again = std::min(after(now(), full_wait), deadline);
            why = until(again, around.before_wait(by));
        } else if (why == EINPROGRESS || why == EALREADY) {
            if (begun_as == 0) begun_as = why;
            why = until_ready(fd, seen, false, deadline, around.before_wait(by));
            if (why == timed_out) why = begun_as;
        }
        if (why == 0) continue;
        errno = why;
        return -1;
    }
}

int everywhere::accept4(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags) {
    fiber_core* const f = hooked_fiber();
    if (f == nullptr) return opened(real::accept4(fd, peer, peer_bytes, flags));
    const cancellation_point here(f);
    sort_of(fd);  // so that what is learnt about it can be stored
    return opened(static_cast<int>(transfer(
        fd, true, [=]() -> ssize_t { return accept_at_once(fd, peer, peer_bytes, flags); })));
}

int everywhere::accept(int fd, sockaddr* peer, socklen_t* peer_bytes) {
    if (hooked_fiber() == nullptr) return opened(real::accept(fd, peer, peer_bytes));
    return everywhere::accept4(fd, peer, peer_bytes, 0);
}

}  // namespace weft::hook
