#include "weft/io/tcp_listener.hpp"

#include <sys/socket.h>

namespace weft {

result<tcp_listener> tcp_listener::bind(std::string_view where, const listen_options& o) {
    const result<endpoint> e = endpoint::parse(where);
    if (!e) return failure(e.error());
    return bind(*e, o);
}

result<tcp_listener> tcp_listener::bind(const endpoint& where, const listen_options& o) {
    if (!where.is_ip()) return failure(std::errc::address_family_not_supported);
    return of(detail::listen_at(where, SOCK_STREAM, o));
}

result<tcp_listener> tcp_listener::adopt(int number, const listen_options& o) {
    return of(detail::listen_by(number, false, SOCK_STREAM, o));
}

result<tcp_listener> tcp_listener::of(result<detail::listening> l) {
    if (!l) return failure(l.error());
    return tcp_listener(std::move(l->owned), std::move(l->reserve));
}

}  // namespace weft
