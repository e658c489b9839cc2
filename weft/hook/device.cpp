#include "weft/hook/detail/device.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "weft/base/detail/block_cache.hpp"
#include "weft/hook/detail/fd_table.hpp"
#include "weft/hook/detail/iov_cursor.hpp"
#include "weft/hook/detail/proc_field.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/transfer.hpp"

namespace weft::hook {
namespace {

constinit detail::spin_lock locks[64];

// Another thread of the parent may have locked one of them.
__attribute__((constructor(101))) void free_device_locks_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] {
        for (detail::spin_lock& l : locks) new (&l) detail::spin_lock;
    });
}

}  // namespace

detail::spin_lock& lock_of(int fd) noexcept { return locks[static_cast<unsigned>(fd) % 64]; }

bool is_ready(int fd, short events) noexcept {
    ::pollfd p = {fd, events, 0};
    return real::poll(&p, 1, 0) > 0;
}

int family_of(int fd) noexcept {
    int family = 0;
    ::socklen_t bytes = sizeof family;
    real::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes);
    return family;
}

bool is_at_mark(int fd) noexcept {
    int is = 0;
    return real::ioctl(fd, SIOCATMARK, &is) == 0 && is != 0;
}

int take_error(int fd) noexcept {
    int why = 0;
    ::socklen_t bytes = sizeof why;
    return real::getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &bytes) == 0 ? why : 0;
}

int error_of_local_writer(int fd) noexcept {
    if (sort_of(fd).sort() != fd_sort::stream) return 0;
    const int before = errno;
    ::pollfd p = {fd, 0, 0};
    const bool has_one = real::poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
    const int why = has_one && family_of(fd) == AF_UNIX ? take_error(fd) : 0;
    errno = before;
    return why;
}

int quiet_while_waiting(int fd) noexcept {
    const int before = errno;
    const int quiet = family_of(fd) == AF_UNIX ? MSG_NOSIGNAL : 0;
    errno = before;
    return quiet;
}

bool is_over(int fd) noexcept {
    if (known_sort(fd).sort() != fd_sort::message) return false;
    const int before = errno;
    const bool is = is_ready(fd, POLLRDHUP) && is_nonblocking(fd);
    errno = before;
    return is;
}

constinit atomic<bool> low_water_was_set{false};  // Orders: relaxed, it stands for itself.

std::size_t low_water_of(int fd) noexcept {
    int least = 1;
    ::socklen_t bytes = sizeof least;
    real::getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, &bytes);
    return static_cast<std::size_t>(std::max(least, 1));
}

namespace {
constinit atomic<bool> linger_was_set{false};  // by this process. Orders: relaxed, as above.
}  // namespace

bool lingers(int fd) noexcept {
    if (!linger_was_set.load(std::memory_order_relaxed)) return false;
    ::linger time{};
    ::socklen_t bytes = sizeof time;
    const int before = errno;
    const bool is_known = real::getsockopt(fd, SOL_SOCKET, SO_LINGER, &time, &bytes) == 0;
    errno = before;
    return is_known && time.l_onoff != 0 && time.l_linger > 0;
}

void note_option(int level, int name) noexcept {
    if (level != SOL_SOCKET) return;
    if (name == SO_RCVLOWAT) low_water_was_set.store(true, std::memory_order_relaxed);
    if (name == SO_LINGER) linger_was_set.store(true, std::memory_order_relaxed);
}

bool keeps_error(int fd, bool reads) noexcept {
    if (!sort_of(fd).is_socket()) return false;
    const int before = errno;
    ::pollfd p = {fd, 0, 0};
    bool kept = real::poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
    if (kept && known_sort(fd).sort() == fd_sort::stream) {
        // Data that came before the error is read before the error.
        int there = 0;
        if (reads && real::ioctl(fd, FIONREAD, &there) == 0 && there > 0) kept = false;
        // Entries in a connection's error queue (timestamps, ends of zero-copy) look like an error.
        ::tcp_info connection{};
        ::socklen_t bytes = sizeof connection;
        if (kept && real::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &connection, &bytes) == 0)
            kept = connection.tcpi_state == TCP_CLOSE;
        kept = kept && family_of(fd) != AF_UNIX;
    }
    errno = before;
    return kept;
}

namespace {

int flags_of(int fd) noexcept { return real::fcntl(fd, F_GETFL, nullptr); }

ssize_t fails_with(int why) noexcept {
    errno = why;
    return -1;
}

bool is_hung_up(int fd) noexcept {
    ::pollfd p = {fd, 0, 0};
    return real::poll(&p, 1, 0) > 0;
}

// A terminal may hold back fewer bytes than its modes tell it to collect.
ssize_t try_read_terminal(int fd, const iovec* v, int count) noexcept {
    if (is_hung_up(fd)) return real::readv(fd, v, count);  // does not wait then
    if (!is_ready(fd, POLLIN)) return fails_with(EAGAIN);
    const ssize_t n = try_apart(fd, v, count, true);
    if (n >= 0 || errno != EOPNOTSUPP) return n;
    const std::lock_guard held(lock_of(fd));
    return is_ready(fd, POLLIN) ? real::readv(fd, v, count) : fails_with(EAGAIN);
}

// Reads until `least` bytes have come: the first until the deadline, and each other within `next`
// of the one before.
ssize_t collect(int fd, iov_cursor rest, std::size_t least, time_point deadline, duration next) {
    const int before = errno;
    ssize_t moved = 0;
    interruptible_from_first_wait around;
    for (bool waited = false;; waited = true) {
        const snapshot seen = look(fd);
        const ssize_t n = try_read_terminal(fd, rest.buffers(), rest.count());
        if (n > 0) {
            moved += n;
            const bool is_full = rest.advance(static_cast<std::size_t>(n));
            if (is_full || static_cast<std::size_t>(moved) >= least) break;
            deadline = after(now(), next);
            continue;
        }
        if (n == 0) {
            if (waited && moved == 0 && is_without_other_side(fd)) return fails_with(EIO);
            break;
        }
        int why = errno;
        if (why == EAGAIN) {
            const bool restarts = moved == 0 && deadline == never;
            const ended_by by = restarts ? ended_by::plain_handler : ended_by::any_handler;
            why = until_ready(fd, seen, true, deadline, around.before_wait(by));
        }
        if (why == 0) continue;
        if (why != timed_out && moved == 0) return fails_with(why);
        break;
    }
    errno = before;
    return moved;
}

// For a call that asks for fewer bytes than the terminal collects before it reports that it is
// ready.
ssize_t read_few(int fd, const iovec* v, int count, std::size_t bytes) {
    auto pause = std::chrono::milliseconds(1);
    interruptible_from_first_wait around;
    for (bool waited = false;; waited = true) {
        if (waited && is_without_other_side(fd)) return fails_with(EIO);
        int there = 0;
        if (is_hung_up(fd) || is_ready(fd, POLLIN) || real::ioctl(fd, FIONREAD, &there) != 0 ||
            static_cast<std::size_t>(there) >= bytes)
            return real::readv(fd, v, count);
        if (const int why = until(after(now(), pause), around.before_wait(ended_by::plain_handler));
            why != 0)
            return fails_with(why);
        pause = std::min(2 * pause, std::chrono::milliseconds(16));
    }
}

// The count of an eventfd. False: the system does not report it.
bool count_of(int fd, std::uint64_t& count) noexcept {
    char path[48];
    std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    return ask_proc(path, "eventfd-count:", 16, count);
}

}  // namespace

// The terminal's name disappears with the master side; other ways to hang up end both sides.
bool is_without_other_side(int fd) noexcept {
    struct ::stat s;
    return is_hung_up(fd) && ::fstat(fd, &s) == 0 && s.st_nlink == 0;
}

ssize_t try_apart(int fd, const iovec* v, int count, bool reads) noexcept {
    const int flags = flags_of(fd);
    if (flags < 0) return fails_with(EBADF);
    const int way = flags & O_ACCMODE;
    if (way == (reads ? O_WRONLY : O_RDONLY)) return fails_with(EBADF);
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int own = (reads ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const int apart = real::open(path, own, 0);
    if (apart < 0) return fails_with(EOPNOTSUPP);
    // With O_DIRECT each write is a message; a named pipe is opened without that flag.
    if (!reads && (flags & O_DIRECT) != 0)
        real::fcntl(apart, F_SETFL, reinterpret_cast<void*>(long{O_DIRECT | O_NONBLOCK}));
    const ssize_t n = reads ? real::readv(apart, v, count) : real::writev(apart, v, count);
    const int why = errno;
    real::close(apart);
    errno = why;
    return n;
}

ssize_t read_terminal(int fd, const iovec* v, int count) {
    ::termios modes;
    if (::tcgetattr(fd, &modes) != 0 || is_nonblocking(fd)) return real::readv(fd, v, count);
    const iov_cursor all(v, count);
    if ((modes.c_lflag & ICANON) != 0) return collect(fd, all, 1, never, duration::zero());
    const std::size_t bytes = all.bytes();
    const std::size_t least = modes.c_cc[VMIN];
    const duration time = std::chrono::milliseconds(100) * modes.c_cc[VTIME];
    if (least == 0 && time == duration::zero()) return real::readv(fd, v, count);
    if (least == 0) return collect(fd, all, 1, after(now(), time), time);
    if (time != duration::zero()) return collect(fd, all, std::min(least, bytes), never, time);
    return bytes < least ? read_few(fd, v, count, bytes)
                         : collect(fd, all, 1, never, duration::zero());
}

ssize_t try_write_terminal(int fd, const iovec* v, int count) noexcept {
    if (is_nonblocking(fd) || is_hung_up(fd)) return real::writev(fd, v, count);
    const ssize_t n = try_apart(fd, v, count, false);
    if (n >= 0 || errno != EOPNOTSUPP) return n;
    constexpr std::size_t always_room = 128;  // each byte may become two
    return try_write_part(fd, v, count, always_room);
}

ssize_t try_write_part(int fd, const iovec* v, int count, std::size_t most) noexcept {
    const iov_cursor all(v, count);
    const std::size_t bytes = std::min(all.bytes(), most);
    for (; v->iov_len == 0; --count) ++v;  // one of the buffers is not empty
    iovec one = {v->iov_base, bytes};
    void* room = nullptr;
    if (v->iov_len < bytes && all.bytes() > most) {
        room = detail::block_cache::try_acquire(most);
        if (room == nullptr) return fails_with(ENOMEM);
        all.copy_to(static_cast<char*>(room), bytes);
        one.iov_base = room;
    }
    const bool is_in_one = room != nullptr || v->iov_len >= bytes;
    ssize_t n = -1;
    {
        const std::lock_guard held(lock_of(fd));
        if (!is_ready(fd, POLLOUT))
            errno = EAGAIN;
        else
            n = is_in_one ? real::writev(fd, &one, 1) : real::writev(fd, v, count);
    }
    const int why = errno;
    if (room != nullptr) detail::block_cache::release(room, most);
    errno = why;
    return n;
}

ssize_t try_write_steering(int fd, const iovec* v) noexcept {
    ::pollfd p = {fd, POLLOUT, 0};
    {
        const std::lock_guard held(lock_of(fd));
        constexpr std::size_t always_room = 128;
        if (real::poll(&p, 1, 0) > 0 && (p.revents & POLLOUT) != 0) {
            while (v->iov_len == 0) ++v;
            return real::write(fd, v->iov_base, std::min(v->iov_len, always_room));
        }
    }
    // The other side is closed: the system reports that again and again, and room as well.
    return fails_with((p.revents & POLLHUP) != 0 ? eagain_for_a_while : EAGAIN);
}

ssize_t try_write_counter(int fd, const iovec* v, int count) noexcept {
    std::uint64_t more = 0;
    if (v->iov_len < sizeof more) return real::writev(fd, v, count);
    std::memcpy(&more, v->iov_base, sizeof more);
    // None of these waits.
    if (more == 0 || more == UINT64_MAX || is_nonblocking(fd)) return real::writev(fd, v, 1);
    // More than eight bytes are refused, or taken for eight, depending on the system.
    if (constexpr std::uint64_t none[2] = {}; v->iov_len > sizeof more) {
        const ssize_t n = real::write(fd, none, sizeof none);
        if (n < 0) return n;
    }
    {
        const std::lock_guard held(lock_of(fd));
        std::uint64_t there = 0;
        const bool has_room = is_ready(fd, POLLOUT);
        const bool fits = more == 1 || !count_of(fd, there) || UINT64_MAX - there > more;
        if (has_room && fits) return real::writev(fd, v, 1);
        if (!has_room) return fails_with(EAGAIN);
    }
    return fails_with(eagain_for_a_while);  // there is room, but for less
}

void opened_by(const msghdr& m) noexcept {
    if (m.msg_control == nullptr || m.msg_controllen == 0) return;
    auto& given = const_cast<msghdr&>(m);
    for (cmsghdr* c = CMSG_FIRSTHDR(&given); c != nullptr; c = CMSG_NXTHDR(&given, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            opened(fd);
        }
    }
}

}  // namespace weft::hook
