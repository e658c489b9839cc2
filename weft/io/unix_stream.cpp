#include "weft/io/unix_stream.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "weft/io/socket.hpp"

namespace weft {

result<unix_stream> unix_stream::connect(const endpoint& to, duration timeout, place_t place) {
    if (!to.is_local()) return failure(std::errc::address_family_not_supported);
    auto op = async_connect(to, timeout);
    return detail::block_for(op, place);
}

result<unix_stream> unix_stream::adopt(int number) noexcept {
    result<descriptor> owned = detail::own_stream(number);
    if (!owned) return failure(owned.error());
    return of(*std::move(owned));
}

result<unix_stream> unix_stream::of(descriptor owned) noexcept {
    auto core = detail::hold_stream(std::move(owned));
    if (!core) return failure(core.error());
    return unix_stream(*std::move(core));
}

result<std::pair<unix_stream, unix_stream>> unix_stream::pair() {
    int numbers[2];
    const int type = SOCK_STREAM | SOCK_CLOEXEC | detail::nonblocking_flag();
    if (::socketpair(AF_UNIX, type, 0, numbers) != 0)
        return failure(std::error_code(errno, std::system_category()));
    auto a = adopt(numbers[0]);
    auto b = adopt(numbers[1]);
    if (!a || !b) return failure(a ? b.error() : a.error());
    return std::pair(*std::move(a), *std::move(b));
}

result<unix_listener> unix_listener::bind(const endpoint& where, const listen_options& o) {
    if (!where.is_local()) return failure(std::errc::address_family_not_supported);
    result<detail::listening> l = detail::listen_at(where, o);
    if (!l) return failure(l.error());
    return unix_listener(std::move(l->owned), std::move(l->reserve));
}

}  // namespace weft
