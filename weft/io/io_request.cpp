#include "weft/io/detail/io_request.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "weft/io/datagram_batch.hpp"
#include "weft/io/detail/buffer_pool.hpp"
#include "weft/io/detail/prefetched_accepts.hpp"
#include "weft/io/detail/write_nosignal.hpp"
#include "weft/io/io_driver.hpp"

namespace weft::detail {
namespace {

// The most that one call on a file moves; such a call cannot be interrupted.
constexpr std::size_t most_of_a_file = 1 << 20;

std::int64_t or_error(std::int64_t n) noexcept {
    if (n >= 0) return n;
    return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

// A read of a terminal whose other side has closed finds the end, as a read of a pipe does. Linux
// answers EIO for a master for as long as that lasts, and for a slave until it has been hung up.
// Never inlined: perform() keeps no frame for it.
WEFT_NOINLINE std::int64_t end_or_error(int number) noexcept {
    ::pollfd p = {number, POLLIN, 0};
    return ::poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0 ? 0 : -EIO;
}

std::int64_t or_end(int number, std::int64_t n) noexcept {
    return n != -EIO ? n : end_or_error(number);
}

// The outcome of a connection attempt that has begun.
std::int64_t connected(int number) noexcept {
    int error = 0;
    ::socklen_t size = sizeof error;
    if (::getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return -errno;
    if (error != 0) return -error;
    // No error does not mean success: the attempt may still be under way.
    ::sockaddr_storage peer;
    size = sizeof peer;
    if (::getpeername(number, reinterpret_cast<::sockaddr*>(&peer), &size) == 0) return 0;
    return errno == ENOTCONN ? -EAGAIN : -errno;
}

// sendfile(2) and splice(2) have no flag that keeps them from waiting; only the socket can have
// one. A reader and a writer may be here at once, on two threads: neither clears the flag for the
// other.
constexpr std::uint64_t unblocked = io_entry::unblocked_to_read | io_entry::unblocked_to_write;

bool set_nonblocking(int number, bool on) noexcept {
    const int flags = ::fcntl(number, F_GETFL);
    return flags >= 0 &&
           ::fcntl(number, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) == 0;
}

// Returns one, zero if the descriptor did not block anyway, or -errno.
std::int64_t unblock(io_entry& e, std::uint64_t mine) noexcept {
    const std::lock_guard held(e.lock);
    // Relaxed, all, in both: the lock orders the bits, and nothing else relies on them.
    if ((e.ready.load(std::memory_order_relaxed) & unblocked) == 0) {
        const int flags = ::fcntl(e.number, F_GETFL);
        if (flags < 0) return -errno;
        if ((flags & O_NONBLOCK) != 0) return 0;
        if (!set_nonblocking(e.number, true)) return -errno;
    }
    e.ready.fetch_or(mine, std::memory_order_relaxed);  // as above
    return 1;
}
void block_again(io_entry& e, std::uint64_t mine) noexcept {
    const std::lock_guard held(e.lock);
    // Relaxed: as in unblock().
    const std::uint64_t before = e.ready.fetch_and(~mine, std::memory_order_relaxed);
    if ((before & unblocked) == mine) static_cast<void>(set_nonblocking(e.number, false));
}

template <class F>
std::int64_t without_waiting(io_entry& e, bool reads, F call) noexcept {
    const std::uint64_t mine = reads ? io_entry::unblocked_to_read : io_entry::unblocked_to_write;
    const std::int64_t changed = unblock(e, mine);
    if (changed < 0) return changed;
    const std::int64_t n = call();
    if (changed != 0) block_again(e, mine);
    return n;
}

std::int64_t send_part(io_entry& e, const file_part& part) noexcept {
    const int number = e.number;
    const std::int64_t n = without_waiting(e, false, [&] {
        return part.from.call([&](int from) noexcept {
            return send_file_nosignal(number, from, part.offset, part.bytes);
        });
    });
    return n == -EBADF && !part.from.is_open() ? io_entry::was_closed : n;
}

// Copies through this process, into a pipe that is empty.
std::int64_t copy_part(int number, const splice_part& part) noexcept {
    std::byte some[1024];  // a pipe has room for these
    const std::int64_t n =
        or_error(::recv(number, some, std::min(part.bytes, sizeof some), MSG_DONTWAIT));
    if (n <= 0) return n;
    return or_error(::write(part.pipe, some, static_cast<std::size_t>(n)));
}

std::int64_t move_part(io_entry& e, bool reads, const splice_part& part) noexcept {
    const int number = e.number;
    const std::int64_t n = without_waiting(e, reads, [&]() -> std::int64_t {
        return or_error(reads ? ::splice(number, nullptr, part.pipe, nullptr, part.bytes,
                                         SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
                              : splice_nosignal(part.pipe, number, part.bytes));
    });
    // Urgent data stops splice(2) for good: it finds nothing before such data, or an end, and a
    // read goes on past it.
    const bool may_be_stopped = n == 0 || (n == -EAGAIN && (e.look() & io_entry::exceptional) != 0);
    return reads && may_be_stopped ? copy_part(number, part) : n;
}

// Of a listener. accept4() makes the socket before it looks for a connection: one that finds none
// costs ten times what asking costs, and without a descriptor it fails although there is nothing
// to accept.
bool has_no_connection(int number) noexcept {
    ::pollfd p = {number, POLLIN, 0};
    return ::poll(&p, 1, 0) == 0;
}

}  // namespace

void io_request::borrow(buffer_pool& from, std::byte* buffer) noexcept {
    lender = &from;
    data = buffer;
    bytes = from.bytes();
}

void io_request::release_buffer() noexcept {
    lender->release_buffer(static_cast<std::byte*>(std::exchange(data, nullptr)));
}

void io_request::complete_with(buffer_pool& from, std::byte* buffer, std::int64_t n) noexcept {
    borrow(from, buffer);
    if (n <= 0) release_buffer();
    complete(n);
}

std::int64_t io_request::perform_lent() noexcept {
    io_driver* from = io_driver_here();
    int why = 0;
    if (from == nullptr) from = shared_io_driver(&why);
    if (from == nullptr) return why != EAGAIN ? -why : -ENOMEM;  // EAGAIN: nothing has come
    std::byte* const buffer = from->buffers().take();
    if (buffer == nullptr) return -ENOMEM;
    borrow(from->buffers(), buffer);
    const std::int64_t n = perform();
    if (n <= 0) release_buffer();
    return n;
}

std::int64_t io_request::perform_several(int number) const noexcept {
    const ::msghdr& m = *static_cast<const ::msghdr*>(data);
    const auto count = static_cast<int>(m.msg_iovlen);
    return reads ? or_error(::readv(number, m.msg_iov, count))
                 : write_nosignal(number, m.msg_iov, count);
}

std::int64_t io_request::perform_several_at(int number) const noexcept {
    const ::msghdr& m = *static_cast<const ::msghdr*>(data);
    const auto count = static_cast<int>(m.msg_iovlen);
    const auto at = static_cast<::off_t>(offset);
    return or_error(what == read_at ? ::preadv(number, m.msg_iov, count, at)
                                    : ::pwritev(number, m.msg_iov, count, at));
}

std::int64_t io_request::perform() noexcept {
    if (borrows && data == nullptr) [[unlikely]]
        return perform_lent();
    const int number = of ? of.entry().number : -1;
    switch (what) {
        case receive:
            return or_error(::recv(number, data, bytes, flags | MSG_DONTWAIT));
        case send:
            return or_error(::send(number, data, bytes, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
        case read:
            return or_end(
                number, several ? perform_several(number) : or_error(::read(number, data, bytes)));
        case write:
            if (several) return perform_several(number);
            return write_nosignal(number, data, bytes);
        default:
            return perform_rarely(number);
    }
}

// The kinds that keep more than their result on the stack.
std::int64_t io_request::perform_rarely(int number) noexcept {
    switch (what) {
        case receive_message:
            return or_error(::recvmsg(number, static_cast<::msghdr*>(data), flags | MSG_DONTWAIT));
        case send_message:
        case send_message_here:
            return or_error(::sendmsg(number, static_cast<::msghdr*>(data),
                                      flags | MSG_DONTWAIT | MSG_NOSIGNAL));
        case receive_many:
            return static_cast<receive_batch*>(data)->receive(number, flags);
        case send_many:
            return static_cast<send_batch*>(data)->send(number, flags);
        case accept:
            if (ahead != nullptr) {
                ahead->share();
                if (const int n = ahead->take(); n >= 0) return n;
            }
            if (has_no_connection(number)) return -EAGAIN;
            return or_error(::accept4(number, nullptr, nullptr, flags));
        case connect: {
            if (begun) return connected(number);
            // After EINTR the attempt may have begun or not; a second call shows which.
            int r;
            do {
                r = ::connect(number, static_cast<const ::sockaddr*>(data),
                              static_cast<::socklen_t>(bytes));
            } while (r != 0 && errno == EINTR);
            if (r == 0 || errno == EISCONN) return 0;
            begun = errno == EINPROGRESS || errno == EALREADY;
            if (begun) return -EAGAIN;
            return errno == EAGAIN && static_cast<const ::sockaddr*>(data)->sa_family == AF_UNIX
                       ? -queue_is_full
                       : -errno;
        }
        case poll: {
            ::pollfd p = {number, static_cast<short>(flags), 0};
            const int r = ::poll(&p, 1, 0);
            if (r < 0) return errno == EAGAIN ? -ENOMEM : -errno;  // EAGAIN here: no memory
            if ((p.revents & POLLNVAL) != 0) return -EBADF;
            return r == 0 ? -EAGAIN : p.revents;
        }
        case step:
            return 1;
        case read_at:
            if (several) return perform_several_at(number);
            return or_error(::pread(number, data, bytes, static_cast<::off_t>(offset)));
        case write_at:
            if (several) return perform_several_at(number);
            return or_error(::pwrite(number, data, bytes, static_cast<::off_t>(offset)));
        case sync:
            return or_error(::fsync(number));
        case open:
            return or_error(
                ::open(static_cast<const char*>(data), flags, static_cast<::mode_t>(bytes)));
        case size: {
            struct ::stat s;
            return ::fstat(number, &s) == 0 ? s.st_size : -errno;
        }
        case resize:
            return or_error(::ftruncate(number, static_cast<::off_t>(offset)));
        case read_next:
            if (several) return perform_several(number);
            return or_error(::read(number, data, std::min(bytes, most_of_a_file)));
        case send_file:
            return send_part(of.entry(), *static_cast<const file_part*>(data));
        case splice:
            return move_part(of.entry(), reads, *static_cast<const splice_part*>(data));
        case write_next:
            if (several) return perform_several(number);
            return write_nosignal(number, data, std::min(bytes, most_of_a_file));
        case receive:
        case send:
        case read:
        case write:
            break;  // perform() makes them
    }
    return -ENOSYS;
}

std::int64_t io_request::try_anyway() noexcept {
    if (!of.entry().enter(of.generation())) return was_closed;
    const std::int64_t n = perform();
    of.entry().leave();
    return n;
}

}  // namespace weft::detail
