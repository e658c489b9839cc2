// Calls on sockets that name a message or a buffer: each is tried with MSG_DONTWAIT.

#include <limits.h>

#include <algorithm>
#include <chrono>

#include "weft/hook/calls.hpp"
#include "weft/hook/device.hpp"
#include "weft/hook/iov_cursor.hpp"
#include "weft/hook/transfer.hpp"

namespace weft::hook::in_fiber {
namespace {

// What the caller does not see is not what he asked for.
constexpr int no_wait = MSG_DONTWAIT;

bool is_to_wait(int flags) noexcept { return (flags & MSG_DONTWAIT) == 0; }
// Urgent bytes and errors are there or are not.
bool is_to_receive(int flags) noexcept {
    return (flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE)) == 0;
}

// A local socket looks at what there is, whatever is asked for.
bool looks_at_all(int fd) noexcept {
    int family = 0;
    ::socklen_t bytes = sizeof family;
    real::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes);
    return family != AF_UNIX;
}

// Of a socket of bytes, where all that is asked for is waited for.
bool wants_all(int fd, int flags) noexcept {
    return (flags & MSG_WAITALL) != 0 && sort_of(fd).sort() == fd_sort::stream &&
           ((flags & MSG_PEEK) == 0 || looks_at_all(fd));
}

// What the system refuses, and nothing here can read.
bool is_bad_message(const msghdr* m) noexcept {
    return m == nullptr || m->msg_iovlen > std::size_t{IOV_MAX};
}

// MSG_PEEK with MSG_WAITALL: each look begins anew.
template <class Look>
ssize_t peek_all(int fd, std::size_t bytes, Look look_at) {
    ssize_t before = -1;
    return transfer(fd, true, [&]() -> ssize_t {
        const bool ended = is_ready(fd, POLLRDHUP);  // the look sees all that will ever come
        const ssize_t n = look_at();
        if (ended || n <= 0 || static_cast<std::size_t>(n) >= bytes) return n;
        // A driver that tells what is there, and not what has come, would tell it at once.
        if (n == before)
            if (const int why = until(after(now(), std::chrono::milliseconds(1))); why != 0)
                return errno = why, -1;
        before = n;
        errno = EAGAIN;
        return -1;
    });
}

}  // namespace

ssize_t recvfrom(int fd, void* to, size_t bytes, int flags, sockaddr* peer, socklen_t* peer_bytes) {
    const auto some = [&](void* at, std::size_t room) {
        return real::recvfrom(fd, at, room, flags | no_wait, peer, peer_bytes);
    };
    if (!is_to_receive(flags)) return some(to, bytes);
    if (!wants_all(fd, flags)) return transfer(fd, true, [&] { return some(to, bytes); });
    if ((flags & MSG_PEEK) != 0) return peek_all(fd, bytes, [&] { return some(to, bytes); });
    char* at = static_cast<char*>(to);
    return transfer(
        fd, true, [&] { return some(at, bytes); },
        [&](ssize_t n) noexcept {
            at += n;
            bytes -= static_cast<std::size_t>(n);
            return bytes == 0;
        });
}

ssize_t recv(int fd, void* to, size_t bytes, int flags) {
    if (!is_to_receive(flags) || (flags & MSG_WAITALL) != 0)
        return in_fiber::recvfrom(fd, to, bytes, flags, nullptr, nullptr);
    return transfer(fd, true, [=] { return real::recv(fd, to, bytes, flags | no_wait); });
}

ssize_t __recv_chk(int fd, void* to, size_t bytes, size_t room, int flags) {
    if (bytes > room) return real::__recv_chk(fd, to, bytes, room, flags);
    return in_fiber::recv(fd, to, bytes, flags);
}

ssize_t __recvfrom_chk(int fd, void* to, size_t bytes, size_t room, int flags, sockaddr* peer,
                       socklen_t* peer_bytes) {
    if (bytes > room) return real::__recvfrom_chk(fd, to, bytes, room, flags, peer, peer_bytes);
    return in_fiber::recvfrom(fd, to, bytes, flags, peer, peer_bytes);
}

ssize_t sendto(int fd, const void* from, size_t bytes, int flags, const sockaddr* peer,
               socklen_t peer_bytes) {
    if (!is_to_wait(flags)) return real::sendto(fd, from, bytes, flags, peer, peer_bytes);
    const char* at = static_cast<const char*>(from);
    return transfer(
        fd, false, [&] { return real::sendto(fd, at, bytes, flags | no_wait, peer, peer_bytes); },
        [&](ssize_t n) noexcept {
            at += n;
            bytes -= static_cast<std::size_t>(n);
            flags |= MSG_NOSIGNAL;  // an error from now on is not this call's
            return bytes == 0;
        });
}

ssize_t send(int fd, const void* from, size_t bytes, int flags) {
    return in_fiber::sendto(fd, from, bytes, flags, nullptr, 0);
}

ssize_t recvmsg(int fd, msghdr* m, int flags) {
    if (is_bad_message(m)) return real::recvmsg(fd, m, flags | no_wait);
    const msghdr as_given = *m;
    const auto some = [&] {
        // A failed call leaves what it was given.
        const ssize_t n = real::recvmsg(fd, m, flags | no_wait);
        if (n >= 0) opened_by(*m);
        return n;
    };
    if (!is_to_receive(flags)) return some();
    if (!wants_all(fd, flags)) return transfer(fd, true, some);
    iov_cursor rest(m->msg_iov, static_cast<int>(m->msg_iovlen));
    if ((flags & MSG_PEEK) != 0) return peek_all(fd, rest.bytes(), some);
    const ssize_t all = transfer(
        fd, true,
        [&] {
            msghdr part = as_given;
            rest.put_into(part);
            if (rest.has_moved()) part.msg_controllen = 0;
            const ssize_t n = real::recvmsg(fd, &part, flags | no_wait);
            if (n < 0) return n;
            opened_by(part);
            if (!rest.has_moved()) m->msg_controllen = part.msg_controllen;
            m->msg_namelen = part.msg_namelen;
            m->msg_flags = part.msg_flags;
            return n;
        },
        [&](ssize_t n) noexcept { return rest.advance(static_cast<std::size_t>(n)); });
    return all;
}

ssize_t sendmsg(int fd, const msghdr* m, int flags) {
    if (!is_to_wait(flags) || is_bad_message(m)) return real::sendmsg(fd, m, flags);
    iov_cursor rest(m->msg_iov, static_cast<int>(m->msg_iovlen));
    return transfer(
        fd, false,
        [&] {
            msghdr part = *m;
            rest.put_into(part);
            if (rest.has_moved()) {
                part.msg_control = nullptr;  // went with the first part
                part.msg_controllen = 0;
            }
            return real::sendmsg(fd, &part, flags | no_wait);
        },
        [&](ssize_t n) noexcept {
            flags |= MSG_NOSIGNAL;
            return rest.advance(static_cast<std::size_t>(n));
        });
}

// The limit is looked at after each message, as the system does: it ends no wait.
int recvmmsg(int fd, mmsghdr* all, unsigned count, int flags, timespec* limit) {
    if (!is_to_receive(flags) || count == 0) return real::recvmmsg(fd, all, count, flags, limit);
    if (limit != nullptr &&
        (limit->tv_nsec < 0 || limit->tv_nsec > 999'999'999 || limit->tv_sec < 0))
        return real::recvmmsg(fd, all, count, flags, limit);
    const time_point end =
        limit == nullptr
            ? never
            : after(now(),
                    hook::duration_of(limit->tv_sec, std::chrono::nanoseconds(limit->tv_nsec)));
    const bool one_is_enough = (flags & MSG_WAITFORONE) != 0;
    unsigned done = 0;
    const ssize_t n = transfer(
        fd, true,
        [&]() -> ssize_t {
            const int got = real::recvmmsg(fd, all + done, limit != nullptr ? 1 : count - done,
                                           (flags & ~MSG_WAITFORONE) | no_wait, nullptr);
            for (int i = 0; i < got; ++i) opened_by(all[done + static_cast<unsigned>(i)].msg_hdr);
            return got;
        },
        [&](ssize_t got) noexcept {
            done += static_cast<unsigned>(got);
            return done == count || (one_is_enough && limit == nullptr) || end <= now();
        });
    if (limit != nullptr) {
        const auto left = std::max(end - now(), duration::zero());
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
        limit->tv_sec = seconds.count();
        limit->tv_nsec = (left - seconds).count();
    }
    return static_cast<int>(n);
}

int sendmmsg(int fd, mmsghdr* all, unsigned count, int flags) {
    if (!is_to_wait(flags)) return real::sendmmsg(fd, all, count, flags);
    count = std::min(count, 1024u);  // as the system does
    for (unsigned i = 0; i < count; ++i) {
        const ssize_t n = in_fiber::sendmsg(fd, &all[i].msg_hdr, flags);
        if (n < 0) return i > 0 ? static_cast<int>(i) : -1;
        all[i].msg_len = static_cast<unsigned>(n);
    }
    return static_cast<int>(count);
}

}  // namespace weft::hook::in_fiber
