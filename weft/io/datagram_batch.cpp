#include "weft/io/datagram_batch.hpp"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

namespace weft::detail {
namespace {

constexpr std::size_t most_of_a_batch = most_datagrams_at_once;

// Room for all control messages of one datagram, in either direction.
constexpr std::size_t control_bytes =
    CMSG_SPACE(sizeof(::in6_pktinfo)) + 3 * CMSG_SPACE(sizeof(int));
struct alignas(::cmsghdr) control {
    std::byte bytes[control_bytes];
};

template <class T>
T value_of(const ::cmsghdr& c) noexcept {
    T t{};
    std::memcpy(&t, CMSG_DATA(&c), std::min(sizeof t, c.cmsg_len - CMSG_LEN(0)));
    return t;
}

ip_address address_of(const ::in6_addr& a, unsigned index) noexcept {
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &a, bytes.size());
    return ip_address::v6(bytes, IN6_IS_ADDR_LINKLOCAL(&a) ? index : 0);
}

void note(incoming_datagram& i, const ::cmsghdr& c) noexcept {
    if (c.cmsg_level == SOL_UDP && c.cmsg_type == UDP_GRO) {
        i.segment = static_cast<std::size_t>(value_of<int>(c));
    } else if (c.cmsg_level == IPPROTO_IP && c.cmsg_type == IP_PKTINFO) {
        const auto p = value_of<::in_pktinfo>(c);
        std::array<std::uint8_t, 4> b;
        std::memcpy(b.data(), &p.ipi_addr, b.size());
        i.to = {ip_address::v4(b[0], b[1], b[2], b[3]), static_cast<unsigned>(p.ipi_ifindex)};
    } else if (c.cmsg_level == IPPROTO_IPV6 && c.cmsg_type == IPV6_PKTINFO) {
        const auto p = value_of<::in6_pktinfo>(c);
        i.to = {address_of(p.ipi6_addr, p.ipi6_ifindex), p.ipi6_ifindex};
    } else if ((c.cmsg_level == IPPROTO_IP && c.cmsg_type == IP_TTL) ||
               (c.cmsg_level == IPPROTO_IPV6 && c.cmsg_type == IPV6_HOPLIMIT)) {
        i.hops = value_of<int>(c);
    } else if (c.cmsg_level == IPPROTO_IP && c.cmsg_type == IP_TOS) {
        i.traffic_class = value_of<std::uint8_t>(c);
    } else if (c.cmsg_level == IPPROTO_IPV6 && c.cmsg_type == IPV6_TCLASS) {
        i.traffic_class = value_of<int>(c);
    }
}

// Appends the control messages of one outgoing datagram.
class control_writer {
public:
    control_writer(::msghdr& m, control& room) noexcept : message_(&m), room_(&room) {}

    template <class T>
    void add(int level, int type, const T& value) noexcept {
        std::byte* const at = room_->bytes + message_->msg_controllen;
        ::cmsghdr head{};  // musl names its padding
        head.cmsg_len = static_cast<decltype(head.cmsg_len)>(CMSG_LEN(sizeof value));
        head.cmsg_level = level;
        head.cmsg_type = type;
        std::memset(at, 0, CMSG_SPACE(sizeof value));
        std::memcpy(at, &head, sizeof head);
        std::memcpy(at + CMSG_LEN(0), &value, sizeof value);
        message_->msg_control = room_->bytes;
        message_->msg_controllen += CMSG_SPACE(sizeof value);
    }

private:
    ::msghdr* message_;
    control* room_;
};

void add_details(control_writer& w, const outgoing_datagram& o) noexcept {
    const bool v6 = o.to != nullptr ? o.to->family() == AF_INET6 : o.from.address.is_v6();
    if (!o.from.address.is_any() || o.from.interface_index != 0) {
        if (v6) {
            ::in6_pktinfo p{};
            if (o.from.address.is_v6())
                std::memcpy(&p.ipi6_addr, o.from.address.bytes().data(), 16);
            p.ipi6_ifindex = o.from.interface_index;
            w.add(IPPROTO_IPV6, IPV6_PKTINFO, p);
        } else {
            ::in_pktinfo p{};
            std::memcpy(&p.ipi_spec_dst, o.from.address.bytes().data(), 4);
            p.ipi_ifindex = static_cast<int>(o.from.interface_index);
            w.add(IPPROTO_IP, IP_PKTINFO, p);
        }
    }
    if (o.traffic_class >= 0)
        w.add(v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, o.traffic_class);
}

// How many bytes of a batch's first datagram go in one message: all, or what the system can cut, or
// one segment.
std::size_t piece_of(const outgoing_datagram& o, std::size_t offset, bool cut_here) noexcept {
    const std::size_t left = o.bytes.size() - offset;
    if (o.segment == 0 || left <= o.segment) return left;
    if (cut_here) return o.segment;
    constexpr std::size_t most_segments = 64;  // the fewest that any version of the system takes
    constexpr std::size_t longest = 65'487;    // of a datagram with the larger of the two headers
    const std::size_t count = std::clamp<std::size_t>(longest / o.segment, 1, most_segments);
    return std::min(left, count * o.segment);
}

// One step for both: writing the messages, and finding out how far the system came.
std::size_t step(send_batch& b) noexcept {
    const outgoing_datagram& o = b.left.front();
    const std::size_t piece = piece_of(o, b.offset, b.cut_here);
    b.offset += piece;
    if (b.offset >= o.bytes.size()) {
        b.left = b.left.subspan(1);
        b.offset = 0;
    }
    return piece;
}

bool refuses_to_cut(int error) noexcept {
    return error == EIO || error == EINVAL || error == EMSGSIZE || error == ENOPROTOOPT ||
           error == EOPNOTSUPP;
}

std::int64_t receive_into(std::span<incoming_datagram> all, int number, int flags,
                          control* controls) noexcept {
    ::mmsghdr messages[most_of_a_batch];
    ::iovec parts[most_of_a_batch];
    const std::size_t count = std::min(all.size(), most_of_a_batch);
    for (std::size_t i = 0; i != count; ++i) {
        parts[i] = {all[i].into.data(), all[i].into.size()};
        messages[i].msg_hdr = {};
        messages[i].msg_hdr.msg_name = all[i].from.data();
        messages[i].msg_hdr.msg_namelen = endpoint::capacity;
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        if (controls == nullptr) continue;
        messages[i].msg_hdr.msg_control = controls[i].bytes;
        messages[i].msg_hdr.msg_controllen = control_bytes;
    }
    // The result is the length of each datagram, and not of the part that fit.
    const int n = ::recvmmsg(number, messages, static_cast<unsigned>(count),
                             flags | MSG_DONTWAIT | MSG_TRUNC, nullptr);
    if (n < 0) return -errno;
    for (std::size_t i = 0; i != static_cast<std::size_t>(n); ++i) {
        ::msghdr& m = messages[i].msg_hdr;
        incoming_datagram& one = all[i];
        one.bytes = std::min<std::size_t>(messages[i].msg_len, one.into.size());
        one.truncated_bytes = messages[i].msg_len - one.bytes;
        if (m.msg_namelen != 0)
            one.from.resize(std::min(m.msg_namelen, endpoint::capacity));
        else
            one.from = {};  // the sender has no name
        if (controls == nullptr) continue;
        one.segment = 0;
        one.to = {};
        one.hops = one.traffic_class = -1;
        for (::cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) note(one, *c);
        // A single datagram is recognised by being no longer than one segment.
        if (messages[i].msg_len <= one.segment) one.segment = 0;
    }
    return n;
}

}  // namespace

std::int64_t receive_batch::receive(int number, int flags) noexcept {
    if (!with_details) return receive_into(all, number, flags, nullptr);
    control controls[most_of_a_batch];
    return receive_into(all, number, flags, controls);
}

std::int64_t send_batch::send(int number, int flags) noexcept {
    ::mmsghdr messages[most_of_a_batch];
    ::iovec parts[most_of_a_batch];
    control controls[most_of_a_batch];
    const std::size_t all = left.size();
    for (;;) {
        send_batch ahead = *this;
        unsigned count = 0;
        for (; count != most_of_a_batch && !ahead.left.empty(); ++count) {
            const outgoing_datagram& o = ahead.left.front();
            std::byte* const at = const_cast<std::byte*>(o.bytes.data()) + ahead.offset;
            ::msghdr& m = messages[count].msg_hdr;
            m = {};
            if (o.to != nullptr) {
                m.msg_name = const_cast<::sockaddr*>(o.to->data());
                m.msg_namelen = o.to->size();
            }
            m.msg_iov = &parts[count];
            m.msg_iovlen = 1;
            control_writer w(m, controls[count]);
            add_details(w, o);
            const std::size_t piece = step(ahead);
            parts[count] = {at, piece};
            if (o.segment != 0 && piece > o.segment)
                w.add(SOL_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(o.segment));
        }
        const bool cuts = left.front().segment != 0 && parts[0].iov_len > left.front().segment;
        const int n = ::sendmmsg(number, messages, count, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && cuts && refuses_to_cut(errno)) {
            cut_here = true;
            continue;
        }
        if (n < 0) return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        for (int i = 0; i != n; ++i) step(*this);
        // While a segmented datagram has gone only in part, there is nothing to report yet.
        if (left.size() != all) return static_cast<std::int64_t>(all - left.size());
    }
}

}  // namespace weft::detail
