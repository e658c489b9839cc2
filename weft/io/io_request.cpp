#include "weft/io/io_request.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "weft/io/accept_ahead.hpp"
#include "weft/io/datagram_batch.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/quiet_write.hpp"
#include "weft/io/receive_buffers.hpp"

namespace weft::detail {
namespace {

// Of one call, which cannot be interrupted.
constexpr std::size_t most_of_a_file = 1 << 20;

std::int64_t or_error(std::int64_t n) noexcept {
    if (n >= 0) return n;
    return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

// The end of a connection attempt that was begun.
std::int64_t connected(int number) noexcept {
    int error = 0;
    ::socklen_t size = sizeof error;
    if (::getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return -errno;
    if (error != 0) return -error;
    // No error is not success: it may be under way still.
    ::sockaddr_storage peer;
    size = sizeof peer;
    if (::getpeername(number, reinterpret_cast<::sockaddr*>(&peer), &size) == 0) return 0;
    return errno == ENOTCONN ? -EAGAIN : -errno;
}

// sendfile(2) and splice(2) have no flag by which they would not wait: only the socket can have it.
template <class F>
std::int64_t without_waiting(int number, F call) noexcept {
    const int flags = ::fcntl(number, F_GETFL);
    if (flags < 0) return -errno;
    const bool blocks = (flags & O_NONBLOCK) == 0;
    if (blocks && ::fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0) return -errno;
    const std::int64_t n = call();
    if (blocks) ::fcntl(number, F_SETFL, flags);
    return n;
}

std::int64_t send_part(int number, const file_part& part) noexcept {
    return without_waiting(number, [&] {
        return part.from.call([&](int from) noexcept {
            return send_file_quietly(number, from, part.offset, part.bytes);
        });
    });
}

std::int64_t move_part(int number, bool reads, const splice_part& part) noexcept {
    return without_waiting(number, [&]() -> std::int64_t {
        return or_error(reads ? ::splice(number, nullptr, part.pipe, nullptr, part.bytes,
                                         SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
                              : splice_quietly(part.pipe, number, part.bytes));
    });
}

}  // namespace

void io_request::borrow(receive_buffers& from, std::byte* buffer) noexcept {
    lender = &from;
    data = buffer;
    bytes = from.bytes();
}

void io_request::give_back() noexcept {
    lender->give_back(static_cast<std::byte*>(std::exchange(data, nullptr)));
}

void io_request::complete_with(receive_buffers& from, std::byte* buffer, std::int64_t n) noexcept {
    borrow(from, buffer);
    if (n <= 0) give_back();
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
    if (n <= 0) give_back();
    return n;
}

std::int64_t io_request::perform_several(int number) const noexcept {
    const ::msghdr& m = *static_cast<const ::msghdr*>(data);
    const auto count = static_cast<int>(m.msg_iovlen);
    return reads ? or_error(::readv(number, m.msg_iov, count))
                 : write_quietly(number, m.msg_iov, count);
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
            if (several) return perform_several(number);
            return or_error(::read(number, data, bytes));
        case write:
            if (several) return perform_several(number);
            return write_quietly(number, data, bytes);
        default:
            return perform_rarely(number);
    }
}

// What keeps more than its result on the stack.
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
            return or_error(::accept4(number, nullptr, nullptr, flags));
        case connect: {
            if (begun) return connected(number);
            // Interrupted it may have been begun or not: asked again, it says which.
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
            if (r < 0) return errno == EAGAIN ? -ENOMEM : -errno;  // it has no room for it
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
            return send_part(number, *static_cast<const file_part*>(data));
        case splice:
            return move_part(number, reads, *static_cast<const splice_part*>(data));
        case write_next:
            if (several) return perform_several(number);
            return write_quietly(number, data, std::min(bytes, most_of_a_file));
        case receive:
        case send:
        case read:
        case write:
            break;  // by perform()
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
