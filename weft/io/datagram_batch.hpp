// datagram_batch: many datagrams in one system call: what recv_many() and send_many() are made of.
//
// Its one idea: the array is the caller's and says all of each datagram; what the system needs
// beside it lies on the stack for the length of the call. So nothing is allocated, and nothing is
// kept between calls but how far a batch came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "weft/io/endpoint.hpp"
#include "weft/io/ip_address.hpp"

namespace weft {

// The end of a datagram at this machine: an address of it, and the number of an interface as
// if_nametoindex() gives it; zero: none.
struct local_end {
    ip_address address = {};
    unsigned interface_index = 0;
};

// A place for a datagram that comes: `into` is the caller's, the rest is told.
struct incoming {
    std::span<std::byte> into;
    std::size_t bytes = 0;  // of the buffer, from its beginning
    std::size_t lost = 0;   // by how much the datagram was longer than the buffer
    endpoint from = {};
    // udp_options::coalesce: they are several, of so many bytes each, and the last of them of what
    // is left. Zero: one.
    std::size_t segment = 0;
    // udp_options::details: where it came in (to a group: that one), how many hops it could still
    // have gone, and its traffic class, whose two low bits are ECN. -1: not told.
    local_end to = {};
    int hops = -1;
    int traffic_class = -1;

    std::span<std::byte> text() const noexcept { return into.first(bytes); }
    bool truncated() const noexcept { return lost != 0; }
};

// A datagram that goes.
struct outgoing {
    std::span<const std::byte> bytes;
    const endpoint* to = nullptr;  // null: to the peer
    // Several, of so many bytes each, and the last of them of what is left; the system cuts them if
    // it can (UDP only). Zero: one.
    std::size_t segment = 0;
    local_end from = {};     // one of this machine's; any, and zero: the system's choice
    int traffic_class = -1;  // with ECN in its two low bits; -1: the socket's
};

// How many of a batch went. With an error: all before `count` have gone, the error is of the one
// there, and none behind it was tried. Of one in segments a part may have gone.
struct [[nodiscard]] sent_many {
    std::size_t count = 0;
    std::error_code error;
    bool cut_here = false;  // the system refused to cut: each segment went by itself

    explicit operator bool() const noexcept { return !error; }
};

namespace detail {

// In one call of the system; a longer batch is sent by several.
inline constexpr std::size_t most_datagrams_at_once = 32;

// Of the array of a receive.
struct receive_batch {
    std::span<incoming> all;
    bool with_details = false;  // the socket was asked for something that comes beside the bytes

    // How many have come, or -errno. Does not wait.
    std::int64_t receive(int number, int flags) noexcept;
};

// Of the array of a send: how far it came.
struct send_batch {
    std::span<const outgoing> left;
    std::size_t offset = 0;  // of the first of them: these bytes have gone, in segments
    bool cut_here = false;

    // How many have gone whole, or -errno. Does not wait.
    std::int64_t send(int number, int flags) noexcept;
};

}  // namespace detail
}  // namespace weft
