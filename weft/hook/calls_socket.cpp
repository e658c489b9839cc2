// Calls on sockets that name a message or a buffer: each is tried with MSG_DONTWAIT.

#include <limits.h>

#include <algorithm>
#include <chrono>

#include "weft/base/detail/block_cache.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/device.hpp"
#include "weft/hook/detail/iov_cursor.hpp"
#include "weft/hook/detail/transfer.hpp"

namespace weft::hook::in_fiber {
namespace {

constexpr int no_wait = MSG_DONTWAIT;

bool is_to_wait(int flags) noexcept { return (flags & MSG_DONTWAIT) == 0; }
// Urgent bytes of a stream and errors are there or are not. A message socket has no urgent bytes,
// and a local socket no error queue: there the flags have no effect, or are refused.
bool is_to_receive(int fd, int flags) noexcept {
    constexpr int others = MSG_OOB | MSG_ERRQUEUE;
    if ((flags & (MSG_DONTWAIT | others)) == 0) [[likely]]
        return true;
    if ((flags & MSG_DONTWAIT) != 0) return false;
    if ((flags & MSG_OOB) != 0 && sort_of(fd).sort() != fd_sort::message) return false;
    return (flags & MSG_ERRQUEUE) == 0 || family_of(fd) == AF_UNIX;
}

// Whether the call may wait for more than one byte of a stream socket: for all requested bytes, or
// for as many as SO_RCVLOWAT says. A peek at a local socket shows what has come, however much is
// requested.
bool wants_more(int fd, int flags) noexcept {
    if ((flags & MSG_WAITALL) == 0 && !has_low_water()) [[likely]]
        return false;
    if (sort_of(fd).sort() != fd_sort::stream) return false;
    if ((flags & MSG_WAITALL) == 0 && low_water_of(fd) <= 1) return false;
    return (flags & MSG_PEEK) == 0 || family_of(fd) != AF_UNIX;
}

// The least count of bytes that ends such a call.
std::size_t least_of(int fd, int flags, std::size_t bytes) noexcept {
    return (flags & MSG_WAITALL) != 0 ? bytes : std::min(bytes, low_water_of(fd));
}

// Whether the available bytes reach up to an urgent byte.
bool goes_up_to_mark(int fd) noexcept {
    ::pollfd p = {fd, POLLPRI, 0};
    return real::poll(&p, 1, 0) > 0 && (p.revents & POLLPRI) != 0 && !is_at_mark(fd);
}

// What the system reports at an end along with no bytes.
void tell_end(msghdr& m) noexcept {
    m.msg_namelen = 0;
    m.msg_controllen = 0;
    m.msg_flags = 0;
}

// As recvmmsg(2) starts: the pending error of the socket is reported, whatever can be received.
bool has_taken_error(int fd) noexcept {
    ::pollfd p = {fd, 0, 0};
    if (real::poll(&p, 1, 0) <= 0 || (p.revents & POLLERR) == 0) return false;
    const int why = take_error(fd);
    if (why != 0) errno = why;
    return why != 0;
}

// Whether descriptors came with this part, which end a call that waits for all bytes. MSG_CTRUNC
// reports descriptors without space, and credentials without space too.
bool has_rights(int fd, const msghdr& m) noexcept {
    auto& given = const_cast<msghdr&>(m);
    for (cmsghdr* c = CMSG_FIRSTHDR(&given); c != nullptr; c = CMSG_NXTHDR(&given, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) return true;
    if ((m.msg_flags & MSG_CTRUNC) == 0 || family_of(fd) != AF_UNIX) return false;
    int with_credentials = 0;
    ::socklen_t bytes = sizeof with_credentials;
    real::getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &with_credentials, &bytes);
    return with_credentials == 0;
}

// All buffers that are left, as those of one message: descriptors end a call, and come with all of
// the message that fits. Without memory only one buffer is used.
class all_that_is_left {
public:
    all_that_is_left(const iov_cursor& rest, msghdr& m) noexcept {
        rest.put_into(m);
        if (!rest.has_more_buffers()) return;
        bytes_ = rest.all_count() * sizeof(iovec);
        room_ = detail::block_cache::try_acquire(bytes_);
        if (room_ == nullptr) return;
        m.msg_iov = static_cast<iovec*>(room_);
        m.msg_iovlen = rest.all_count();
        rest.copy_all_to(m.msg_iov);
    }
    all_that_is_left(const all_that_is_left&) = delete;
    all_that_is_left& operator=(const all_that_is_left&) = delete;
    ~all_that_is_left() {
        if (room_ != nullptr) detail::block_cache::release(room_, bytes_);
    }

private:
    std::size_t bytes_ = 0;
    void* room_ = nullptr;
};

// The answer of a call that must not wait.
ssize_t received_at_once(int fd, ssize_t n) {
    if (n < 0 && errno == EAGAIN) refused_at_once(fd);
    return n;
}

// Whether the system refuses the message, and no code here can read it.
bool is_bad_message(const msghdr* m) noexcept {
    if (m == nullptr || m->msg_iovlen > std::size_t{IOV_MAX}) return true;
    return m->msg_iov == nullptr && m->msg_iovlen != 0;
}

// Whether a send with MSG_FASTOPEN failed because a connection was begun and its first packet took
// no bytes. A send that waits is then attempted, with other flags, when the connection exists.
bool is_connecting_to_send(int fd, int& flags) noexcept {
    if ((flags & MSG_FASTOPEN) == 0 || errno != EINPROGRESS) return false;
    if (!is_nonblocking(fd)) {
        flags &= ~MSG_FASTOPEN;
        errno = EAGAIN;
        return true;
    }
    errno = EINPROGRESS;
    return false;
}

// MSG_PEEK with MSG_WAITALL, or for at least `least` bytes: each peek starts again from the first
// byte. A call that may not wait, or not any longer, returns what the last peek has shown.
template <class Look>
ssize_t peek_all(int fd, std::size_t least, Look look_at, ended_by by = ended_by::plain_handler,
                 interruptible_from_first_wait* whole = nullptr) {
    ssize_t shown = -1;
    const auto look_on = [&]() -> ssize_t {
        // All that will ever come is there, or all that one call shows.
        const bool ended = is_ready(fd, POLLRDHUP | POLLERR) || goes_up_to_mark(fd);
        const ssize_t n = shown > 0 && ended && keeps_error(fd, true) ? shown : look_at();
        if (ended || n <= 0 || static_cast<std::size_t>(n) >= least) return n;
        errno = n == shown ? eagain_for_a_while : EAGAIN;
        shown = n;
        by = ended_by::any_handler;
        return -1;
    };
    const ssize_t all = transfer(fd, true, look_on, by, whole);
    return all < 0 && shown > 0 ? shown : all;
}

// As recvmsg(2) and sendmsg(2). Of several messages, any handler ends the wait for all but the
// first.
ssize_t receive_message(int fd, msghdr* m, int flags, ended_by by,
                        interruptible_from_first_wait* whole);
ssize_t send_message(int fd, const msghdr* m, int flags, ended_by by,
                     interruptible_from_first_wait* whole);

}  // namespace

ssize_t recvfrom(int fd, void* to, size_t bytes, int flags, sockaddr* peer, socklen_t* peer_bytes) {
    ssize_t last = 0;
    const auto some = [&](int waits_not) {
        return last = real::recvfrom(fd, to, bytes, flags | waits_not, peer, peer_bytes);
    };
    if (!is_to_receive(fd, flags)) return received_at_once(fd, some(no_wait));
    if (!wants_more(fd, flags)) {
        const ssize_t n = transfer(fd, true, [&] { return receive_with(fd, some); });
        if (n == 0 && last < 0 && peer != nullptr && peer_bytes != nullptr) *peer_bytes = 0;
        return n;
    }
    if ((flags & MSG_PEEK) != 0)
        return peek_all(fd, least_of(fd, flags, bytes), [&] { return some(no_wait); });
    iovec one = {to, std::min(bytes, most_bytes)};
    msghdr m{};
    m.msg_iov = &one;
    m.msg_iovlen = 1;
    m.msg_name = peer;
    m.msg_namelen = peer != nullptr && peer_bytes != nullptr ? *peer_bytes : 0;
    const ssize_t n = in_fiber::recvmsg(fd, &m, flags);
    if (n >= 0 && peer != nullptr && peer_bytes != nullptr) *peer_bytes = m.msg_namelen;
    return n;
}

ssize_t recv(int fd, void* to, size_t bytes, int flags) {
    if ((flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE | MSG_WAITALL)) != 0 || has_low_water())
        [[unlikely]]
        return in_fiber::recvfrom(fd, to, bytes, flags, nullptr, nullptr);
    return transfer(fd, true, [=] {
        return receive_with(
            fd, [=](int waits_not) { return real::recv(fd, to, bytes, flags | waits_not); });
    });
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
    bytes = std::min(bytes, most_bytes);
    return transfer(
        fd, false,
        [&] {
            const ssize_t n = real::sendto(fd, at, bytes, flags | no_wait, peer, peer_bytes);
            if (n < 0 && is_connecting_to_send(fd, flags)) {
                peer = nullptr;
                peer_bytes = 0;
            }
            if (n < 0 && errno == EAGAIN) flags |= quiet_while_waiting(fd);
            return n;
        },
        [&](ssize_t n) noexcept {
            at += n;
            bytes -= static_cast<std::size_t>(n);
            flags |= MSG_NOSIGNAL;  // an error from now on does not belong to this call
            return bytes == 0;
        });
}

ssize_t send(int fd, const void* from, size_t bytes, int flags) {
    return in_fiber::sendto(fd, from, bytes, flags, nullptr, 0);
}

ssize_t recvmsg(int fd, msghdr* m, int flags) {
    return receive_message(fd, m, flags, ended_by::plain_handler, nullptr);
}

namespace {

ssize_t receive_message(int fd, msghdr* m, int flags, ended_by by,
                        interruptible_from_first_wait* whole) {
    if (is_bad_message(m)) return real::recvmsg(fd, m, flags | no_wait);
    const msghdr as_given = *m;
    ssize_t last = 0;
    const auto some = [&](int waits_not) {
        // A failed call leaves its arguments unchanged; one that has peeked does not.
        m->msg_namelen = as_given.msg_namelen;
        m->msg_controllen = as_given.msg_controllen;
        last = real::recvmsg(fd, m, flags | waits_not);
        if (last >= 0) opened_by(*m);
        return last;
    };
    if (!is_to_receive(fd, flags)) return received_at_once(fd, some(no_wait));
    if (!wants_more(fd, flags)) {
        const ssize_t n = transfer(fd, true, [&] { return receive_with(fd, some); }, by, whole);
        if (n == 0 && last < 0) tell_end(*m);
        return n;
    }
    iov_cursor rest(m->msg_iov, static_cast<int>(m->msg_iovlen));
    std::size_t least = least_of(fd, flags, rest.bytes());
    if ((flags & MSG_PEEK) != 0)
        return peek_all(fd, least, [&] { return some(no_wait); }, by, whole);
    bool ended = false;
    return transfer(
        fd, true,
        [&]() -> ssize_t {
            if (rest.has_moved() && is_at_mark(fd)) return 0;
            msghdr part = as_given;
            const all_that_is_left buffers(rest, part);
            const ssize_t n = real::recvmsg(fd, &part, flags | no_wait);
            if (n < 0) return n;
            opened_by(part);
            m->msg_controllen = part.msg_controllen;
            m->msg_namelen = part.msg_namelen;
            m->msg_flags = part.msg_flags;
            ended = has_rights(fd, part);
            return n;
        },
        [&](ssize_t n) noexcept {
            const auto got = static_cast<std::size_t>(n);
            const bool is_enough = got >= least;
            least -= std::min(got, least);
            return rest.advance(got) || is_enough || ended;
        },
        by, whole);
}

ssize_t send_message(int fd, const msghdr* m, int flags, ended_by by,
                     interruptible_from_first_wait* whole) {
    if (!is_to_wait(flags) || is_bad_message(m)) return real::sendmsg(fd, m, flags);
    iov_cursor rest(m->msg_iov, static_cast<int>(m->msg_iovlen));
    bool connects = false;
    return transfer(
        fd, false,
        [&] {
            msghdr part = *m;
            rest.put_into(part);
            if (rest.has_moved()) {
                part.msg_control = nullptr;  // went with the first part
                part.msg_controllen = 0;
            }
            if (connects) {
                part.msg_name = nullptr;
                part.msg_namelen = 0;
            }
            const ssize_t n = real::sendmsg(fd, &part, flags | no_wait);
            if (n < 0 && is_connecting_to_send(fd, flags)) connects = true;
            if (n < 0 && errno == EAGAIN) flags |= quiet_while_waiting(fd);
            return n;
        },
        [&](ssize_t n) noexcept {
            flags |= MSG_NOSIGNAL;
            return rest.advance(static_cast<std::size_t>(n));
        },
        by, whole);
}

}  // namespace

ssize_t sendmsg(int fd, const msghdr* m, int flags) {
    return send_message(fd, m, flags, ended_by::plain_handler, nullptr);
}

// As many messages as are there, or one where something is done after each; each is waited for as
// long as one is. The limit is checked after each message, as the system does: it ends no wait.
int recvmmsg(int fd, mmsghdr* all, unsigned count, int flags, timespec* limit) {
    if (!is_to_receive(fd, flags) || count == 0 || all == nullptr)
        return real::recvmmsg(fd, all, count, flags, limit);
    if (limit != nullptr &&
        (limit->tv_nsec < 0 || limit->tv_nsec > 999'999'999 || limit->tv_sec < 0))
        return real::recvmmsg(fd, all, count, flags, limit);
    const time_point end =
        limit == nullptr
            ? never
            : after(now(),
                    hook::duration_of(limit->tv_sec, std::chrono::nanoseconds(limit->tv_nsec)));
    const bool one_is_enough = (flags & MSG_WAITFORONE) != 0;
    flags &= ~MSG_WAITFORONE;
    const bool one_by_one = limit != nullptr || wants_more(fd, flags);
    const int before = errno;
    if (one_by_one && has_taken_error(fd)) return -1;
    unsigned done = 0;
    interruptible_from_first_wait around;
    while (done < count) {
        if (done > 0 && keeps_error(fd, true)) break;
        mmsghdr* const next = all + done;
        unsigned got = 1;
        const ended_by by = done > 0 ? ended_by::any_handler : ended_by::plain_handler;
        if (one_by_one) {
            const ssize_t n = receive_message(fd, &next->msg_hdr, flags, by, &around);
            if (n < 0) break;
            next->msg_len = static_cast<unsigned>(n);
        } else {
            const auto some = [&](int waits_not) -> ssize_t {
                return real::recvmmsg(fd, next, waits_not != 0 ? count - done : 1,
                                      flags | waits_not, nullptr);
            };
            const ssize_t n =
                transfer(fd, true, [&] { return receive_with(fd, some); }, by, &around);
            if (n < 0) break;
            if (n == 0) {  // a message at the end
                tell_end(next->msg_hdr);
                next->msg_len = 0;
            }
            got = std::max(static_cast<unsigned>(n), 1u);
            for (unsigned i = 0; i < got; ++i) opened_by(next[i].msg_hdr);
        }
        done += got;
        if (limit != nullptr) {
            const duration left = std::max(end - now(), duration::zero());
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
            limit->tv_sec = seconds.count();
            limit->tv_nsec = (left - seconds).count();
            if (left == duration::zero()) break;
        }
        if ((all[done - 1].msg_hdr.msg_flags & MSG_OOB) != 0) break;
        if (one_is_enough) {
            if (!one_by_one) break;
            flags |= no_wait;
        }
    }
    if (done == 0) return -1;
    errno = before;
    return static_cast<int>(done);
}

// A message of which only a part was sent is the last.
int sendmmsg(int fd, mmsghdr* all, unsigned count, int flags) {
    if (!is_to_wait(flags) || count == 0 || all == nullptr)
        return real::sendmmsg(fd, all, count, flags);
    count = std::min(count, 1024u);  // as the system does
    const int before = errno;
    interruptible_from_first_wait around;
    for (unsigned i = 0; i < count; ++i) {
        const msghdr& m = all[i].msg_hdr;
        const ended_by by = i > 0 ? ended_by::any_handler : ended_by::plain_handler;
        const ssize_t n = send_message(fd, &m, flags, by, &around);
        if (n < 0) {
            if (i > 0) errno = before;
            return i > 0 ? static_cast<int>(i) : -1;
        }
        all[i].msg_len = static_cast<unsigned>(n);
        const iov_cursor whole(m.msg_iov, static_cast<int>(m.msg_iovlen));
        if (static_cast<std::size_t>(n) < whole.bytes()) return static_cast<int>(i + 1);
    }
    return static_cast<int>(count);
}

}  // namespace weft::hook::in_fiber

// Wakes the writes that wait on a thread: shutdown() of one direction of a local socket ends them,
// and poll does not report that.
int weft::hook::everywhere::shutdown(int fd, int how) {
    const int r = real::shutdown(fd, how);
    if (r == 0 && how != SHUT_RDWR && family_of(fd) == AF_UNIX) prompt_writers();
    return r;
}

int weft::hook::everywhere::setsockopt(int fd, int level, int name, const void* value,
                                       socklen_t bytes) {
    note_option(level, name);
    return real::setsockopt(fd, level, name, value, bytes);
}
