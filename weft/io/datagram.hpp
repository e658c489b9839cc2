// datagram: messages that arrive whole or not at all; the base of udp_socket and of the local
// sockets that keep message boundaries.
//
// Design: an operation ends with the first system call that succeeds, so callers may send and
// receive concurrently.
//
// Limits: what did not fit into the buffer is lost and counted (recv_result::truncated_bytes). The
// operation uses its buffer until it has ended. The destructor closes the socket.
//
//   void answer(weft::datagram_socket& s, std::span<std::byte> room) {
//       while (auto d = s.recv_from(room))
//           if (!s.send_to(room.first(d->bytes), d->from)) break;
//   }
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <source_location>
#include <span>
#include <utility>

#include "weft/io/datagram_batch.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/io/detail/socket.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/wait/await.hpp"

namespace weft {

// Result of a receive: the first `bytes` bytes of the buffer are filled.
struct recv_result {
    std::size_t bytes = 0;
    std::size_t truncated_bytes = 0;  // by how many bytes the datagram was longer than the buffer

    bool is_truncated() const noexcept { return truncated_bytes != 0; }
};
// The same, and the address that the datagram is from.
struct recv_from_result : recv_result {
    endpoint from;
};

namespace detail {

// One datagram; the msghdr is part of the operation.
class datagram_operation : public io_operation {
public:
    bool ready() noexcept;

protected:
    datagram_operation(const descriptor_ref& of, io_request::kind what, std::span<std::byte> part,
                       duration timeout, const char* waits_for) noexcept;

    result<recv_result> taken(const waiter* w, wait_status how) const noexcept;
    ::socklen_t name_bytes() const noexcept { return message_.msg_namelen; }

    bool named_ = false;  // the message has the address of the other end
    endpoint other_;

private:
    ::iovec part_;
    ::msghdr message_{};
};

class datagram_send_operation final : public datagram_operation {
public:
    datagram_send_operation(const descriptor_ref& of, io_request::kind by,
                            std::span<const std::byte> from, duration timeout) noexcept
        : datagram_operation(of, by, {const_cast<std::byte*>(from.data()), from.size()}, timeout,
                             "room for a datagram") {}
    datagram_send_operation(const descriptor_ref& of, io_request::kind by,
                            std::span<const std::byte> from, duration timeout,
                            const endpoint& to) noexcept
        : datagram_send_operation(of, by, from, timeout) {
        named_ = true;
        other_ = to;
    }
    result<void> take(const waiter* w, wait_status how) const noexcept;
};

class datagram_recv_operation final : public datagram_operation {
public:
    datagram_recv_operation(const descriptor_ref& of, std::span<std::byte> into,
                            duration timeout) noexcept
        : datagram_operation(of, io_request::receive_message, into, timeout, "a datagram") {}
    result<recv_result> take(const waiter* w, wait_status how) const noexcept {
        return taken(w, how);
    }
};

class datagram_recv_from_operation final : public datagram_operation {
public:
    datagram_recv_from_operation(const descriptor_ref& of, std::span<std::byte> into,
                                 duration timeout) noexcept
        : datagram_operation(of, io_request::receive_message, into, timeout, "a datagram") {
        named_ = true;
    }
    result<recv_from_result> take(const waiter* w, wait_status how) const noexcept;
};

// Receives the datagrams that have arrived, at least one.
class datagram_recv_many_operation final : public io_operation {
public:
    datagram_recv_many_operation(const descriptor_ref& of, std::span<incoming_datagram> into,
                                 bool with_details, duration timeout) noexcept
        : io_operation(io_request::receive_many, true, of, nullptr, 0, 1, timeout, "datagrams"),
          batch_{into, with_details} {}
    bool ready() noexcept;
    result<std::size_t> take(const waiter* w, wait_status how) const noexcept {
        return some(w, how);
    }

private:
    receive_batch batch_;
};

// Sends all of them, or those before the first error.
class datagram_send_many_operation final : public io_operation {
public:
    datagram_send_many_operation(const descriptor_ref& of, std::span<const outgoing_datagram> from,
                                 bool cut_here, duration timeout) noexcept
        : io_operation(io_request::send_many, false, of, nullptr, 0, 1, timeout,
                       "room for datagrams"),
          batch_{from, 0, cut_here} {
        enough_ = look;
    }
    bool ready() noexcept;
    send_many_result take(const waiter* w, wait_status how) const noexcept {
        const transfer_result t = outcome(w, how);
        return {t.bytes(), t.error(), batch_.cut_here};
    }

private:
    static bool look(io_operation& op, std::size_t) noexcept {
        return static_cast<datagram_send_many_operation&>(op).batch_.left.empty();
    }

    send_batch batch_;
};

}  // namespace detail

// What every datagram socket does, of whatever family.
class datagram_socket {
public:
    datagram_socket() noexcept = default;  // none

    explicit operator bool() const noexcept { return static_cast<bool>(owned_); }

    // To the peer; destination_address_required if there is none, message_size if it is too long.
    [[nodiscard]] detail::datagram_send_operation async_send(
        std::span<const std::byte> from) noexcept {
        return {owned_.ref(), sends_by_, from, send_timeout_};
    }
    [[nodiscard]] detail::datagram_send_operation async_send_to(std::span<const std::byte> from,
                                                                const endpoint& to) noexcept {
        return {owned_.ref(), sends_by_, from, send_timeout_, to};
    }
    [[nodiscard]] detail::datagram_recv_operation async_recv(std::span<std::byte> into) noexcept {
        return {owned_.ref(), into, recv_timeout_};
    }
    [[nodiscard]] detail::datagram_recv_from_operation async_recv_from(
        std::span<std::byte> into) noexcept {
        return {owned_.ref(), into, recv_timeout_};
    }

    // Many in one system call, at most 32. Waits for at least one, and then takes what has arrived.
    [[nodiscard]] detail::datagram_recv_many_operation async_recv_many(
        std::span<incoming_datagram> into) noexcept {
        return {owned_.ref(), into, with_details_, recv_timeout_};
    }
    // Sends all of them, in as few system calls as it takes. The first error ends it; the result
    // has how many were sent before, and the error of the next one.
    [[nodiscard]] detail::datagram_send_many_operation async_send_many(
        std::span<const outgoing_datagram> from) noexcept {
        return {owned_.ref(), from, cuts_here_, send_timeout_};
    }

    result<void> send(std::span<const std::byte> from,
                      std::source_location caller = std::source_location::current()) {
        auto op = async_send(from);
        return detail::block_for(op, caller);
    }
    result<void> send_to(std::span<const std::byte> from, const endpoint& to,
                         std::source_location caller = std::source_location::current()) {
        auto op = async_send_to(from, to);
        return detail::block_for(op, caller);
    }
    result<recv_result> recv(std::span<std::byte> into,
                             std::source_location caller = std::source_location::current()) {
        auto op = async_recv(into);
        return detail::block_for(op, caller);
    }
    result<recv_from_result> recv_from(
        std::span<std::byte> into, std::source_location caller = std::source_location::current()) {
        auto op = async_recv_from(into);
        return detail::block_for(op, caller);
    }
    result<std::size_t> recv_many(std::span<incoming_datagram> into,
                                  std::source_location caller = std::source_location::current()) {
        auto op = async_recv_many(into);
        return detail::block_for(op, caller);
    }
    send_many_result send_many(std::span<const outgoing_datagram> from,
                               std::source_location caller = std::source_location::current()) {
        auto op = async_send_many(from);
        return detail::block_for(op, caller);
    }

    // Limits of each operation from now on.
    void set_recv_timeout(duration d) noexcept { recv_timeout_ = d; }
    void set_send_timeout(duration d) noexcept { send_timeout_ = d; }

    // Ends each waiting operation with errc::closed. Any thread.
    void close() noexcept { owned_.ref().close(); }

    endpoint local_endpoint() const noexcept { return detail::local_of(owned_.ref()); }
    endpoint remote_endpoint() const noexcept { return detail::peer_of(owned_.ref()); }
    int native_handle() const noexcept { return owned_.number(); }

protected:
    datagram_socket(detail::descriptor d, duration recv_timeout, duration send_timeout) noexcept
        : owned_(std::move(d)), recv_timeout_(recv_timeout), send_timeout_(send_timeout) {}

    const detail::descriptor_ref& ref() const noexcept { return owned_.ref(); }

    bool with_details_ = false;  // the system reports more than the bytes
    detail::io_request::kind sends_by_ = detail::io_request::send_message;
    bool cuts_here_ = false;  // the system cannot cut into segments

private:
    detail::descriptor owned_;
    duration recv_timeout_ = no_timeout;
    duration send_timeout_ = no_timeout;
};

}  // namespace weft
