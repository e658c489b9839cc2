// read and write, and their kin of several buffers: by the sort of the descriptor.

#include <sys/uio.h>

#include <climits>
#include <cstdint>
#include <mutex>

#include "weft/hook/calls.hpp"
#include "weft/hook/device.hpp"
#include "weft/hook/file_call.hpp"
#include "weft/hook/iov_cursor.hpp"
#include "weft/hook/transfer.hpp"

namespace weft::hook::in_fiber {
namespace {

ssize_t try_read(int fd, const iovec* v, int count) noexcept {
    if (!known_sort(fd).has(fd_sort::no_try_read)) {
        const ssize_t n = ::preadv2(fd, v, count, -1, RWF_NOWAIT);
        if (n >= 0 || errno != EOPNOTSUPP) return n;
        add_to_sort(fd, fd_sort::no_try_read);
    }
    errno = EOPNOTSUPP;
    return -1;
}

ssize_t read_device(int fd, const iovec* v, int count) noexcept {
    if (is_nonblocking(fd)) return real::readv(fd, v, count);
    const std::lock_guard held(lock_of(fd));
    if (is_ready(fd, POLLIN)) return real::readv(fd, v, count);
    // Errors do not wait.
    const ssize_t n = try_read(fd, v, count);
    if (n < 0 && errno == EOPNOTSUPP) errno = EAGAIN;
    return n;
}

ssize_t read_pipe(int fd, const iovec* v, int count) noexcept {
    const ssize_t n = try_read(fd, v, count);
    return n >= 0 || errno != EOPNOTSUPP ? n : read_device(fd, v, count);
}

// A pipe that is ready takes so much without waiting; a device, what it is given.
ssize_t write_ready(int fd, const iovec* v, int count, bool is_pipe) noexcept {
    const std::lock_guard held(lock_of(fd));
    if (!is_ready(fd, POLLOUT)) {
        errno = EAGAIN;
        return -1;
    }
    if (!is_pipe) return real::writev(fd, v, count);
    while (v->iov_len == 0) ++v;  // one of them is not: see is_bad()
    return real::write(fd, v->iov_base, std::min<std::size_t>(v->iov_len, PIPE_BUF));
}

ssize_t write_pipe(int fd, const iovec* v, int count) noexcept {
    if (!known_sort(fd).has(fd_sort::no_try_write)) {
        const ssize_t n = ::pwritev2(fd, v, count, -1, RWF_NOWAIT);
        if (n >= 0 || errno != EOPNOTSUPP) return n;
        add_to_sort(fd, fd_sort::no_try_write);
    }
    return is_nonblocking(fd) ? real::writev(fd, v, count) : write_ready(fd, v, count, true);
}

bool is_bad(const iovec* v, int count) noexcept {
    if (count < 0 || count > IOV_MAX) return true;
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

// By what the number is at this moment: it may have become another file's behind all hooks, while
// the call has waited or before it.
ssize_t try_to_read(int fd, const iovec* v, int count) {
    switch (sort_of(fd).sort()) {
        case fd_sort::stream:
        case fd_sort::message: {
            const ssize_t n = receive(fd, v, count);
            if (n >= 0 || errno != ENOTSOCK) return n;
            forget_sort(fd);
            return try_to_read(fd, v, count);
        }
        case fd_sort::pipe:
            return read_pipe(fd, v, count);
        case fd_sort::device:
            return read_device(fd, v, count);
        default:
            return file_call([=] { return real::readv(fd, v, count); });
    }
}

ssize_t try_to_write(int fd, const iov_cursor& rest) {
    const iovec* const v = rest.buffers();
    const int count = rest.count();
    switch (sort_of(fd).sort()) {
        case fd_sort::stream:
        case fd_sort::message: {
            msghdr m{};
            rest.put_into(m);
            const int quiet = rest.has_moved() ? MSG_NOSIGNAL : 0;
            const ssize_t n = real::sendmsg(fd, &m, MSG_DONTWAIT | quiet);
            if (n >= 0 || errno != ENOTSOCK) return n;
            forget_sort(fd);
            return try_to_write(fd, rest);
        }
        case fd_sort::pipe:
            return write_pipe(fd, v, count);
        case fd_sort::device:
            if (is_nonblocking(fd)) return real::writev(fd, v, count);
            return write_ready(fd, v, count, false);
        default:
            return file_call([=] { return real::writev(fd, v, count); });
    }
}

ssize_t read_all_sorts(int fd, const iovec* v, int count) {
    return transfer(fd, true, [=] { return try_to_read(fd, v, count); });
}

ssize_t write_all_sorts(int fd, const iovec* v, int count) {
    iov_cursor rest(v, count);
    return transfer(
        fd, false, [&] { return try_to_write(fd, rest); },
        [&](ssize_t n) noexcept {
            const std::uint8_t sort = known_sort(fd).sort();  // unknown: a file
            const bool part_is_enough = sort == fd_sort::device || sort == fd_sort::unknown;
            return rest.advance(static_cast<std::size_t>(n)) || part_is_enough;
        });
}

}  // namespace

ssize_t read(int fd, void* to, size_t bytes) {
    if (known_sort(fd).is_socket() && bytes - 1 < std::size_t{SSIZE_MAX}) {
        // A number that is another's by now, behind our back.
        const ssize_t n = transfer(fd, true, [=] {
            return receive_with(fd, [=](int flags) { return real::recv(fd, to, bytes, flags); });
        });
        if (n >= 0 || errno != ENOTSOCK) return n;
        forget_sort(fd);
    }
    if (bytes == 0 || bytes > std::size_t{SSIZE_MAX}) return real::read(fd, to, bytes);
    if (sort_of(fd).sort() == fd_sort::file)
        return file_call([=] { return real::read(fd, to, bytes); });
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
    if (bytes == 0 || bytes > std::size_t{SSIZE_MAX}) return real::write(fd, from, bytes);
    if (sort_of(fd).sort() == fd_sort::file)
        return file_call([=] { return real::write(fd, from, bytes); });
    const iovec one = {const_cast<void*>(from), bytes};
    return write_all_sorts(fd, &one, 1);
}

ssize_t writev(int fd, const iovec* v, int count) {
    return is_bad(v, count) ? real::writev(fd, v, count) : write_all_sorts(fd, v, count);
}

}  // namespace weft::hook::in_fiber
