#include "weft/io/unix_stream.hpp"

#include <sys/socket.h>

#include "weft/io/detail/socket.hpp"

namespace weft {

result<unix_stream> unix_stream::connect(const endpoint& to, time_limit limit,
                                         std::source_location caller) {
    if (!to.is_local()) return failure(std::errc::address_family_not_supported);
    auto op = async_connect(to, limit);
    return detail::block_for(op, caller);
}

result<unix_stream> unix_stream::adopt(int number) noexcept {
    result<detail::descriptor> owned = detail::own_stream(number, 0);
    if (!owned) return failure(owned.error());
    return of(*std::move(owned));
}

result<unix_stream> unix_stream::of(detail::descriptor owned) noexcept {
    auto core = detail::hold_stream(std::move(owned));
    if (!core) return failure(core.error());
    return unix_stream(*std::move(core));
}

result<std::pair<unix_stream, unix_stream>> unix_stream::pair() {
    return detail::adopt_pair<unix_stream>(SOCK_STREAM);
}

result<unix_listener> unix_listener::bind(const endpoint& where, const listen_options& o) {
    if (!where.is_local()) return failure(std::errc::address_family_not_supported);
    return of(detail::listen_at(where, SOCK_STREAM, o));
}

result<unix_listener> unix_listener::adopt(int number, const listen_options& o) {
    return of(detail::listen_by(number, true, SOCK_STREAM, o));
}

result<unix_listener> unix_listener::of(result<detail::listening> l) {
    if (!l) return failure(l.error());
    return unix_listener(std::move(l->owned), std::move(l->reserve));
}

}  // namespace weft
