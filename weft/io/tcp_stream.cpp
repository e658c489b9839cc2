#include "weft/io/tcp_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

#include "weft/io/socket.hpp"

namespace weft {

result<tcp_stream> tcp_stream::connect(const endpoint& to, duration timeout, place_t place) {
    if (!to.is_ip()) return failure(std::errc::address_family_not_supported);
    auto op = async_connect(to, timeout);
    return detail::block_for(op, place);
}

result<tcp_stream> tcp_stream::connect(std::string_view where, duration timeout, place_t place) {
    auto op = async_connect(where, timeout);
    return detail::block_for(op, place);
}

result<tcp_stream> tcp_stream::adopt(int number) noexcept {
    result<descriptor> owned = detail::own_stream(number);
    if (!owned) return failure(owned.error());
    return of(*std::move(owned));
}

result<tcp_stream> tcp_stream::of(descriptor owned) noexcept {
    auto core = detail::hold_stream(std::move(owned));
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
