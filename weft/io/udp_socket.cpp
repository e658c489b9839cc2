#include "weft/io/udp_socket.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "weft/io/detail/socket.hpp"

namespace weft {
using detail::done_or;

result<udp_socket> udp_socket::open(const endpoint& of, const udp_options& o) noexcept {
    if (!of.is_ip()) return failure(std::errc::address_family_not_supported);
    const result<int> number = detail::open_socket(of.family(), SOCK_DGRAM);
    if (!number) return failure(number.error());
    std::error_code error;
    const detail::descriptor_ref ref = detail::descriptor_ref::adopt(*number, 0, error);
    if (!ref) {
        ::close(*number);
        return failure(error);
    }
    udp_socket s(detail::descriptor(ref), o);
    const auto turn_on = [&](int level, int name) {
        if (!error) error = detail::set_option(*number, level, name, 1);
    };
    if (o.reuse_address) turn_on(SOL_SOCKET, SO_REUSEADDR);
    if (o.reuse_port) turn_on(SOL_SOCKET, SO_REUSEPORT);
    if (o.broadcast) turn_on(SOL_SOCKET, SO_BROADCAST);
    const bool v6 = of.family() == AF_INET6;
    if (v6 && o.only_v6) turn_on(IPPROTO_IPV6, IPV6_V6ONLY);
    // A system without this leaves the datagrams apart.
    if (o.coalesce) static_cast<void>(detail::set_option(*number, SOL_UDP, UDP_GRO, 1));
    if (o.details) {
        turn_on(v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO);
        turn_on(v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVHOPLIMIT : IP_RECVTTL);
        turn_on(v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVTCLASS : IP_RECVTOS);
    }
    s.with_details_ = o.coalesce || o.details;
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
    return done_or(ref(),
                   [&](int number) noexcept { return ::connect(number, to.data(), to.size()); });
}

// The two families have different names for the same option.
result<void> udp_socket::set(int v4_name, int v6_name, int value) noexcept {
    const bool v6 = local_endpoint().family() == AF_INET6;
    return detail::set_option(ref(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? v6_name : v4_name, value);
}

result<void> udp_socket::change_group(int name, const ip_address& group,
                                      unsigned interface_index) noexcept {
    const endpoint e(group, 0);
    ::group_req r{};
    r.gr_interface = interface_index;
    std::memcpy(&r.gr_group, e.data(), e.size());
    const int level = group.is_v6() ? IPPROTO_IPV6 : IPPROTO_IP;
    return done_or(ref(), [&](int number) noexcept {
        return ::setsockopt(number, level, name, &r, sizeof r);
    });
}

result<void> udp_socket::join(const ip_address& group, unsigned interface_index) noexcept {
    return change_group(MCAST_JOIN_GROUP, group, interface_index);
}

result<void> udp_socket::leave(const ip_address& group, unsigned interface_index) noexcept {
    return change_group(MCAST_LEAVE_GROUP, group, interface_index);
}

result<void> udp_socket::change_source(int name, const ip_address& group, const ip_address& source,
                                       unsigned interface_index) noexcept {
    const endpoint to(group, 0);
    const endpoint from(source, 0);
    ::group_source_req r{};
    r.gsr_interface = interface_index;
    std::memcpy(&r.gsr_group, to.data(), to.size());
    std::memcpy(&r.gsr_source, from.data(), from.size());
    const int level = group.is_v6() ? IPPROTO_IPV6 : IPPROTO_IP;
    return done_or(ref(), [&](int number) noexcept {
        return ::setsockopt(number, level, name, &r, sizeof r);
    });
}

result<void> udp_socket::join_source(const ip_address& group, const ip_address& source,
                                     unsigned interface_index) noexcept {
    return change_source(MCAST_JOIN_SOURCE_GROUP, group, source, interface_index);
}

result<void> udp_socket::leave_source(const ip_address& group, const ip_address& source,
                                      unsigned interface_index) noexcept {
    return change_source(MCAST_LEAVE_SOURCE_GROUP, group, source, interface_index);
}

result<void> udp_socket::set_multicast_interface(unsigned interface_index) noexcept {
    const auto index = static_cast<int>(interface_index);
    if (local_endpoint().family() == AF_INET6) return set(0, IPV6_MULTICAST_IF, index);
    ::ip_mreqn m{};
    m.imr_ifindex = index;
    return done_or(ref(), [&](int number) noexcept {
        return ::setsockopt(number, IPPROTO_IP, IP_MULTICAST_IF, &m, sizeof m);
    });
}

result<void> udp_socket::set_multicast_hops(int count) noexcept {
    return set(IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS, count);
}

result<void> udp_socket::set_multicast_loop(bool on) noexcept {
    return set(IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP, on);
}

result<void> udp_socket::set_broadcast(bool on) noexcept {
    return detail::set_option(ref(), SOL_SOCKET, SO_BROADCAST, on);
}

bool udp_socket::can_cut() const noexcept {
    return detail::get_option(ref(), SOL_UDP, UDP_SEGMENT).has_value();
}

bool udp_socket::coalesces() const noexcept {
    return detail::get_option(ref(), SOL_UDP, UDP_GRO).value_or(0) != 0;
}

}  // namespace weft
