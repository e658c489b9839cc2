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
//   auto c = weft::udp_socket::connect(server);         // one peer: send(), recv()
//
// What did not fit into the buffer is lost, and said to be (received::lost). An empty datagram is
// one: zero bytes and no error. There is no end of a stream.
//
// Errors that come back by ICMP are told to a socket that has a peer, by its next operation,
// whichever that is: connection_refused where nobody listens. So a send may report what became of
// the send before. A socket without a peer is not told.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <source_location>
#include <span>
#include <string_view>
#include <utility>

#include "weft/io/endpoint.hpp"
#include "weft/io/io_operation.hpp"
#include "weft/wait/await.hpp"

namespace weft {

struct udp_options {
    bool reuse_address = false;  // several sockets receive what is sent to a group at one port
    bool reuse_port = false;     // several sockets of one port share what comes
    bool broadcast = false;      // it may send to all of a net
    duration receive_timeout = duration::max();  // of one operation; max: none
    duration send_timeout = duration::max();     //
};

// What a receive gave: the first so many bytes of the buffer.
struct received {
    std::size_t bytes = 0;
    std::size_t lost = 0;  // by how much the datagram was longer than the buffer

    bool truncated() const noexcept { return lost != 0; }
};
struct datagram : received {
    endpoint from;
};

namespace detail {

// One datagram, through a message that lies in the operation.
class datagram_operation : public io_operation {
public:
    bool ready() noexcept;

protected:
    datagram_operation(const descriptor_ref& of, io_request::kind what, std::span<std::byte> part,
                       duration timeout, const char* waits_for) noexcept;

    result<received> taken(const waiter* w, wait_status how) const noexcept;
    ::socklen_t name_bytes() const noexcept { return message_.msg_namelen; }

    bool named_ = false;  // the other end counts
    endpoint other_;

private:
    ::iovec part_;
    ::msghdr message_{};
};

class datagram_send final : public datagram_operation {
public:
    datagram_send(const descriptor_ref& of, std::span<const std::byte> from,
                  duration timeout) noexcept
        : datagram_operation(of, io_request::send_message,
                             {const_cast<std::byte*>(from.data()), from.size()}, timeout,
                             "room for a datagram") {}
    datagram_send(const descriptor_ref& of, std::span<const std::byte> from, duration timeout,
                  const endpoint& to) noexcept
        : datagram_send(of, from, timeout) {
        named_ = true;
        other_ = to;
    }
    result<void> take(const waiter* w, wait_status how) const noexcept;
};

class datagram_recv final : public datagram_operation {
public:
    datagram_recv(const descriptor_ref& of, std::span<std::byte> into, duration timeout) noexcept
        : datagram_operation(of, io_request::receive_message, into, timeout, "a datagram") {}
    result<received> take(const waiter* w, wait_status how) const noexcept { return taken(w, how); }
};

class datagram_recv_from final : public datagram_operation {
public:
    datagram_recv_from(const descriptor_ref& of, std::span<std::byte> into,
                       duration timeout) noexcept
        : datagram_operation(of, io_request::receive_message, into, timeout, "a datagram") {
        named_ = true;
    }
    result<datagram> take(const waiter* w, wait_status how) const noexcept;
};

}  // namespace detail

class udp_socket {
    using place_t = std::source_location;

public:
    udp_socket() noexcept = default;  // none

    // "127.0.0.1:7000", "[::1]:0"; port zero: a free one, see local_endpoint(). Fails with what the
    // system says: address_in_use, permission_denied; invalid_argument.
    static result<udp_socket> bind(std::string_view where, const udp_options& = {});
    static result<udp_socket> bind(const endpoint& where, const udp_options& = {});
    // At any port, with a peer. Nothing is sent, and nothing waited for.
    static result<udp_socket> connect(const endpoint& to, const udp_options& = {});

    explicit operator bool() const noexcept { return static_cast<bool>(owned_); }

    // From now on it sends to this one, and receives from nobody else.
    result<void> set_peer(const endpoint& to) noexcept;

    // To the peer; without one: destination_address_required. message_size: it is too long.
    [[nodiscard]] detail::datagram_send async_send(std::span<const std::byte> from) noexcept {
        return {owned_.ref(), from, options_.send_timeout};
    }
    [[nodiscard]] detail::datagram_send async_send_to(std::span<const std::byte> from,
                                                      const endpoint& to) noexcept {
        return {owned_.ref(), from, options_.send_timeout, to};
    }
    [[nodiscard]] detail::datagram_recv async_recv(std::span<std::byte> into) noexcept {
        return {owned_.ref(), into, options_.receive_timeout};
    }
    [[nodiscard]] detail::datagram_recv_from async_recv_from(std::span<std::byte> into) noexcept {
        return {owned_.ref(), into, options_.receive_timeout};
    }

    result<void> send(std::span<const std::byte> from, place_t place = place_t::current()) {
        auto op = async_send(from);
        return detail::block_for(op, place);
    }
    result<void> send_to(std::span<const std::byte> from, const endpoint& to,
                         place_t place = place_t::current()) {
        auto op = async_send_to(from, to);
        return detail::block_for(op, place);
    }
    result<received> recv(std::span<std::byte> into, place_t place = place_t::current()) {
        auto op = async_recv(into);
        return detail::block_for(op, place);
    }
    result<datagram> recv_from(std::span<std::byte> into, place_t place = place_t::current()) {
        auto op = async_recv_from(into);
        return detail::block_for(op, place);
    }

    // Of a multicast group; `interface_index` is that of if_nametoindex(), zero: the system's
    // choice. address_in_use: it is in it; address_not_available: it is not.
    result<void> join(const ip_address& group, unsigned interface_index = 0) noexcept;
    result<void> leave(const ip_address& group, unsigned interface_index = 0) noexcept;
    // How what is sent to a group goes: through which interface, how far, and whether sockets of
    // this machine receive it too (they do if nothing is said).
    result<void> set_multicast_interface(unsigned interface_index) noexcept;
    result<void> set_multicast_hops(int count) noexcept;
    result<void> set_multicast_loop(bool on) noexcept;
    result<void> set_broadcast(bool on) noexcept;

    // Limits of each operation from now on.
    void set_receive_timeout(duration d) noexcept { options_.receive_timeout = d; }
    void set_send_timeout(duration d) noexcept { options_.send_timeout = d; }

    // Whoever waits is told errc::closed. Any thread.
    void close() noexcept { owned_.ref().close(); }

    endpoint local_endpoint() const noexcept { return endpoint::of_socket(native_handle()); }
    endpoint remote_endpoint() const noexcept { return endpoint::of_peer(native_handle()); }
    int native_handle() const noexcept { return owned_.number(); }

private:
    udp_socket(descriptor d, const udp_options& o) noexcept : owned_(std::move(d)), options_(o) {}

    static result<udp_socket> open(const endpoint& of, const udp_options&) noexcept;
    result<void> set(int v4_name, int v6_name, int value) noexcept;
    result<void> change_group(int name, const ip_address&, unsigned interface_index) noexcept;

    descriptor owned_;
    udp_options options_;
};

}  // namespace weft
