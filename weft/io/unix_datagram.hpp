// unix_datagram: datagrams within the machine, by a path or an abstract name.
//
//   auto s = weft::unix_datagram::bind(*weft::endpoint::local("/run/log")).value();
//   std::array<std::byte, 4096> buffer;
//   while (auto d = s.recv(buffer)) log(std::span(buffer).first(d->bytes), d->lost);
//
//   auto c = weft::unix_datagram::connect(*weft::endpoint::local("/run/log"));
//   auto [a, b] = weft::unix_datagram::pair().value();  // connected with each other
//
// None is lost on the way, and none comes before another that was sent earlier: send() waits while
// the peer's queue is full. send_to() without a peer waits as well, but the system tells it of room
// only when the receiver takes one of its own; so where many send to one, each has a peer or a
// timeout. A path stays when its socket has gone; bind() fails on one that is there
// (address_in_use). A sender without a name is of no family in recv_from(), and cannot be answered.
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
    // Of a number of such a socket; it is this one's from now on, also if this fails.
    static result<unix_datagram> adopt(int number) noexcept;

    // From now on it sends to this one, and receives from no other.
    result<void> set_peer(const endpoint& to) noexcept;

private:
    explicit unix_datagram(descriptor d) noexcept
        : datagram_socket(std::move(d), duration::max(), duration::max()) {
        cuts_here_ = true;
        sends_by_ = detail::io_request::send_message_here;
    }
    static result<unix_datagram> open() noexcept;
};

}  // namespace weft
