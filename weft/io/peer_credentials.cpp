#include "weft/io/peer_credentials.hpp"

#include <sys/socket.h>

#include "weft/io/detail/socket.hpp"

namespace weft::detail {

result<peer_credentials> credentials_of(const descriptor_ref& of) noexcept {
    ::ucred c{};
    const result<void> r = done_or(of, [&](int number) noexcept {
        ::socklen_t size = sizeof c;
        return ::getsockopt(number, SOL_SOCKET, SO_PEERCRED, &c, &size);
    });
    if (!r) return failure(r.error());
    return peer_credentials{c.pid, c.uid, c.gid};
}

}  // namespace weft::detail
