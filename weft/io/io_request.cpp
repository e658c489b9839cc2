#include "weft/io/io_request.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "weft/io/accept_ahead.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/quiet_write.hpp"
#include "weft/io/receive_buffers.hpp"

namespace weft::detail {
namespace {

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
    if (from == nullptr) from = shared_io_driver();
    if (from == nullptr) return -EMFILE;
    std::byte* const buffer = from->buffers().take();
    if (buffer == nullptr) return -ENOMEM;
    borrow(from->buffers(), buffer);
    const std::int64_t n = perform();
    if (n <= 0) give_back();
    return n;
}

std::int64_t io_request::perform() noexcept {
    if (borrows && data == nullptr) [[unlikely]]
        return perform_lent();
    const int number = of.number();
    switch (what) {
        case receive:
            return or_error(::recv(number, data, bytes, flags | MSG_DONTWAIT));
        case send:
            return or_error(::send(number, data, bytes, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
        case read:
            return or_error(::read(number, data, bytes));
        case write:
            return write_quietly(number, data, bytes);
        case receive_message:
            return or_error(::recvmsg(number, static_cast<::msghdr*>(data), flags | MSG_DONTWAIT));
        case send_message:
            return or_error(::sendmsg(number, static_cast<::msghdr*>(data),
                                      flags | MSG_DONTWAIT | MSG_NOSIGNAL));
        case accept:
            if (ahead != nullptr) {
                ahead->share();
                if (const int n = ahead->take(); n >= 0) return n;
            }
            return or_error(::accept4(number, nullptr, nullptr, flags));
        case connect: {
            if (begun) return connected(number);
            const int r = ::connect(number, static_cast<const ::sockaddr*>(data),
                                    static_cast<::socklen_t>(bytes));
            if (r == 0) return 0;
            begun = errno == EINPROGRESS || errno == EINTR;
            if (begun) return -EAGAIN;
            return errno == EAGAIN ? -ECONNREFUSED : -errno;  // a full queue of a local socket
        }
        case poll: {
            ::pollfd p = {number, static_cast<short>(flags), 0};
            const int r = ::poll(&p, 1, 0);
            if (r < 0) return -errno;
            return r == 0 ? -EAGAIN : p.revents;
        }
        case step:
            return 1;
        case read_at:
            return or_error(::pread(number, data, bytes, static_cast<::off_t>(offset)));
        case write_at:
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
    }
    return -ENOSYS;
}

std::int64_t io_request::try_anyway() noexcept {
    std::uint64_t seen;
    if (!of.entry().enter(of.generation(), seen)) return was_closed;
    const std::int64_t n = perform();
    of.entry().leave(seen, 0);
    return n;
}

}  // namespace weft::detail
