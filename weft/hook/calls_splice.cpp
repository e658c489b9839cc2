// Calls that move bytes from one descriptor to another without the program's seeing them, and
// preadv2 and pwritev2.
//
// The pipe of a splice is never waited for by the system: SPLICE_F_NONBLOCK is its own flag. The
// other end has none but its O_NONBLOCK, so that it is asked first whether it is ready, under the
// lock of device.hpp, and given so little that it takes it at once.

#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>

#include "weft/base/block_cache.hpp"
#include "weft/hook/calls.hpp"
#include "weft/hook/device.hpp"
#include "weft/hook/file_call.hpp"
#include "weft/hook/transfer.hpp"

namespace weft::hook::in_fiber {
namespace {

constexpr std::size_t step_bytes = 64 * 1024;   // of sendfile, through memory
constexpr std::size_t page_bytes = 4096;        // a socket with room for anything has room for it
constexpr std::size_t most_bytes = 0x7ffff000;  // that the system moves in one call

bool is_always_ready(int fd) noexcept { return sort_of(fd).sort() == fd_sort::file; }
bool is_pipe_end(int fd) noexcept { return sort_of(fd).sort() == fd_sort::pipe; }

// Asked each time: weft's own io sets O_NONBLOCK for as long as such a call takes.
bool is_not_to_wait(int fd) noexcept {
    const int flags = real::fcntl(fd, F_GETFL, nullptr);
    return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// A wait for whichever of two ends a step found wanting. -1: neither, and the step is to be made
// again; otherwise a number of errno.
class two_ends {
public:
    two_ends(int in, int out) noexcept : in_(in), out_(out) {}

    void look() noexcept {
        at_in_ = hook::look(in_);
        at_out_ = hook::look(out_);
    }
    // waits(fd): whether the call may wait for it. 0: try again; otherwise a number of errno.
    template <class Waits>
    int until_one_is_ready(Waits waits) {
        if (!is_ready(in_, POLLIN)) return until_end_is_ready(in_, at_in_, true, waits);
        if (!is_ready(out_, POLLOUT)) return until_end_is_ready(out_, at_out_, false, waits);
        // Both are ready by now, or one is and takes nothing all the same.
        if (tries_++ < 2) return 0;
        return until(after(now(), std::chrono::milliseconds(1)));
    }

private:
    template <class Waits>
    int until_end_is_ready(int fd, const sight& seen, bool reads, Waits waits) {
        tries_ = 0;
        if (!waits(fd)) return EAGAIN;
        time_point& end = reads ? in_end_ : out_end_;
        if (end == time_point::min()) end = call_deadline(fd, reads);
        return errno_of(until_ready(fd, seen, reads, end));
    }

    const int in_;
    const int out_;
    sight at_in_{};
    sight at_out_{};
    time_point in_end_ = time_point::min();
    time_point out_end_ = time_point::min();
    unsigned tries_ = 0;
};

// step() is made until it moves something or fails otherwise than by EAGAIN.
template <class Step, class Waits>
ssize_t move_between(int in, int out, Step step, Waits waits) {
    two_ends both(in, out);
    const int before = errno;
    for (bool again = false;; again = true) {
        both.look();
        const ssize_t n = step();
        if (n >= 0) {
            if (again) errno = before;
            return n;
        }
        if (errno != EAGAIN) return n;
        if (const int why = both.until_one_is_ready(waits); why != 0) return errno = why, -1;
    }
}

// As the system does, O_NONBLOCK of one pipe is that of both.
template <class Step>
ssize_t between_pipes(int in, int out, unsigned flags, Step step) {
    const bool waits =
        (flags & SPLICE_F_NONBLOCK) == 0 && !is_not_to_wait(in) && !is_not_to_wait(out);
    return move_between(in, out, step, [=](int) { return waits; });
}

// One step from a socket or a device into a pipe; what there is, is enough.
ssize_t into_pipe(int in, int out, std::size_t bytes, unsigned flags) {
    return move_between(
        in, out,
        [=]() -> ssize_t {
            const std::lock_guard held(lock_of(in));
            if (!is_not_to_wait(in) && !is_ready(in, POLLIN)) return errno = EAGAIN, -1;
            return real::splice(in, nullptr, out, nullptr, bytes, flags | SPLICE_F_NONBLOCK);
        },
        [=](int fd) {
            // The flag is the pipe's, and a local socket's.
            const bool waits = (flags & SPLICE_F_NONBLOCK) == 0;
            return !is_not_to_wait(fd) && (waits || (fd == in && family_of(in) != AF_UNIX));
        });
}

// Out of a pipe into a socket or a device: what the pipe holds, and the socket is waited for.
ssize_t out_of_pipe(int in, int out, std::size_t bytes, unsigned flags) {
    if (is_not_to_wait(out)) {
        // Only the pipe may be waited for.
        return move_between(
            in, out,
            [=] {
                return real::splice(in, nullptr, out, nullptr, bytes, flags | SPLICE_F_NONBLOCK);
            },
            [=](int fd) {
                return fd == in && (flags & SPLICE_F_NONBLOCK) == 0 && !is_not_to_wait(in);
            });
    }
    std::size_t moved = 0;
    while (moved < bytes) {
        const ssize_t n = move_between(
            in, out,
            [=]() -> ssize_t {
                const std::lock_guard held(lock_of(out));
                if (!is_ready(out, POLLOUT)) return errno = EAGAIN, -1;
                return real::splice(in, nullptr, out, nullptr, std::min(bytes - moved, page_bytes),
                                    flags | SPLICE_F_NONBLOCK);
            },
            [=](int fd) {
                if (fd == out) return true;
                return moved == 0 && (flags & SPLICE_F_NONBLOCK) == 0 && !is_not_to_wait(in);
            });
        if (n <= 0) return moved > 0 ? static_cast<ssize_t>(moved) : n;
        moved += static_cast<std::size_t>(n);
    }
    return static_cast<ssize_t>(moved);
}

// Whether the system takes the call at all; it moves nothing. A pipe that is full would be waited
// for.
template <class Offset>
bool is_sent_at_all(int out, int in, Offset* at) noexcept {
    return real::sendfile64(out, in, at, 0) >= 0;
}

// Through memory, as the system has no sendfile that does not wait for a socket.
ssize_t send_through_memory(int out, int in, off64_t& at, std::size_t bytes) {
    void* const room = block_cache::try_acquire(step_bytes);
    if (room == nullptr) return errno = ENOMEM, -1;
    struct owned {
        void* room;
        ~owned() { block_cache::release(room, step_bytes); }
    } const own = {room};
    const bool is_socket = sort_of(out).is_socket();
    const int before = errno;
    std::size_t moved = 0;
    while (moved < bytes) {
        const ssize_t n = in_fiber::pread64(in, room, std::min(bytes - moved, step_bytes), at);
        if (n <= 0) {
            if (n == 0 || moved > 0) break;
            return -1;
        }
        const ssize_t sent = is_socket ? in_fiber::send(out, room, static_cast<std::size_t>(n),
                                                        moved > 0 ? MSG_NOSIGNAL : 0)
                                       : in_fiber::write(out, room, static_cast<std::size_t>(n));
        if (sent < 0) {
            if (moved > 0) break;
            return -1;
        }
        moved += static_cast<std::size_t>(sent);
        at += sent;
        if (sent < n || (moved < bytes && is_socket && keeps_error(out, false))) break;
    }
    errno = before;
    return static_cast<ssize_t>(moved);
}

// The rules of both are one, and an offset is 64 bits wide.
ssize_t send_file(int out, int in, off64_t* at, std::size_t bytes) {
    if (is_always_ready(out))
        return file_call([=] { return real::sendfile64(out, in, at, bytes); });
    const bool is_sent = !is_pipe_end(in) && !sort_of(in).is_socket();
    if (!is_sent || is_not_to_wait(out) || (!is_pipe_end(out) && !is_sent_at_all(out, in, at)))
        return real::sendfile64(out, in, at, bytes);
    bytes = std::min(bytes, most_bytes);
    if (is_pipe_end(out)) {
        // What one step moves is enough.
        if (at != nullptr)
            return transfer(out, false, [=] {
                return file_call(
                    [=] { return real::splice(in, at, out, nullptr, bytes, SPLICE_F_NONBLOCK); });
            });
        return transfer(out, false, [=] {
            return file_call(
                [=] { return real::splice(in, nullptr, out, nullptr, bytes, SPLICE_F_NONBLOCK); });
        });
    }
    off64_t from = at != nullptr ? *at : ::lseek64(in, 0, SEEK_CUR);
    const ssize_t n = send_through_memory(out, in, from, bytes);
    if (n > 0) {
        if (at != nullptr)
            *at = from;
        else
            ::lseek64(in, from, SEEK_SET);
    }
    return n;
}

// Of preadv2 and pwritev2. With others (RWF_NOWAIT) they do not wait, or are refused.
constexpr int known_flags = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND;

bool is_of_a_stream(int fd, off64_t at, int flags) noexcept {
    return at == -1 && (flags & ~known_flags) == 0 && !is_always_ready(fd);
}

}  // namespace

ssize_t sendfile(int out, int in, off_t* at, size_t bytes) {
    static_assert(sizeof(off_t) == sizeof(off64_t));
    return send_file(out, in, at, bytes);
}
ssize_t sendfile64(int out, int in, off64_t* at, size_t bytes) {
    return send_file(out, in, at, bytes);
}

ssize_t splice(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes, unsigned flags) {
    const auto as_asked = [=] { return real::splice(in, in_at, out, out_at, bytes, flags); };
    const bool from_pipe = is_pipe_end(in);
    const bool to_pipe = is_pipe_end(out);
    if (bytes == 0 || (!from_pipe && !to_pipe)) return as_asked();
    if ((from_pipe && in_at != nullptr) || (to_pipe && out_at != nullptr)) return as_asked();
    bytes = std::min(bytes, most_bytes);
    if (from_pipe && to_pipe)
        return between_pipes(in, out, flags, [=] {
            return real::splice(in, nullptr, out, nullptr, bytes, flags | SPLICE_F_NONBLOCK);
        });
    const int pipe = from_pipe ? in : out;
    const int other = from_pipe ? out : in;
    // As weft's own io asks, for one.
    if ((flags & SPLICE_F_NONBLOCK) != 0 && is_not_to_wait(other)) return as_asked();
    if (is_always_ready(other)) {
        const bool waits = (flags & SPLICE_F_NONBLOCK) == 0;
        return move_between(
            in, out,
            [=] {
                return file_call([=] {
                    return real::splice(in, in_at, out, out_at, bytes, flags | SPLICE_F_NONBLOCK);
                });
            },
            [=](int fd) { return waits && fd == pipe && !is_not_to_wait(fd); });
    }
    if (in_at != nullptr || out_at != nullptr) return as_asked();  // no socket has such
    return from_pipe ? out_of_pipe(in, out, bytes, flags) : into_pipe(in, out, bytes, flags);
}

ssize_t tee(int in, int out, size_t bytes, unsigned flags) {
    if (bytes == 0 || !is_pipe_end(in) || !is_pipe_end(out))
        return real::tee(in, out, bytes, flags);
    return between_pipes(in, out, flags,
                         [=] { return real::tee(in, out, bytes, flags | SPLICE_F_NONBLOCK); });
}

// O_NONBLOCK is nothing to it.
ssize_t vmsplice(int fd, const iovec* v, size_t count, unsigned flags) {
    if ((flags & SPLICE_F_NONBLOCK) != 0 || !is_pipe_end(fd))
        return real::vmsplice(fd, v, count, flags);
    const bool reads = (real::fcntl(fd, F_GETFL, nullptr) & O_ACCMODE) == O_RDONLY;
    const int before = errno;
    for (;;) {
        const sight seen = look(fd);
        const ssize_t n = real::vmsplice(fd, v, count, flags | SPLICE_F_NONBLOCK);
        if (n >= 0) {
            errno = before;
            return n;
        }
        if (errno != EAGAIN) return n;
        if (const int why = until_ready(fd, seen, reads, never); why != 0) return errno = why, -1;
    }
}

ssize_t copy_file_range(int in, off64_t* in_at, int out, off64_t* out_at, size_t bytes,
                        unsigned flags) {
    return file_call([=] { return real::copy_file_range(in, in_at, out, out_at, bytes, flags); });
}

ssize_t preadv2(int fd, const iovec* v, int count, off_t at, int flags) {
    if (is_of_a_stream(fd, at, flags)) return in_fiber::readv(fd, v, count);
    if ((flags & ~known_flags) != 0) return real::preadv2(fd, v, count, at, flags);
    return file_call([=] { return real::preadv2(fd, v, count, at, flags); });
}
ssize_t preadv64v2(int fd, const iovec* v, int count, off64_t at, int flags) {
    if (is_of_a_stream(fd, at, flags)) return in_fiber::readv(fd, v, count);
    if ((flags & ~known_flags) != 0) return real::preadv64v2(fd, v, count, at, flags);
    return file_call([=] { return real::preadv64v2(fd, v, count, at, flags); });
}
ssize_t pwritev2(int fd, const iovec* v, int count, off_t at, int flags) {
    if (is_of_a_stream(fd, at, flags)) return in_fiber::writev(fd, v, count);
    if ((flags & ~known_flags) != 0) return real::pwritev2(fd, v, count, at, flags);
    return file_call([=] { return real::pwritev2(fd, v, count, at, flags); });
}
ssize_t pwritev64v2(int fd, const iovec* v, int count, off64_t at, int flags) {
    if (is_of_a_stream(fd, at, flags)) return in_fiber::writev(fd, v, count);
    if ((flags & ~known_flags) != 0) return real::pwritev64v2(fd, v, count, at, flags);
    return file_call([=] { return real::pwritev64v2(fd, v, count, at, flags); });
}

}  // namespace weft::hook::in_fiber
