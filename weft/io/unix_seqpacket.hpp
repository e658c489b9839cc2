// unix_seqpacket, unix_seqpacket_listener: connections within the machine that keep message
// boundaries.
//
// Design: messages arrive whole, one per receive, in the order in which they were sent; what did
// not fit into the buffer is lost and counted. unexpected_eof: the peer has ended. Callers may send
// and receive concurrently.
//
// Limits: to the system an empty message looks like the end, so none is sent (invalid_argument),
// and an empty message of a peer reads as the end. The destructor closes the connection.
//
//   auto [a, b] = weft::unix_seqpacket::pair().value();
//   if (!a.send(weft::bytes_of("one")) || !a.send(weft::bytes_of("two"))) return false;
//   std::array<std::byte, 4096> buffer;
//   while (auto m = b.recv(buffer)) use(std::span(buffer).first(m->bytes));   // "one", "two"
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <source_location>
#include <span>
#include <utility>

#include "weft/io/datagram.hpp"
#include "weft/io/detail/connect.hpp"
#include "weft/io/listener.hpp"
#include "weft/io/passed_numbers.hpp"
#include "weft/io/peer_credentials.hpp"

namespace weft {

namespace detail {

// For a socket that keeps messages apart; the fd is closed on failure.
result<descriptor> own_messages(int number) noexcept;

class message_send_operation final : public datagram_operation {
public:
    message_send_operation(const descriptor_ref& of, std::span<const std::byte> from,
                           duration timeout) noexcept
        : datagram_operation(of, io_request::send_message_here,
                             {const_cast<std::byte*>(from.data()), from.size()}, timeout,
                             "room for a message"),
          empty_(from.empty()) {}
    bool ready() noexcept { return empty_ ? progress(-EINVAL) : datagram_operation::ready(); }
    result<void> take(const waiter* w, wait_status how) const noexcept;

private:
    bool empty_;
};

class message_recv_operation final : public datagram_operation {
public:
    message_recv_operation(const descriptor_ref& of, std::span<std::byte> into,
                           duration timeout) noexcept
        : datagram_operation(of, io_request::receive_message, into, timeout, "a message") {}
    result<recv_result> take(const waiter* w, wait_status how) const noexcept;
};

}  // namespace detail

class unix_seqpacket {
public:
    using connect_operation = detail::stream_connect_operation<unix_seqpacket>;

    unix_seqpacket() noexcept = default;  // none

    [[nodiscard]] static connect_operation async_connect(const endpoint& to,
                                                         time_limit limit = {}) noexcept {
        return {to, limit, false, SOCK_SEQPACKET};
    }
    static result<unix_seqpacket> connect(
        const endpoint& to, time_limit limit = {},
        std::source_location caller = std::source_location::current());
    static result<std::pair<unix_seqpacket, unix_seqpacket>> pair();
    // Takes ownership of an fd that is connected, also on failure.
    static result<unix_seqpacket> adopt(int number) noexcept;
    static result<unix_seqpacket> accepted(int number) noexcept { return adopt(number); }

    explicit operator bool() const noexcept { return static_cast<bool>(owned_); }

    // message_size: it is too long; broken_pipe: the peer has ended.
    [[nodiscard]] detail::message_send_operation async_send(
        std::span<const std::byte> from) noexcept {
        return {owned_.ref(), from, send_timeout_};
    }
    [[nodiscard]] detail::message_recv_operation async_recv(std::span<std::byte> into) noexcept {
        return {owned_.ref(), into, recv_timeout_};
    }
    result<void> send(std::span<const std::byte> from,
                      std::source_location caller = std::source_location::current()) {
        auto op = async_send(from);
        return detail::block_for(op, caller);
    }
    result<recv_result> recv(std::span<std::byte> into,
                             std::source_location caller = std::source_location::current()) {
        auto op = async_recv(into);
        return detail::block_for(op, caller);
    }

    // A message with descriptors (passed_numbers.hpp); recv() of such a message drops them. The fds
    // must stay open until it was sent. bad_file_descriptor: one of them is not open, or this
    // object is empty; invalid_argument: there is no byte, or no room for one, or there are too
    // many fds.
    [[nodiscard]] detail::message_send_numbers_operation async_send_numbers(
        std::span<const std::byte> from, std::span<const int> numbers) noexcept {
        return {owned_.ref(), from, numbers, send_timeout_};
    }
    [[nodiscard]] detail::message_recv_numbers_operation async_recv_numbers(
        std::span<std::byte> into, std::span<owned_number> room) noexcept {
        return {owned_.ref(), into, room, recv_timeout_};
    }
    result<void> send_numbers(std::span<const std::byte> from, std::span<const int> numbers,
                              std::source_location caller = std::source_location::current()) {
        auto op = async_send_numbers(from, numbers);
        return detail::block_for(op, caller);
    }
    result<recv_numbers_result> recv_numbers(
        std::span<std::byte> into, std::span<owned_number> room,
        std::source_location caller = std::source_location::current()) {
        auto op = async_recv_numbers(into, room);
        return detail::block_for(op, caller);
    }

    result<peer_credentials> credentials() const noexcept {
        return detail::credentials_of(owned_.ref());
    }

    // Limits of each operation from now on.
    void set_recv_timeout(duration d) noexcept { recv_timeout_ = d; }
    void set_send_timeout(duration d) noexcept { send_timeout_ = d; }

    // Shuts down the sending side; the peer's receives find the end after the last message. Does
    // not wait.
    result<void> end() noexcept;
    // Ends each waiting operation with errc::closed. Any thread.
    void close() noexcept { owned_.ref().close(); }

    endpoint local_endpoint() const noexcept { return detail::local_of(owned_.ref()); }
    endpoint remote_endpoint() const noexcept { return detail::peer_of(owned_.ref()); }
    int native_handle() const noexcept { return owned_.number(); }

private:
    friend connect_operation;
    static result<unix_seqpacket> of(detail::descriptor owned) noexcept {
        return unix_seqpacket(std::move(owned));
    }
    explicit unix_seqpacket(detail::descriptor d) noexcept : owned_(std::move(d)) {}

    detail::descriptor owned_;
    duration recv_timeout_ = no_timeout;
    duration send_timeout_ = no_timeout;
};

class unix_seqpacket_listener : public listener<unix_seqpacket> {
public:
    unix_seqpacket_listener() noexcept = default;
    static result<unix_seqpacket_listener> bind(const endpoint& where, const listen_options& = {});
    // As tcp_listener::adopt().
    static result<unix_seqpacket_listener> adopt(int number, const listen_options& = {});

private:
    static result<unix_seqpacket_listener> of(result<detail::listening>);
    using listener::listener;
};

}  // namespace weft
