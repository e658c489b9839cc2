// udp_socket: UDP datagrams.
//
// Design: a datagram is transferred whole or not at all, so an operation ends with the first system
// call that succeeds, and callers may send and receive concurrently.
//
// Limits: what did not fit into the buffer is lost and counted (recv_result::truncated_bytes). An
// empty datagram is a datagram: zero bytes and no error. There is no end of a stream. A socket that
// has a peer gets the errors that come back by ICMP from its next operation, whichever that is:
// connection_refused if no socket is bound there. So a send may report what became of the send
// before. A socket without a peer gets no such errors.
//
//   auto s = weft::udp_socket::bind("0.0.0.0:7000").value();
//   std::array<std::byte, 1500> buffer;
//   while (auto d = s.recv_from(buffer))                // until it is closed, or stopped
//       if (!d->is_truncated() && !s.send_to(std::span(buffer).first(d->bytes), d->from)) break;
//
//   std::array<weft::incoming_datagram, 32> batch;      // many in one system call
//   for (auto& i : batch) i.into = next_buffer();
//   for (auto& i : std::span(batch).first(s.recv_many(batch).value())) use(i.from, i.text());
//
//   auto c = weft::udp_socket::connect(server);         // one peer: send(), recv()
#pragma once

#include <string_view>
#include <utility>

#include "weft/io/datagram.hpp"
#include "weft/io/ip_address.hpp"

namespace weft {

// How a UDP socket is opened.
struct udp_options {
    bool reuse_address = false;  // several sockets receive what is sent to a group at one port
    bool reuse_port = false;     // several sockets of one port share the datagrams
    bool broadcast = false;      // may send to a broadcast address
    bool only_v6 = false;        // at "[::]:0": no IPv4 datagrams
    // Datagrams of one sender may arrive as one, of up to 64 KiB, in recv_many():
    // incoming_datagram::segment. The other receives would take several for one. A hint, see
    // coalesces().
    bool coalesce = false;
    bool details = false;  // recv_many() reports the local address, hops and traffic class
    duration recv_timeout = no_timeout;  // of one operation
    duration send_timeout = no_timeout;  // the same
};

class udp_socket : public datagram_socket {
public:
    udp_socket() noexcept = default;  // none

    // "127.0.0.1:7000", "[::1]:0"; port zero: a free one, see local_endpoint(). Errors are the
    // system's: address_in_use, permission_denied; invalid_argument.
    static result<udp_socket> bind(std::string_view where, const udp_options& = {});
    static result<udp_socket> bind(const endpoint& where, const udp_options& = {});
    // At any port, with a peer. Sends nothing, and does not wait.
    static result<udp_socket> connect(const endpoint& to, const udp_options& = {});

    // From now on it sends to this peer, and receives from no other.
    result<void> set_peer(const endpoint& to) noexcept;

    // For a multicast group; `interface_index` is that of if_nametoindex(), zero: the system's
    // choice. address_in_use: it is a member already; address_not_available: it is not a member.
    result<void> join(const ip_address& group, unsigned interface_index = 0) noexcept;
    result<void> leave(const ip_address& group, unsigned interface_index = 0) noexcept;
    // The same, but only for what one source sends to the group; each source is joined separately.
    result<void> join_source(const ip_address& group, const ip_address& source,
                             unsigned interface_index = 0) noexcept;
    result<void> leave_source(const ip_address& group, const ip_address& source,
                              unsigned interface_index = 0) noexcept;
    // How datagrams to a group are sent: through which interface, how far, and whether sockets of
    // this machine receive them too (by default they do).
    result<void> set_multicast_interface(unsigned interface_index) noexcept;
    result<void> set_multicast_hops(int count) noexcept;
    result<void> set_multicast_loop(bool on) noexcept;
    result<void> set_broadcast(bool on) noexcept;

    // Whether the system can cut what is sent into segments. If so it may still refuse to, for one
    // route (send_many_result::cut_here()).
    bool can_cut() const noexcept;
    bool coalesces() const noexcept;

private:
    udp_socket(detail::descriptor d, const udp_options& o) noexcept
        : datagram_socket(std::move(d), o.recv_timeout, o.send_timeout) {}

    static result<udp_socket> open(const endpoint& of, const udp_options&) noexcept;
    result<void> set(int v4_name, int v6_name, int value) noexcept;
    result<void> change_group(int name, const ip_address&, unsigned interface_index) noexcept;
    result<void> change_source(int name, const ip_address& group, const ip_address& source,
                               unsigned interface_index) noexcept;
};

}  // namespace weft
