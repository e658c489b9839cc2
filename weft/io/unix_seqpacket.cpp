#include "weft/io/unix_seqpacket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include "weft/base/errc.hpp"

namespace weft {
namespace detail {

result<descriptor> own_messages(int number) noexcept {
    std::error_code error;
    const descriptor_ref ref = descriptor_ref::adopt(number, 0, error);
    if (ref) return descriptor(ref);
    if (number >= 0) ::close(number);
    return failure(error);
}

result<void> message_send_operation::take(const waiter* w, wait_status how) const noexcept {
    if (const transfer_result t = outcome(w, how); !t) return failure(t.error());
    return {};
}

result<recv_result> message_recv_operation::take(const waiter* w, wait_status how) const noexcept {
    result<recv_result> r = taken(w, how);
    if (r && r->bytes == 0 && r->truncated_bytes == 0) return failure(errc::unexpected_eof);
    return r;
}

}  // namespace detail

result<unix_seqpacket> unix_seqpacket::connect(const endpoint& to, time_limit limit,
                                               std::source_location caller) {
    if (!to.is_local()) return failure(std::errc::address_family_not_supported);
    auto op = async_connect(to, limit);
    return detail::block_for(op, caller);
}

result<unix_seqpacket> unix_seqpacket::adopt(int number) noexcept {
    result<detail::descriptor> owned = detail::own_messages(number);
    if (!owned) return failure(owned.error());
    return of(*std::move(owned));
}

result<std::pair<unix_seqpacket, unix_seqpacket>> unix_seqpacket::pair() {
    return detail::adopt_pair<unix_seqpacket>(SOCK_SEQPACKET);
}

result<void> unix_seqpacket::end() noexcept {
    return detail::done_or(owned_.ref(),
                           [](int number) noexcept { return ::shutdown(number, SHUT_WR); });
}

result<unix_seqpacket_listener> unix_seqpacket_listener::bind(const endpoint& where,
                                                              const listen_options& o) {
    if (!where.is_local()) return failure(std::errc::address_family_not_supported);
    return of(detail::listen_at(where, SOCK_SEQPACKET, o));
}

result<unix_seqpacket_listener> unix_seqpacket_listener::adopt(int number,
                                                               const listen_options& o) {
    return of(detail::listen_by(number, true, SOCK_SEQPACKET, o));
}

result<unix_seqpacket_listener> unix_seqpacket_listener::of(result<detail::listening> l) {
    if (!l) return failure(l.error());
    return unix_seqpacket_listener(std::move(l->owned), std::move(l->reserve));
}

}  // namespace weft
