// udp_socket: datagrams of UDP.
//
// Its one idea: a datagram comes and goes whole or not at all, so an operation ends with the first
// system call that succeeds, and any number of parties may send and receive at once.
//
//   auto s = weft::udp_socket::bind("0.0.0.0:7000").value();
//   std::array<std::byte, 1500> buffer;
//   while (auto d = s.recv_from(buffer))                // until it is closed, or stopped
//       if (!d->truncated() && !s.send_to(std::span(buffer).first(d->bytes), d->from)) break;
//
//   std::array<weft::incoming, 32> batch;               // many in one system call
//   for (auto& i : batch) i.into = next_buffer();
//   for (auto& i : std::span(batch).first(s.recv_many(batch).value())) use(i.from, i.text());
//
//   auto c = weft::udp_socket::connect(server);         // one peer: send(), recv()
//
// What did not fit into the buffer is lost, and said to be (received::lost). An empty datagram is
// one: zero bytes and no error. There is no end of a stream.
//
// Errors that come back by ICMP are told to a socket that has a peer, by its next operation,
// whichever that is: connection_refused where nobody listens. So a send may report what became of
// the send before. A socket without a peer is not told.
#pragma once

#include <string_view>
#include <utility>

#include "weft/io/datagram.hpp"
#include "weft/io/ip_address.hpp"

namespace weft {

struct udp_options {
    bool reuse_address = false;  // several sockets receive what is sent to a group at one port
    bool reuse_port = false;     // several sockets of one port share what comes
    bool broadcast = false;      // it may send to all of a net
    bool only_v6 = false;        // at "[::]:0": not what comes by IPv4
    // Datagrams of one sender may come as one, of up to 64 KiB, in recv_many(): incoming::segment.
    // To the other receives several would be one. A hint, see coalesces().
    bool coalesce = false;
    bool details = false;  // recv_many() tells where each came in, its hops and traffic class
    duration receive_timeout = duration::max();  // of one operation; max: none
    duration send_timeout = duration::max();     //
};

class udp_socket : public datagram_socket {
public:
    udp_socket() noexcept = default;  // none

    // "127.0.0.1:7000", "[::1]:0"; port zero: a free one, see local_endpoint(). Fails with what the
    // system says: address_in_use, permission_denied; invalid_argument.
    static result<udp_socket> bind(std::string_view where, const udp_options& = {});
    static result<udp_socket> bind(const endpoint& where, const udp_options& = {});
    // At any port, with a peer. Nothing is sent, and nothing waited for.
    static result<udp_socket> connect(const endpoint& to, const udp_options& = {});

    // From now on it sends to this one, and receives from no other.
    result<void> set_peer(const endpoint& to) noexcept;

    // Of a multicast group; `interface_index` is that of if_nametoindex(), zero: the system's
    // choice. address_in_use: it is in it; address_not_available: it is not.
    result<void> join(const ip_address& group, unsigned interface_index = 0) noexcept;
    result<void> leave(const ip_address& group, unsigned interface_index = 0) noexcept;
    // The same, of what one source sends to it alone; each source is joined by itself.
    result<void> join_source(const ip_address& group, const ip_address& source,
                             unsigned interface_index = 0) noexcept;
    result<void> leave_source(const ip_address& group, const ip_address& source,
                              unsigned interface_index = 0) noexcept;
    // How what is sent to a group goes: through which interface, how far, and whether sockets of
    // this machine receive it too (they do if nothing is said).
    result<void> set_multicast_interface(unsigned interface_index) noexcept;
    result<void> set_multicast_hops(int count) noexcept;
    result<void> set_multicast_loop(bool on) noexcept;
    result<void> set_broadcast(bool on) noexcept;

    // Whether the system knows how to cut what is sent into segments. If so it may refuse to still,
    // for one way out (sent_many::cut_here).
    bool can_cut() const noexcept;
    bool coalesces() const noexcept;

private:
    udp_socket(descriptor d, const udp_options& o) noexcept
        : datagram_socket(std::move(d), o.receive_timeout, o.send_timeout) {}

    static result<udp_socket> open(const endpoint& of, const udp_options&) noexcept;
    result<void> set(int v4_name, int v6_name, int value) noexcept;
    result<void> change_group(int name, const ip_address&, unsigned interface_index) noexcept;
    result<void> change_source(int name, const ip_address& group, const ip_address& source,
                               unsigned interface_index) noexcept;
};

}  // namespace weft
