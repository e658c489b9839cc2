// tcp_stream: a connection of TCP.
//
//   auto s = weft::tcp_stream::connect(*weft::endpoint::parse("127.0.0.1:7000"));
//   if (!s) return s.error();                           // connection_refused, timed_out, ...
//   if (auto sent = s->write_all(weft::bytes_of("hello\n")); !sent) return sent.error;
//
// Small writes are sent at once (TCP_NODELAY); set_no_delay(false) has the system gather them.
#pragma once

#include <chrono>

#include "weft/io/connect_by_name.hpp"

namespace weft {

class tcp_stream : public stream {
    using place_t = std::source_location;

public:
    using connecting = detail::connecting<tcp_stream>;

    tcp_stream() noexcept = default;  // none

    // To a peer, from any port. `timeout` is at most what the system allows (about two minutes).
    [[nodiscard]] static connecting async_connect(const endpoint& to,
                                                  duration timeout = duration::max()) noexcept {
        return {to, timeout};
    }
    static result<tcp_stream> connect(const endpoint& to, duration timeout = duration::max(),
                                      place_t place = place_t::current());

    // By name: "example.org:80", "[::1]:80", one endpoint after the other until one answers.
    // `timeout` is of all together.
    [[nodiscard]] static detail::connecting_by_name<tcp_stream> async_connect(
        std::string_view where, duration timeout = duration::max()) {
        return {where, timeout};
    }
    static result<tcp_stream> connect(std::string_view where, duration timeout = duration::max(),
                                      place_t place = place_t::current());

    // Of a number that is connected; it is the stream's from now on, also if this fails.
    static result<tcp_stream> adopt(int number) noexcept;

    result<void> set_no_delay(bool on) noexcept;
    // Probes of the peer after so many seconds of silence, and as often; zero: none.
    result<void> set_keep_alive(std::chrono::seconds every) noexcept;

private:
    friend connecting;
    static result<tcp_stream> of(descriptor owned) noexcept;
    explicit tcp_stream(std::shared_ptr<detail::stream_core> c) noexcept : stream(std::move(c)) {}
};

}  // namespace weft
