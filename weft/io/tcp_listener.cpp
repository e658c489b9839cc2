#include "weft/io/tcp_listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "weft/io/accept_reserve.hpp"
#include "weft/io/socket.hpp"

namespace weft {

using detail::io_request;

result<tcp_listener> tcp_listener::bind(std::string_view where, const listen_options& o) {
    const result<endpoint> e = endpoint::parse(where);
    if (!e) return failure(e.error());
    return bind(*e, o);
}

result<tcp_listener> tcp_listener::bind(const endpoint& where, const listen_options& o) {
    if (!where.is_ip()) return failure(std::errc::address_family_not_supported);
    // It does not block, whatever the driver: who refuses must not.
    const int number = ::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (number < 0) return failure(std::error_code(errno, std::system_category()));
    std::error_code error;
    const descriptor_ref ref = descriptor_ref::adopt(number, 0, error);
    if (!ref) {
        ::close(number);
        return failure(error);
    }
    tcp_listener l;
    l.owned_ = descriptor(ref);
    error = detail::set_option(number, SOL_SOCKET, SO_REUSEADDR, 1);
    if (!error && o.reuse_port) error = detail::set_option(number, SOL_SOCKET, SO_REUSEPORT, 1);
    if (!error) error = detail::bind_socket(number, where, o.backlog);
    if (error) return failure(error);
    l.reserve_ = std::make_shared<detail::accept_reserve>();
    return l;
}

tcp_listener::accepting::accepting(const descriptor_ref& of,
                                   detail::accept_reserve* reserve) noexcept
    : io_operation({}, 1, duration::max(), "a connection to accept") {
    request_.what = io_request::accept;
    request_.of = of;
    reserve_ = reserve;
}

bool tcp_listener::accepting::ready() noexcept {
    request_.flags = SOCK_CLOEXEC | detail::nonblocking_flag();
    return io_operation::ready();
}

result<tcp_stream> tcp_listener::accepting::take(const waiter* w, wait_status how) noexcept {
    const transferred t = outcome(w, how);
    if (t.error) return failure(t.error);
    return tcp_stream::adopt(static_cast<int>(t.bytes));
}

tcp_listener::accepting tcp_listener::async_accept() noexcept {
    return {owned_.ref(), reserve_.get()};
}

result<tcp_stream> tcp_listener::accept(place_t place) {
    auto op = async_accept();
    return detail::block_for(op, place);
}

endpoint tcp_listener::local_endpoint() const noexcept {
    endpoint e;
    ::socklen_t bytes = endpoint::capacity;
    if (::getsockname(owned_.number(), e.data(), &bytes) != 0) return {};
    e.resize(bytes);
    return e;
}

std::uint64_t tcp_listener::refused_count() const noexcept {
    return reserve_ != nullptr ? reserve_->refused_count() : 0;
}

}  // namespace weft
