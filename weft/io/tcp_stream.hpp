// tcp_stream: a TCP connection.
//
// Design: a stream (stream.hpp) with ways to connect: to an endpoint, or to the first endpoint of a
// name that answers.
//
// Limits: small writes are sent at once (TCP_NODELAY); with set_no_delay(false) the system gathers
// them. The first operation after connect_fast() is a write, whose result says whether there is a
// peer.
//
//   auto s = weft::tcp_stream::connect(*weft::endpoint::parse("127.0.0.1:7000"));
//   if (!s) return s.error();                           // connection_refused, timed_out, ...
//   if (auto sent = s->write_all(weft::bytes_of("hello\n")); !sent) return sent.error();
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weft/io/detail/connect_by_name.hpp"
#include "weft/io/stream_halves.hpp"

namespace weft {

template <class Stream>
class listener;

class tcp_stream : public stream {
public:
    using connect_operation = detail::stream_connect_operation<tcp_stream>;

    tcp_stream() noexcept = default;  // none

    // To a peer, from any port. `limit` is at most what the system allows (about two minutes).
    [[nodiscard]] static connect_operation async_connect(const endpoint& to,
                                                         time_limit limit = {}) noexcept {
        return {to, limit};
    }
    static result<tcp_stream> connect(
        const endpoint& to, time_limit limit = {},
        std::source_location caller = std::source_location::current());

    // The first bytes go with the first packet, if the peer has given a cookie before (TCP Fast
    // Open); otherwise as connect(). This may then be done before anything was sent, so the first
    // operation must be a write; its result shows whether there is a peer.
    [[nodiscard]] static connect_operation async_connect_fast(const endpoint& to,
                                                              time_limit limit = {}) noexcept {
        return {to, limit, true};
    }
    static result<tcp_stream> connect_fast(
        const endpoint& to, time_limit limit = {},
        std::source_location caller = std::source_location::current());

    // By name: "example.org:80", "[::1]:80", to the first of its endpoints that answers. They are
    // tried in the resolver's order, alternating between the families; the next one when the latest
    // has failed, or in parallel when it has not answered for `attempt_delay` (RFC 8305; at least
    // 10 ms). `limit` is for all together, with the look-up. Errors: invalid_argument, those of
    // resolver_category(), or if no endpoint answers the error of the last to fail; timed_out;
    // operation_canceled.
    static constexpr duration default_attempt_delay = std::chrono::milliseconds(250);
    [[nodiscard]] static detail::connect_by_name_operation<tcp_stream> async_connect(
        std::string_view where, time_limit limit = {},
        duration attempt_delay = default_attempt_delay) {
        return {where, limit, attempt_delay};
    }
    static result<tcp_stream> connect(
        std::string_view where, time_limit limit = {},
        duration attempt_delay = default_attempt_delay,
        std::source_location caller = std::source_location::current());

    // Takes ownership of an fd that is connected, also on failure.
    static result<tcp_stream> adopt(int number) noexcept;

    result<void> set_no_delay(bool on) noexcept;
    // Probes the peer after this many seconds of silence, and as often; zero: no probes.
    result<void> set_keep_alive(std::chrono::seconds every) noexcept;
    // How long what was written may wait for the peer's acknowledgement before the connection ends
    // with timed_out; zero: as long as the system tries, about a quarter of an hour.
    result<void> set_user_timeout(std::chrono::milliseconds most) noexcept;

private:
    friend connect_operation;
    friend detail::connect_by_name_operation<tcp_stream>;
    friend class listener<tcp_stream>;
    static result<tcp_stream> accepted(int number) noexcept;
    static result<tcp_stream> own(int number, std::uint64_t kind) noexcept;
    static result<tcp_stream> of(detail::descriptor owned) noexcept;
    explicit tcp_stream(std::shared_ptr<detail::stream_core> c) noexcept : stream(std::move(c)) {}
};

}  // namespace weft
