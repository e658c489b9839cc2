// unix_datagram: datagrams within the machine, by a path or an abstract name.
//
// Design: no datagram is lost on the way, and none overtakes an earlier one: send() waits while the
// peer's queue is full.
//
// Limits: send_to() without a peer waits too, but the system reports room to it only when the
// receiver takes one of its own; so if many send to one socket, each needs a peer or a timeout. A
// path remains when its socket is gone; bind() fails on a path that exists (address_in_use). In
// recv_from() a sender without a name has no family, and cannot be answered.
//
//   auto s = weft::unix_datagram::bind(*weft::endpoint::local("/run/log")).value();
//   std::array<std::byte, 4096> buffer;
//   while (auto d = s.recv(buffer)) log(std::span(buffer).first(d->bytes), d->truncated_bytes);
//
//   auto c = weft::unix_datagram::connect(*weft::endpoint::local("/run/log"));
//   auto [a, b] = weft::unix_datagram::pair().value();  // connected with each other
#pragma once

#include <utility>

#include "weft/io/datagram.hpp"

namespace weft {

class unix_datagram : public datagram_socket {
public:
    unix_datagram() noexcept = default;  // none

    static result<unix_datagram> bind(const endpoint& where);
    // Without a name, with a peer: connection_refused, no_such_file_or_directory. Does not wait.
    static result<unix_datagram> connect(const endpoint& to);
    static result<std::pair<unix_datagram, unix_datagram>> pair();
    // Takes ownership of an fd of such a socket, also on failure.
    static result<unix_datagram> adopt(int number) noexcept;

    // From now on it sends to this peer, and receives from no other.
    result<void> set_peer(const endpoint& to) noexcept;

private:
    explicit unix_datagram(detail::descriptor d) noexcept
        : datagram_socket(std::move(d), no_timeout, no_timeout) {
        cuts_here_ = true;
        sends_by_ = detail::io_request::send_message_here;
    }
    static result<unix_datagram> open() noexcept;
};

}  // namespace weft
