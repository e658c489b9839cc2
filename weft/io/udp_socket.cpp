#include "weft/io/udp_socket.hpp"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "weft/io/socket.hpp"

namespace weft {
namespace detail {

datagram_operation::datagram_operation(const descriptor_ref& of, io_request::kind what,
                                       std::span<std::byte> part, duration timeout,
                                       const char* waits_for) noexcept
    : io_operation({}, 0, timeout, waits_for), part_{part.data(), part.size()} {
    request_.what = what;
    request_.reads = what == io_request::receive_message;
    request_.of = of;
    // Gives the length of the datagram, and not of the part that there was room for.
    if (request_.reads) request_.flags = MSG_TRUNC;
}

// It stays where it is from now on.
bool datagram_operation::ready() noexcept {
    if (named_) {
        message_.msg_name = other_.data();
        message_.msg_namelen = request_.reads ? endpoint::capacity : other_.size();
    }
    message_.msg_iov = &part_;
    message_.msg_iovlen = 1;
    request_.data = &message_;
    return io_operation::ready();
}

result<received> datagram_operation::taken(const waiter* w, wait_status how) const noexcept {
    const transferred t = outcome(w, how);
    if (t.error) return failure(t.error);
    const std::size_t bytes = std::min(t.bytes, part_.iov_len);
    return received{bytes, t.bytes - bytes};
}

result<void> datagram_send::take(const waiter* w, wait_status how) const noexcept {
    if (const transferred t = outcome(w, how); t.error) return failure(t.error);
    return {};
}

result<datagram> datagram_recv_from::take(const waiter* w, wait_status how) const noexcept {
    const result<received> r = taken(w, how);
    if (!r) return failure(r.error());
    datagram d{*r, other_};
    d.from.resize(std::min(name_bytes(), endpoint::capacity));
    return d;
}

}  // namespace detail

namespace {

result<void> done_or(int r) noexcept {
    if (r == 0) return {};
    return failure(std::error_code(errno, std::system_category()));
}

}  // namespace

result<udp_socket> udp_socket::open(const endpoint& of, const udp_options& o) noexcept {
    if (!of.is_ip()) return failure(std::errc::address_family_not_supported);
    const result<int> number = detail::open_socket(of.family(), SOCK_DGRAM);
    if (!number) return failure(number.error());
    std::error_code error;
    const descriptor_ref ref = descriptor_ref::adopt(*number, 0, error);
    if (!ref) {
        ::close(*number);
        return failure(error);
    }
    udp_socket s(descriptor(ref), o);
    if (o.reuse_address) error = detail::set_option(*number, SOL_SOCKET, SO_REUSEADDR, 1);
    if (!error && o.reuse_port) error = detail::set_option(*number, SOL_SOCKET, SO_REUSEPORT, 1);
    if (!error && o.broadcast) error = detail::set_option(*number, SOL_SOCKET, SO_BROADCAST, 1);
    if (error) return failure(error);
    return s;
}

result<udp_socket> udp_socket::bind(std::string_view where, const udp_options& o) {
    const result<endpoint> e = endpoint::parse(where);
    if (!e) return failure(e.error());
    return bind(*e, o);
}

result<udp_socket> udp_socket::bind(const endpoint& where, const udp_options& o) {
    result<udp_socket> s = open(where, o);
    if (!s) return s;
    if (auto e = detail::bind_socket(s->native_handle(), where, -1)) return failure(e);
    return s;
}

result<udp_socket> udp_socket::connect(const endpoint& to, const udp_options& o) {
    result<udp_socket> s = open(to, o);
    if (!s) return s;
    if (auto r = s->set_peer(to); !r) return failure(r.error());
    return s;
}

result<void> udp_socket::set_peer(const endpoint& to) noexcept {
    if (!to.is_ip()) return failure(std::errc::address_family_not_supported);
    return done_or(::connect(native_handle(), to.data(), to.size()));
}

// Of the two families each has a name of its own for the same thing.
result<void> udp_socket::set(int v4_name, int v6_name, int value) noexcept {
    const bool v6 = local_endpoint().family() == AF_INET6;
    return done_or(::setsockopt(native_handle(), v6 ? IPPROTO_IPV6 : IPPROTO_IP,
                                v6 ? v6_name : v4_name, &value, sizeof value));
}

result<void> udp_socket::change_group(int name, const ip_address& group,
                                      unsigned interface_index) noexcept {
    const endpoint e(group, 0);
    ::group_req r{};
    r.gr_interface = interface_index;
    std::memcpy(&r.gr_group, e.data(), e.size());
    return done_or(::setsockopt(native_handle(), group.is_v6() ? IPPROTO_IPV6 : IPPROTO_IP, name,
                                &r, sizeof r));
}

result<void> udp_socket::join(const ip_address& group, unsigned interface_index) noexcept {
    return change_group(MCAST_JOIN_GROUP, group, interface_index);
}

result<void> udp_socket::leave(const ip_address& group, unsigned interface_index) noexcept {
    return change_group(MCAST_LEAVE_GROUP, group, interface_index);
}

result<void> udp_socket::set_multicast_interface(unsigned interface_index) noexcept {
    const auto index = static_cast<int>(interface_index);
    if (local_endpoint().family() == AF_INET6) return set(0, IPV6_MULTICAST_IF, index);
    ::ip_mreqn m{};
    m.imr_ifindex = index;
    return done_or(::setsockopt(native_handle(), IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof m));
}

result<void> udp_socket::set_multicast_hops(int count) noexcept {
    return set(IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS, count);
}

result<void> udp_socket::set_multicast_loop(bool on) noexcept {
    return set(IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP, on);
}

result<void> udp_socket::set_broadcast(bool on) noexcept {
    if (auto e = detail::set_option(native_handle(), SOL_SOCKET, SO_BROADCAST, on))
        return failure(e);
    return {};
}

}  // namespace weft
