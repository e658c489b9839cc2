// datagram_batch: many datagrams in one system call, for recv_many() and send_many().
//
// Design: the caller's array describes each datagram in full. What the system needs besides is on
// the stack during the call. So nothing is allocated, and between calls only the progress of a
// batch is kept.
//
// Limits: the array and its buffers stay until the operation has ended. A receive takes 32
// datagrams at most.
//
//   std::array<weft::incoming_datagram, 32> batch;
//   for (auto& i : batch) i.into = next_buffer();
//   for (auto& i : std::span(batch).first(s.recv_many(batch).value())) use(i.from, i.text());
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "weft/base/result.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/io/ip_address.hpp"

namespace weft {

// The end of a datagram at this machine: one of its addresses, and the index of an interface as
// if_nametoindex() returns it; zero: none.
struct local_end {
    ip_address address = {};
    unsigned interface_index = 0;
};

// Room for a datagram that arrives: the caller sets `into`, the receive sets the rest.
struct incoming_datagram {
    std::span<std::byte> into;
    std::size_t bytes = 0;            // from the beginning of the buffer
    std::size_t truncated_bytes = 0;  // by how many bytes the datagram was longer than the buffer
    endpoint from = {};
    // udp_options::coalesce: the buffer holds several datagrams of this many bytes each; the last
    // one has what is left. Zero: one datagram.
    std::size_t segment = 0;
    // udp_options::details: the address it was sent to (for a group, the group's), how many hops
    // were left, and its traffic class, whose two low bits are ECN. -1: not reported.
    local_end to = {};
    int hops = -1;
    int traffic_class = -1;

    std::span<std::byte> text() const noexcept { return into.first(bytes); }
    bool is_truncated() const noexcept { return truncated_bytes != 0; }
};

// A datagram to send.
struct outgoing_datagram {
    std::span<const std::byte> bytes;
    const endpoint* to = nullptr;  // null: to the peer
    // Several datagrams of this many bytes each; the last one has what is left. The system cuts
    // them if it can (UDP only). Zero: one datagram.
    std::size_t segment = 0;
    local_end from = {};     // an address of this machine; any, and zero: the system's choice
    int traffic_class = -1;  // with ECN in its two low bits; -1: the socket's
};

// How many of a batch were sent. With an error: all before count() were sent, the error is of
// the one at count(), and no later one was tried. A segmented one may have been sent in part.
class [[nodiscard]] send_many_result {
public:
    send_many_result() noexcept = default;
    send_many_result(std::size_t count, std::error_code error, bool cut_here) noexcept
        : count_(count), error_(error), cut_here_(cut_here) {}

    explicit operator bool() const noexcept { return !error_; }
    std::size_t count() const noexcept { return count_; }
    std::error_code error() const noexcept { return error_; }  // a zero code: all were sent
    // Whether the system refused to cut: each segment was sent by itself.
    bool cut_here() const noexcept { return cut_here_; }
    // count(); throws the error as std::system_error.
    std::size_t value() const {
        if (error_) detail::throw_error(error_);
        return count_;
    }

private:
    std::size_t count_ = 0;
    std::error_code error_;
    bool cut_here_ = false;
};

namespace detail {

// In one system call; a longer batch takes several.
inline constexpr std::size_t most_datagrams_at_once = 32;

// The caller's array in a receive.
struct receive_batch {
    std::span<incoming_datagram> all;
    bool with_details = false;  // the socket asked for control messages

    // How many have arrived, or -errno. Does not wait.
    std::int64_t receive(int number, int flags) noexcept;
};

// The rest of the caller's array in a send.
struct send_batch {
    std::span<const outgoing_datagram> left;
    std::size_t offset = 0;  // bytes of the first one that were sent already, in segments
    bool cut_here = false;

    // How many were sent whole, or -errno. Does not wait.
    std::int64_t send(int number, int flags) noexcept;
};

}  // namespace detail
}  // namespace weft
