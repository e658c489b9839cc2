#include "weft/io/unix_datagram.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include "weft/io/unix_seqpacket.hpp"

namespace weft {

using detail::done_or;

result<unix_datagram> unix_datagram::adopt(int number) noexcept {
    result<detail::descriptor> owned = detail::own_messages(number);
    if (!owned) return failure(owned.error());
    return unix_datagram(*std::move(owned));
}

result<unix_datagram> unix_datagram::open() noexcept {
    const result<int> number = detail::open_socket(AF_UNIX, SOCK_DGRAM);
    if (!number) return failure(number.error());
    return adopt(*number);
}

result<unix_datagram> unix_datagram::bind(const endpoint& where) {
    if (!where.is_local()) return failure(std::errc::address_family_not_supported);
    result<unix_datagram> s = open();
    if (!s) return s;
    const result<void> bound = done_or(
        s->ref(), [&](int number) noexcept { return ::bind(number, where.data(), where.size()); });
    if (!bound) return failure(bound.error());
    return s;
}

result<unix_datagram> unix_datagram::connect(const endpoint& to) {
    result<unix_datagram> s = open();
    if (!s) return s;
    if (auto r = s->set_peer(to); !r) return failure(r.error());
    return s;
}

result<void> unix_datagram::set_peer(const endpoint& to) noexcept {
    if (!to.is_local()) return failure(std::errc::address_family_not_supported);
    return done_or(ref(),
                   [&](int number) noexcept { return ::connect(number, to.data(), to.size()); });
}

result<std::pair<unix_datagram, unix_datagram>> unix_datagram::pair() {
    return detail::adopt_pair<unix_datagram>(SOCK_DGRAM);
}

}  // namespace weft
