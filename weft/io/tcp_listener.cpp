#include "weft/io/tcp_listener.hpp"

namespace weft {

result<tcp_listener> tcp_listener::bind(std::string_view where, const listen_options& o) {
    const result<endpoint> e = endpoint::parse(where);
    if (!e) return failure(e.error());
    return bind(*e, o);
}

result<tcp_listener> tcp_listener::bind(const endpoint& where, const listen_options& o) {
    if (!where.is_ip()) return failure(std::errc::address_family_not_supported);
    result<detail::listening> l = detail::listen_at(where, o);
    if (!l) return failure(l.error());
    return tcp_listener(std::move(l->owned), std::move(l->reserve));
}

}  // namespace weft
