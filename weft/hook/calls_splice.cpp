// Calls that move bytes from one descriptor to another without the program's seeing them, and
// preadv2 and pwritev2.
//
// The pipe of a splice is never waited for by the system: SPLICE_F_NONBLOCK is its own flag. The
// other end has no flag but its O_NONBLOCK, so it is first queried whether it is ready, under the
// lock of device.hpp, and given so few bytes that it takes them at once.

#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>

#include "weft/base/detail/block_cache.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/device.hpp"
#include "weft/hook/detail/file_call.hpp"
#include "weft/hook/detail/iov_cursor.hpp"
#include "weft/hook/detail/transfer.hpp"

namespace weft::hook::in_fiber {
namespace {

constexpr std::size_t step_bytes = 64 * 1024;  // of sendfile, through memory
constexpr std::size_t page_bytes = 4096;       // a socket with room for anything has room for it

bool is_always_ready(int fd) noexcept { return sort_of(fd).sort() == fd_sort::file; }
bool is_pipe_end(int fd) noexcept { return sort_of(fd).sort() == fd_sort::pipe; }

// Read each time: weft's own io sets O_NONBLOCK while such a call runs.
bool is_not_to_wait(int fd) noexcept {
    const int flags = real::fcntl(fd, F_GETFL, nullptr);
    return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// One of the two ends of a call, of which each may be waited for.
struct one_end {
    int fd;
    bool reads;
    snapshot seen = {};
    time_point deadline = time_point::min();  // min(): not determined yet

    bool is_ready_now() const noexcept { return is_ready(fd, reads ? POLLIN : POLLOUT); }
    bool has_deadline() {
        if (deadline == time_point::min()) deadline = call_deadline(fd, reads);
        return deadline != never;
    }
    int wait(const interruptible& around) {
        return errno_of(until_ready(fd, seen, reads, deadline, around));
    }
};

// step() is made until it moves something or fails otherwise than by EAGAIN; waits(fd): whether the
// call may wait for that end. The first end is the one that the system checks first. `around` is
// around all the waits of the call, which may make several moves.
template <class Step, class Waits>
ssize_t move_between(int first, bool first_reads, int second, bool second_reads, Step step,
                     Waits waits, interruptible_from_first_wait& around,
                     ended_by by = ended_by::plain_handler) {
    one_end ends[] = {{first, first_reads}, {second, second_reads}};
    const int before = errno;
    unsigned tries = 0;
    for (bool again = false;; again = true) {
        for (one_end& e : ends) e.seen = look(e.fd);
        const ssize_t n = step();
        if (n >= 0) {
            if (again) errno = before;
            return n;
        }
        if (errno != EAGAIN) return n;
        one_end* const wanting = !ends[0].is_ready_now()   ? &ends[0]
                                 : !ends[1].is_ready_now() ? &ends[1]
                                                           : nullptr;
        int why = 0;
        if (wanting != nullptr) {
            tries = 0;
            if (!waits(wanting->fd)) return errno = EAGAIN, -1;
            if (wanting->has_deadline()) by = ended_by::any_handler;
            why = wanting->wait(around.before_wait(by));
        } else if (++tries > 2) {
            // Both are ready by now, or one is ready and nevertheless moves nothing.
            if (!waits(second)) return errno = EAGAIN, -1;
            why = short_pause(around.before_wait(by));
        }
        if (why != 0) return errno = why, -1;
    }
}

// As the system does, O_NONBLOCK of one pipe is that of both.
template <class Step>
ssize_t between_pipes(int in, int out, unsigned flags, Step step) {
    const bool waits =
        (flags & SPLICE_F_NONBLOCK) == 0 && !is_not_to_wait(in) && !is_not_to_wait(out);
    interruptible_from_first_wait around;
    return move_between(in, true, out, false, step, [=](int) { return waits; }, around);
}

short events_of(int fd, short events) noexcept {
    ::pollfd p = {fd, events, 0};
    return real::poll(&p, 1, 0) > 0 ? p.revents : short{0};
}

// Whether both fds permit the transfer, which the system checks before it checks for bytes.
bool may_be_moved(int in, int out) noexcept {
    const int from = real::fcntl(in, F_GETFL, nullptr);
    const int to = real::fcntl(out, F_GETFL, nullptr);
    return from >= 0 && to >= 0 && (from & O_ACCMODE) != O_WRONLY && (to & O_ACCMODE) != O_RDONLY;
}

// Timers, counters and other fds without an inode of their own: no splice reads from these.
bool is_anonymous(int fd) noexcept {
    struct ::stat s;
    return ::fstat(fd, &s) == 0 && (s.st_mode & S_IFMT) == 0;
}

// Whether `out` takes bytes of a pipe at all: tries a pipe that has no bytes and never will.
bool takes_of_pipes(int out) noexcept {
    if (sort_of(out).is_socket()) return true;
    int ends[2];
    if (real::pipe2(ends, O_CLOEXEC) != 0) return true;
    real::close(ends[1]);
    const bool takes = real::splice(ends[0], nullptr, out, nullptr, 1, SPLICE_F_NONBLOCK) >= 0;
    real::close(ends[0]);
    return takes;
}

// Whether fd listens: a splice refuses such a socket, which is not ready for bytes.
bool is_listener(int fd) noexcept {
    int is = 0;
    ::socklen_t bytes = sizeof is;
    return real::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is, &bytes) == 0 && is != 0;
}

// Whether a call that waits would continue at once. For a local socket, poll requires a good part
// of the room to be free, and such a call requires any.
bool has_room(int out) noexcept {
    if (is_ready(out, POLLOUT)) return true;
    int queued = 0;
    int room = 0;
    ::socklen_t bytes = sizeof room;
    return sort_of(out).sort() == fd_sort::stream && family_of(out) == AF_UNIX &&
           real::ioctl(out, SIOCOUTQ, &queued) == 0 &&
           real::getsockopt(out, SOL_SOCKET, SO_SNDBUF, &room, &bytes) == 0 && queued < room;
}

// A ready `out` takes this many bytes without a wait. A message counts as one, whatever its length.
std::size_t step_of(int out) noexcept {
    const fd_sort sort = sort_of(out);
    if (sort.sort() == fd_sort::message) return most_bytes;
    if (sort.sort() == fd_sort::terminal || sort.has(fd_sort::steers)) return 128;
    // A socket that has sent everything takes more at once.
    int queued = 1;
    int room = 0;
    ::socklen_t bytes = sizeof room;
    if (sort.sort() == fd_sort::stream && real::ioctl(out, SIOCOUTQ, &queued) == 0 && queued == 0 &&
        real::getsockopt(out, SOL_SOCKET, SO_SNDBUF, &room, &bytes) == 0)
        return std::max(page_bytes, static_cast<std::size_t>(room) / 4);
    return page_bytes;
}

ssize_t would_wait() noexcept {
    errno = EAGAIN;
    return -1;
}

// Whether there is something to splice from it. A TCP connection with a higher low-water mark
// reports that it is not ready, but delivers the bytes that it has.
bool has_some(int in) noexcept {
    if (is_ready(in, POLLIN)) return true;
    int there = 0;
    return has_low_water() && sort_of(in).sort() == fd_sort::stream && family_of(in) != AF_UNIX &&
           real::ioctl(in, FIONREAD, &there) == 0 && there > 0;
}

// No splice of a connection goes beyond its urgent byte, and a splice that waits reports the end
// there.
bool is_at_urgent_byte(int in) noexcept {
    return sort_of(in).sort() == fd_sort::stream && is_at_mark(in);
}

// From a socket or a device into a pipe; the available bytes are enough, except for a local byte
// socket with a higher low-water mark. As in the system, the pipe is checked first; O_NONBLOCK of
// the pipe counts as the flag, and the flag applies to the pipe and to a local byte socket.
ssize_t into_pipe(int in, int out, std::size_t bytes, unsigned flags) {
    if (is_not_to_wait(out)) flags |= SPLICE_F_NONBLOCK;
    const auto as_asked = [=](std::size_t from) {
        return real::splice(in, nullptr, out, nullptr, bytes - from, flags | SPLICE_F_NONBLOCK);
    };
    if (!may_be_moved(in, out)) return as_asked(0);
    const bool pipe_waits = (flags & SPLICE_F_NONBLOCK) == 0;
    const bool is_local = sort_of(in).sort() == fd_sort::stream && family_of(in) == AF_UNIX;
    const bool refuses = sort_of(in).is_socket() ? is_listener(in) : is_anonymous(in);
    const bool is_terminal = sort_of(in).sort() == fd_sort::terminal;
    bool waited = false;
    std::size_t moved = 0;
    const auto step = [=, &waited, &moved]() -> ssize_t {
        const std::lock_guard held(lock_of(in));
        if (waited && is_terminal && is_without_other_side(in)) return errno = EIO, -1;
        const short room = events_of(out, POLLOUT);
        if ((room & POLLERR) != 0) return moved > 0 ? 0 : as_asked(0);  // no reader
        if (room == 0) return moved > 0 ? 0 : would_wait();
        if (is_at_urgent_byte(in) && !is_not_to_wait(in)) return 0;
        if (refuses || is_not_to_wait(in) || has_some(in)) return as_asked(moved);
        return would_wait();
    };
    const auto waits = [=, &waited](int fd) {
        if (fd == out) return pipe_waits;
        return waited = !is_not_to_wait(in) && (pipe_waits || !is_local);
    };
    const std::size_t least =
        is_local && has_low_water() ? std::min(low_water_of(in), bytes) : std::size_t{1};
    interruptible_from_first_wait around;
    for (;;) {
        const ssize_t n = move_between(out, false, in, true, step, waits, around,
                                       moved > 0 ? ended_by::any_handler : ended_by::plain_handler);
        if (n > 0) moved += static_cast<std::size_t>(n);
        if (n <= 0 || moved >= least) return moved > 0 ? static_cast<ssize_t>(moved) : n;
    }
}

// Out of a pipe into a socket or a device: the contents of the pipe, and the socket is waited for.
// As in the system, the pipe is checked first.
ssize_t out_of_pipe(int in, int out, std::size_t bytes, unsigned flags) {
    if (is_not_to_wait(in)) flags |= SPLICE_F_NONBLOCK;
    const bool pipe_waits = (flags & SPLICE_F_NONBLOCK) == 0;
    const auto as_asked = [=](std::size_t most) {
        return real::splice(in, nullptr, out, nullptr, most, flags | SPLICE_F_NONBLOCK);
    };
    if (!may_be_moved(in, out) || !takes_of_pipes(out)) return as_asked(bytes);
    const bool refuses = is_listener(out);
    const bool is_terminal = sort_of(out).sort() == fd_sort::terminal;
    bool waited = false;
    std::size_t moved = 0;
    interruptible_from_first_wait around;
    while (moved < bytes) {
        const ssize_t n = move_between(
            in, true, out, false,
            [=, &waited]() -> ssize_t {
                const std::lock_guard held(lock_of(out));
                if (waited && is_terminal && is_without_other_side(out)) return errno = EIO, -1;
                const short there = events_of(in, POLLIN);
                if ((there & POLLIN) == 0)
                    return there != 0 || !pipe_waits ? as_asked(bytes) : would_wait();
                if (refuses || is_not_to_wait(out)) return as_asked(bytes - moved);
                if (!has_room(out)) return would_wait();
                return as_asked(std::min(bytes - moved, step_of(out)));
            },
            [=, &waited](int fd) {
                if (fd == in) return moved == 0 && pipe_waits;
                return waited = !is_not_to_wait(out);
            },
            around, moved > 0 ? ended_by::any_handler : ended_by::plain_handler);
        if (n <= 0) return moved > 0 ? static_cast<ssize_t>(moved) : n;
        moved += static_cast<std::size_t>(n);
        if (is_not_to_wait(out)) break;
    }
    return static_cast<ssize_t>(moved);
}

// Whether the system accepts the call at all; it moves nothing. A pipe that is full would be waited
// for.
template <class Offset>
bool is_sent_at_all(int out, int in, Offset* at) noexcept {
    return real::sendfile64(out, in, at, 0) >= 0;
}

// Whether the system reads it for a pipe, as it does within sendfile. Files that have blocks are
// not tested; of others (/dev/null, much of /proc, a message queue, a directory) a byte is read
// into a pipe, from behind the end where they have one, so that nothing is consumed.
bool gives_to_pipes(int in, const off64_t* at) noexcept {
    struct ::stat s;
    const bool is_known = ::fstat(in, &s) == 0;
    if (is_known && S_ISREG(s.st_mode) && s.st_blocks > 0) return true;
    int ends[2];
    if (real::pipe2(ends, O_CLOEXEC) != 0) return true;
    off64_t from = is_known && s.st_size > 0 ? off64_t{s.st_size}
                   : at != nullptr           ? *at
                                             : ::lseek64(in, 0, SEEK_CUR);
    const bool gives = real::splice(in, &from, ends[1], nullptr, 1, SPLICE_F_NONBLOCK) >= 0;
    real::close(ends[0]);
    real::close(ends[1]);
    return gives;
}

// Through memory, as the system has no sendfile that does not wait for a socket.
ssize_t send_through_memory(int out, int in, off64_t& at, std::size_t bytes) {
    void* const room = detail::block_cache::try_acquire(step_bytes);
    if (room == nullptr) return errno = ENOMEM, -1;
    struct owned {
        void* room;
        ~owned() { detail::block_cache::release(room, step_bytes); }
    } const own = {room};
    const int before = errno;
    std::size_t moved = 0;
    interruptible_from_first_wait around;
    while (moved < bytes) {
        const ssize_t n = in_fiber::pread64(in, room, std::min(bytes - moved, step_bytes), at);
        if (n <= 0) {
            if (n == 0 || moved > 0) break;
            return -1;
        }
        const iovec part = {room, static_cast<std::size_t>(n)};
        const ended_by by = moved > 0 ? ended_by::any_handler : ended_by::plain_handler;
        const ssize_t sent = write_all_sorts(out, &part, 1, by, &around);
        if (sent < 0) {
            if (moved > 0) break;
            return -1;
        }
        moved += static_cast<std::size_t>(sent);
        at += sent;
        // An error that follows a step belongs to the next step, and is lost with it, SIGPIPE
        // included.
        if (sent < n) break;
    }
    errno = before;
    return static_cast<ssize_t>(moved);
}

// Into a pipe it is a splice, except for what a splice refuses, and for a full pipe, which it waits
// for whatever is to be sent.
ssize_t send_to_pipe(int out, int in, off64_t* at, std::size_t bytes) {
    const bool is_pipe = is_pipe_end(in);
    if (at == nullptr && bytes != 0 && !is_pipe && !is_always_ready(in))
        return into_pipe(in, out, std::min(bytes, most_bytes), 0);
    return transfer(out, false, [=]() -> ssize_t {
        const auto as_asked = [=] { return real::sendfile64(out, in, at, bytes); };
        if (bytes == 0 || is_pipe) return is_ready(out, POLLOUT) ? as_asked() : would_wait();
        const ssize_t n = file_call([=] {
            return real::splice(in, at, out, nullptr, std::min(bytes, most_bytes),
                                SPLICE_F_NONBLOCK);
        });
        // A transfer that both calls refuse, each with its own error.
        return n >= 0 || errno == EAGAIN || errno == EPIPE ? n : as_asked();
    });
}

// The rules of both are one, and an offset is 64 bits wide.
ssize_t send_file(int out, int in, off64_t* at, std::size_t bytes) {
    if (bytes > std::size_t{SSIZE_MAX}) return real::sendfile64(out, in, at, bytes);  // is refused
    if (is_always_ready(out))
        return file_call([=] { return real::sendfile64(out, in, at, bytes); });
    if (!may_be_moved(in, out)) return real::sendfile64(out, in, at, bytes);
    if (is_pipe_end(out)) return send_to_pipe(out, in, at, bytes);
    const bool is_sent = !is_pipe_end(in) && !sort_of(in).is_socket();
    if (!is_sent || is_not_to_wait(out) || !is_sent_at_all(out, in, at) || !takes_of_pipes(out) ||
        !gives_to_pipes(in, at))
        return real::sendfile64(out, in, at, bytes);
    bytes = std::min(bytes, most_bytes);
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

// The known flags of preadv2 and pwritev2. With other flags (RWF_NOWAIT) the calls do not wait, or
// are refused.
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
    // Otherwise a file refuses it.
    if (bytes <= std::size_t{SSIZE_MAX}) bytes = std::min(bytes, most_bytes);
    if (from_pipe && to_pipe)
        return between_pipes(in, out, flags, [=] {
            return real::splice(in, nullptr, out, nullptr, bytes, flags | SPLICE_F_NONBLOCK);
        });
    const int pipe = from_pipe ? in : out;
    const int other = from_pipe ? out : in;
    // As weft's own io does, for example.
    if ((flags & SPLICE_F_NONBLOCK) != 0 && is_not_to_wait(other)) return as_asked();
    if (other < 0) return as_asked();
    if (is_always_ready(other)) {
        const bool waits = (flags & SPLICE_F_NONBLOCK) == 0;
        interruptible_from_first_wait around;
        return move_between(
            in, true, out, false,
            [=] {
                return file_call([=] {
                    return real::splice(in, in_at, out, out_at, bytes, flags | SPLICE_F_NONBLOCK);
                });
            },
            [=](int fd) { return waits && fd == pipe && !is_not_to_wait(fd); }, around);
    }
    if (in_at != nullptr || out_at != nullptr) return as_asked();  // no socket has an offset
    return from_pipe ? out_of_pipe(in, out, bytes, flags) : into_pipe(in, out, bytes, flags);
}

ssize_t tee(int in, int out, size_t bytes, unsigned flags) {
    if (bytes == 0 || !is_pipe_end(in) || !is_pipe_end(out))
        return real::tee(in, out, bytes, flags);
    return between_pipes(in, out, flags,
                         [=] { return real::tee(in, out, bytes, flags | SPLICE_F_NONBLOCK); });
}

// O_NONBLOCK has no effect on it.
ssize_t vmsplice(int fd, const iovec* v, size_t count, unsigned flags) {
    if ((flags & SPLICE_F_NONBLOCK) != 0 || !is_pipe_end(fd))
        return real::vmsplice(fd, v, count, flags);
    const bool reads = (real::fcntl(fd, F_GETFL, nullptr) & O_ACCMODE) == O_RDONLY;
    const int before = errno;
    interruptible_from_first_wait around;
    for (;;) {
        const snapshot seen = look(fd);
        const ssize_t n = real::vmsplice(fd, v, count, flags | SPLICE_F_NONBLOCK);
        if (n >= 0) {
            errno = before;
            return n;
        }
        if (errno != EAGAIN) return n;
        const interruptible& here = around.before_wait(ended_by::plain_handler);
        if (const int why = until_ready(fd, seen, reads, never, here); why != 0)
            return errno = why, -1;
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
