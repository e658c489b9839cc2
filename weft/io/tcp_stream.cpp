#include "weft/io/tcp_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "weft/io/socket.hpp"

namespace weft {

using detail::io_request;

tcp_stream::connecting::connecting(const endpoint& to, duration timeout) noexcept
    : io_operation({}, 1, timeout, "a connection"), to_(to) {
    request_.what = io_request::connect;
    request_.reads = false;
}

tcp_stream::connecting::connecting(connecting&& other) noexcept
    : io_operation(std::move(other)), to_(other.to_) {}

// The socket is opened by who waits, for his driver.
bool tcp_stream::connecting::ready() noexcept {
    const result<int> number = detail::open_socket(to_.family(), SOCK_STREAM);
    if (!number) {
        refused_ = number.error();
        return true;
    }
    result<descriptor> owned = stream::own(*number);
    if (!owned) {
        refused_ = owned.error();
        return true;
    }
    socket_ = *std::move(owned);
    request_.of = socket_.ref();
    request_.data = to_.data();
    request_.bytes = to_.size();
    return io_operation::ready();
}

result<tcp_stream> tcp_stream::connecting::take(const waiter* w, wait_status how) noexcept {
    if (refused_) return failure(refused_);
    const transferred t = outcome(w, how);
    if (t.error) return failure(t.error);
    return of(std::move(socket_));
}

tcp_stream::connecting tcp_stream::async_connect(const endpoint& to, duration timeout) noexcept {
    return {to, timeout};
}

result<tcp_stream> tcp_stream::connect(const endpoint& to, duration timeout, place_t place) {
    auto op = async_connect(to, timeout);
    return detail::block_for(op, place);
}

result<tcp_stream> tcp_stream::adopt(int number) noexcept {
    result<descriptor> owned = own(number);
    if (!owned) return failure(owned.error());
    return of(*std::move(owned));
}

result<tcp_stream> tcp_stream::of(descriptor owned) noexcept {
    auto core = hold(std::move(owned));
    if (!core) return failure(core.error());
    tcp_stream s(*std::move(core));
    static_cast<void>(s.set_no_delay(true));  // a hint: it may be no socket of TCP
    return s;
}

namespace {

result<void> or_error(std::error_code e) noexcept {
    if (e) return failure(e);
    return {};
}

}  // namespace

result<void> tcp_stream::set_no_delay(bool on) noexcept {
    return or_error(detail::set_option(native_handle(), IPPROTO_TCP, TCP_NODELAY, on));
}

result<void> tcp_stream::set_keep_alive(std::chrono::seconds every) noexcept {
    const int number = native_handle();
    const bool on = every > std::chrono::seconds::zero();
    if (auto e = detail::set_option(number, SOL_SOCKET, SO_KEEPALIVE, on); e || !on)
        return or_error(e);
    const auto seconds = static_cast<int>(std::min<std::int64_t>(every.count(), 32767));
    if (auto e = detail::set_option(number, IPPROTO_TCP, TCP_KEEPIDLE, seconds)) return or_error(e);
    return or_error(detail::set_option(number, IPPROTO_TCP, TCP_KEEPINTVL, seconds));
}

}  // namespace weft
