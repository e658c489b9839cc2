#include "weft/io/tcp_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

#include "weft/io/detail/socket.hpp"

namespace weft {

result<tcp_stream> tcp_stream::connect(const endpoint& to, time_limit limit,
                                       std::source_location caller) {
    if (!to.is_ip()) return failure(std::errc::address_family_not_supported);
    auto op = async_connect(to, limit);
    return detail::block_for(op, caller);
}

result<tcp_stream> tcp_stream::connect_fast(const endpoint& to, time_limit limit,
                                            std::source_location caller) {
    if (!to.is_ip()) return failure(std::errc::address_family_not_supported);
    auto op = async_connect_fast(to, limit);
    return detail::block_for(op, caller);
}

result<tcp_stream> tcp_stream::connect(std::string_view where, time_limit limit,
                                       duration attempt_delay, std::source_location caller) {
    auto op = async_connect(where, limit, attempt_delay);
    return detail::block_for(op, caller);
}

result<tcp_stream> tcp_stream::adopt(int number) noexcept {
    return own(number, detail::kind_of_socket(number));
}

result<tcp_stream> tcp_stream::accepted(int number) noexcept {
    return own(number, detail::io_entry::short_is_all);
}

result<tcp_stream> tcp_stream::own(int number, std::uint64_t kind) noexcept {
    result<detail::descriptor> owned = detail::own_stream(number, kind);
    if (!owned) return failure(owned.error());
    return of(*std::move(owned));
}

result<tcp_stream> tcp_stream::of(detail::descriptor owned) noexcept {
    auto core = detail::hold_stream(std::move(owned));
    if (!core) return failure(core.error());
    tcp_stream s(*std::move(core));
    static_cast<void>(s.set_no_delay(true));  // a hint: it may not be a TCP socket
    return s;
}

result<void> tcp_stream::set_no_delay(bool on) noexcept {
    return detail::set_option(ref(), IPPROTO_TCP, TCP_NODELAY, on);
}

result<void> tcp_stream::set_keep_alive(std::chrono::seconds every) noexcept {
    const bool on = every > std::chrono::seconds::zero();
    result<void> r = detail::set_option(ref(), SOL_SOCKET, SO_KEEPALIVE, on);
    if (!r || !on) return r;
    const auto seconds = static_cast<int>(std::min<std::int64_t>(every.count(), 32767));
    r = detail::set_option(ref(), IPPROTO_TCP, TCP_KEEPIDLE, seconds);
    if (!r) return r;
    return detail::set_option(ref(), IPPROTO_TCP, TCP_KEEPINTVL, seconds);
}

result<void> tcp_stream::set_user_timeout(std::chrono::milliseconds most) noexcept {
    const auto ms = static_cast<int>(std::clamp<std::int64_t>(most.count(), 0, INT32_MAX));
    return detail::set_option(ref(), IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
}

}  // namespace weft
