// read and write, and their variants with several buffers: by the type of the descriptor.

#include <linux/magic.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "weft/base/detail/block_cache.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/device.hpp"
#include "weft/hook/detail/file_call.hpp"
#include "weft/hook/detail/iov_cursor.hpp"
#include "weft/hook/detail/transfer.hpp"

namespace weft::hook::in_fiber {
namespace {

ssize_t try_read(int fd, const iovec* v, int count) noexcept {
    if (!known_sort(fd).has(fd_sort::no_try_read)) {
        const ssize_t n = real::preadv2(fd, v, count, -1, RWF_NOWAIT);
        if (n >= 0 || errno != EOPNOTSUPP) return n;
        add_to_sort(fd, fd_sort::no_try_read);
    }
    errno = EOPNOTSUPP;
    return -1;
}

ssize_t read_device(int fd, const iovec* v, int count) noexcept {
    const ssize_t n = try_read(fd, v, count);
    if (n >= 0 || errno != EOPNOTSUPP) return n;
    if (is_nonblocking(fd)) return real::readv(fd, v, count);
    const std::lock_guard held(lock_of(fd));
    if (is_ready(fd, POLLIN)) return real::readv(fd, v, count);
    errno = EAGAIN;
    return -1;
}

// Whether the pipe has a name, and can therefore be opened again. An unnamed pipe, on a system
// without an attempt for it, is checked first: an open would cost more than all else.
bool has_name(int fd) noexcept {
    struct ::statfs s;
    return ::fstatfs(fd, &s) == 0 && s.f_type != PIPEFS_MAGIC;
}

ssize_t read_pipe(int fd, const iovec* v, int count) noexcept {
    ssize_t n = try_read(fd, v, count);
    if (n >= 0 || errno != EOPNOTSUPP) return n;
    if (is_nonblocking(fd)) return real::readv(fd, v, count);
    if (has_name(fd)) {
        n = try_apart(fd, v, count, true);
        if (n >= 0 || errno != EOPNOTSUPP) return n;
    }
    return read_device(fd, v, count);
}

ssize_t try_write(int fd, const iovec* v, int count) noexcept {
    if (!known_sort(fd).has(fd_sort::no_try_write)) {
        const ssize_t n = real::pwritev2(fd, v, count, -1, RWF_NOWAIT);
        if (n >= 0 || errno != EOPNOTSUPP) return n;
        add_to_sort(fd, fd_sort::no_try_write);
    }
    errno = EOPNOTSUPP;
    return -1;
}

// Writes to a device, which takes all bytes in one call. The attempt is for a device that cannot be
// written at all (a timer, a set of epoll): the system refuses that write before it reports that it
// has no attempt.
ssize_t write_device(int fd, const iovec* v, int count) {
    const ssize_t n = try_write(fd, v, count);
    if (n >= 0 || errno != EOPNOTSUPP) return n;
    if (is_nonblocking(fd)) return real::writev(fd, v, count);
    if (known_sort(fd).has(fd_sort::steers)) return try_write_steering(fd, v);
    const std::lock_guard held(lock_of(fd));
    if (is_ready(fd, POLLOUT)) return real::writev(fd, v, count);
    errno = EAGAIN;
    return -1;
}

ssize_t write_pipe(int fd, const iovec* v, int count) noexcept {
    ssize_t n = try_write(fd, v, count);
    if (n >= 0 || errno != EOPNOTSUPP) return n;
    if (is_nonblocking(fd)) return real::writev(fd, v, count);
    if (has_name(fd)) {
        n = try_apart(fd, v, count, false);
        if (n >= 0 || errno != EOPNOTSUPP) return n;
        // The pipe has no reader, which is not waited for.
        if (is_ready(fd, POLLERR)) return real::writev(fd, v, count);
    }
    return try_write_part(fd, v, count, PIPE_BUF);
}

// A write may be a message (O_DIRECT), which begins where the last one has ended, and not with the
// next buffer.
ssize_t write_pipe(int fd, const iov_cursor& rest) noexcept {
    if (!rest.has_more_buffers()) return write_pipe(fd, rest.buffers(), rest.count());
    void* const room = detail::block_cache::try_acquire(PIPE_BUF);
    if (room == nullptr) return errno = ENOMEM, -1;
    const iovec next = {room, rest.copy_to(static_cast<char*>(room), PIPE_BUF)};
    const ssize_t n = write_pipe(fd, &next, 1);
    const int why = errno;
    detail::block_cache::release(room, PIPE_BUF);
    errno = why;
    return n;
}

bool is_bad(const iovec* v, int count) noexcept {
    if (count < 0 || count > IOV_MAX || v == nullptr) return true;
    std::size_t all = 0;
    for (int i = 0; i < count; ++i) {
        if (v[i].iov_len > std::size_t{SSIZE_MAX} - all) return true;
        all += v[i].iov_len;
    }
    return all == 0;
}

ssize_t receive(int fd, const iovec* v, int count) noexcept {
    msghdr m{};
    m.msg_iov = const_cast<iovec*>(v);
    m.msg_iovlen = static_cast<std::size_t>(count);
    return receive_with(fd, [&](int flags) { return real::recvmsg(fd, &m, flags); });
}

// Chooses by the type of the fd now: the fd may have become another file's behind all hooks, while
// the call has waited or before the wait.
ssize_t try_to_read(int fd, const iovec* v, int count) {
    switch (sort_of(fd).sort()) {
        case fd_sort::stream:
        case fd_sort::message: {
            const ssize_t n = receive(fd, v, count);
            if (n >= 0 || errno != ENOTSOCK) return n;
            invalidate_sort(fd);
            return try_to_read(fd, v, count);
        }
        case fd_sort::pipe:
            return read_pipe(fd, v, count);
        case fd_sort::device:
        case fd_sort::counter:
            return read_device(fd, v, count);
        case fd_sort::terminal:
            return read_terminal(fd, v, count);
        default:
            return file_call([=] { return real::readv(fd, v, count); });
    }
}

// `quiet` is MSG_NOSIGNAL where an error belongs to another call, or to a wait.
ssize_t try_to_write(int fd, const iov_cursor& rest, int& quiet) {
    const iovec* const v = rest.buffers();
    const int count = rest.count();
    switch (sort_of(fd).sort()) {
        case fd_sort::stream:
        case fd_sort::message: {
            msghdr m{};
            rest.put_into(m);
            if (rest.has_moved()) quiet = MSG_NOSIGNAL;
            const ssize_t n = real::sendmsg(fd, &m, MSG_DONTWAIT | quiet);
            if (n >= 0) return n;
            if (errno == EAGAIN) quiet |= quiet_while_waiting(fd);
            if (errno != ENOTSOCK) return n;
            invalidate_sort(fd);
            return try_to_write(fd, rest, quiet);
        }
        case fd_sort::pipe:
            return write_pipe(fd, rest);
        case fd_sort::device:
            return write_device(fd, v, count);
        case fd_sort::counter:
            return try_write_counter(fd, v, count);
        case fd_sort::terminal:
            return try_write_terminal(fd, v, count);
        default:
            return file_call([=] { return real::writev(fd, v, count); });
    }
}

// Whether a read of no bytes waits on fd, to report that the buffer has no room for what has come.
bool tells_what_has_no_room(int fd) noexcept {
    if (sort_of(fd).sort() != fd_sort::device) return false;
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    char name[32];
    const ssize_t n = ::readlink(path, name, sizeof name);
    const std::string_view is(name, n > 0 ? static_cast<std::size_t>(n) : 0);
    return is == "anon_inode:inotify" || is == "anon_inode:[fanotify]";
}

ssize_t read_none(int fd, void* to) {
    const int before = errno;
    const bool waits = tells_what_has_no_room(fd) && !is_nonblocking(fd);
    errno = before;
    if (!waits) return real::read(fd, to, 0);
    return transfer(fd, true, [=]() noexcept -> ssize_t {
        if (is_ready(fd, POLLIN)) return real::read(fd, to, 0);
        return errno = EAGAIN, -1;
    });
}

ssize_t read_all_sorts(int fd, const iovec* v, int count) {
    if (has_low_water() && sort_of(fd).is_socket()) [[unlikely]] {
        msghdr m{};
        m.msg_iov = const_cast<iovec*>(v);
        m.msg_iovlen = static_cast<std::size_t>(count);
        const ssize_t n = in_fiber::recvmsg(fd, &m, 0);
        if (n >= 0 || errno != ENOTSOCK) return n;
        invalidate_sort(fd);
    }
    return transfer(fd, true, [=] { return try_to_read(fd, v, count); });
}

}  // namespace

ssize_t write_all_sorts(int fd, const iovec* v, int count, ended_by by,
                        interruptible_from_first_wait* whole) {
    iov_cursor rest(v, count);
    int quiet = 0;
    return transfer(
        fd, false, [&] { return try_to_write(fd, rest, quiet); },
        [&](ssize_t n) noexcept {
            const fd_sort known = known_sort(fd);
            // A counter goes on to the next buffer where it has taken all of one.
            const bool is_counted = known.sort() == fd_sort::counter &&
                                    rest.buffers()->iov_len != static_cast<std::size_t>(n);
            const bool part_is_enough =
                known.sort() == fd_sort::file || is_counted ||
                (known.sort() == fd_sort::device && !known.has(fd_sort::steers));
            return rest.advance(static_cast<std::size_t>(n)) || part_is_enough;
        },
        by, whole);
}

ssize_t read(int fd, void* to, size_t bytes) {
    const fd_sort known = known_sort(fd);
    if (known.sort() == fd_sort::pipe && bytes - 1 < std::size_t{SSIZE_MAX}) {
        // The common case, at once.
        return transfer(fd, true, [=] {
            const iovec one = {to, bytes};
            const fd_sort now = known_sort(fd);
            if (now.sort() == fd_sort::pipe && !now.has(fd_sort::no_try_read)) [[likely]] {
                const ssize_t n = real::preadv2(fd, &one, 1, -1, RWF_NOWAIT);
                if (n >= 0 || errno != EOPNOTSUPP) return n;
            }
            return try_to_read(fd, &one, 1);
        });
    }
    if (known.is_socket() && bytes - 1 < std::size_t{SSIZE_MAX} && !has_low_water()) {
        // The fd belongs to another file by now, without a hooked call.
        const ssize_t n = transfer(fd, true, [=] {
            return receive_with(fd, [=](int flags) { return real::recv(fd, to, bytes, flags); });
        });
        if (n >= 0 || errno != ENOTSOCK) return n;
        invalidate_sort(fd);
    }
    if (bytes == 0) return read_none(fd, to);
    if (bytes > std::size_t{SSIZE_MAX}) return real::read(fd, to, bytes);
    if (sort_of(fd).sort() == fd_sort::file) {
        pay_for(fd);
        return file_call([=] { return real::read(fd, to, bytes); });
    }
    const iovec one = {to, bytes};
    return read_all_sorts(fd, &one, 1);
}

ssize_t __read_chk(int fd, void* to, size_t bytes, size_t room) {
    return bytes > room ? real::__read_chk(fd, to, bytes, room) : in_fiber::read(fd, to, bytes);
}

ssize_t readv(int fd, const iovec* v, int count) {
    return is_bad(v, count) ? real::readv(fd, v, count) : read_all_sorts(fd, v, count);
}

ssize_t write(int fd, const void* from, size_t bytes) {
    if (bytes - 1 >= std::size_t{SSIZE_MAX}) [[unlikely]] {
        // A socket of messages sends one of no bytes, for which it may have no room.
        if (bytes != 0 || sort_of(fd).sort() != fd_sort::message)
            return real::write(fd, from, bytes);
    }
    if (sort_of(fd).sort() == fd_sort::file) {
        pay_for(fd);
        return file_call([=] { return real::write(fd, from, bytes); });
    }
    const iovec one = {const_cast<void*>(from), std::min(bytes, most_bytes)};
    return write_all_sorts(fd, &one, 1);
}

ssize_t writev(int fd, const iovec* v, int count) {
    return is_bad(v, count) ? real::writev(fd, v, count) : write_all_sorts(fd, v, count);
}

}  // namespace weft::hook::in_fiber
