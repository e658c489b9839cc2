// unix_stream, unix_listener: connections within the machine, by a path or an abstract name.
//
// Design: a stream (stream.hpp) and a listener (listener.hpp) of local sockets, with which
// descriptors can be passed too.
//
// Limits: a path remains when its listener is gone; bind() fails on a path that exists
// (address_in_use).
//
//   auto l = weft::unix_listener::bind(*weft::endpoint::local("/run/service")).value();
//   auto s = weft::unix_stream::connect(*weft::endpoint::local("/run/service"));
//   auto [a, b] = weft::unix_stream::pair().value();    // connected with each other
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "weft/io/detail/connect.hpp"
#include "weft/io/listener.hpp"
#include "weft/io/passed_numbers.hpp"
#include "weft/io/peer_credentials.hpp"
#include "weft/io/stream_halves.hpp"

namespace weft {

class unix_stream : public stream {
public:
    using connect_operation = detail::stream_connect_operation<unix_stream>;

    unix_stream() noexcept = default;  // none

    [[nodiscard]] static connect_operation async_connect(const endpoint& to,
                                                         time_limit limit = {}) noexcept {
        return {to, limit};
    }
    static result<unix_stream> connect(
        const endpoint& to, time_limit limit = {},
        std::source_location caller = std::source_location::current());
    static result<std::pair<unix_stream, unix_stream>> pair();

    // Takes ownership of an fd that is connected, also on failure.
    static result<unix_stream> adopt(int number) noexcept;

    // Transfers bytes with descriptors (passed_numbers.hpp), which go with the first byte and must
    // stay open until then; a send sends all of the bytes. They count as the one write or read at a
    // time. Zero bytes received: the peer has ended. bad_file_descriptor: an fd is not open, or
    // this stream is empty; invalid_argument: there is no byte, or no room for one, or there are
    // too many fds.
    [[nodiscard]] detail::stream_send_numbers_operation async_send_numbers(
        std::span<const std::byte> from, std::span<const int> numbers) noexcept {
        return {core(), from, numbers};
    }
    [[nodiscard]] detail::stream_recv_numbers_operation async_recv_numbers(
        std::span<std::byte> into, std::span<owned_number> room) noexcept {
        return {core(), into, room};
    }
    transfer_result send_numbers(std::span<const std::byte> from, std::span<const int> numbers,
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

    result<peer_credentials> credentials() const noexcept { return detail::credentials_of(ref()); }

private:
    friend connect_operation;
    friend class listener<unix_stream>;
    static result<unix_stream> accepted(int number) noexcept { return adopt(number); }
    static result<unix_stream> of(detail::descriptor owned) noexcept;
    explicit unix_stream(std::shared_ptr<detail::stream_core> c) noexcept : stream(std::move(c)) {}
};

class unix_listener : public listener<unix_stream> {
public:
    unix_listener() noexcept = default;
    static result<unix_listener> bind(const endpoint& where, const listen_options& = {});
    // As tcp_listener::adopt().
    static result<unix_listener> adopt(int number, const listen_options& = {});

private:
    static result<unix_listener> of(result<detail::listening>);
    using listener::listener;
};

}  // namespace weft
