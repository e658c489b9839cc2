// tcp_stream: a connection of TCP.
//
//   auto s = weft::tcp_stream::connect(*weft::endpoint::parse("127.0.0.1:7000"));
//   if (!s) return s.error();                           // connection_refused, timed_out, ...
//   s->write_all(weft::bytes_of("hello\n"));
//
// Small writes are sent at once (TCP_NODELAY); set_no_delay(false) has the system gather them.
#pragma once

#include "weft/io/stream.hpp"

namespace weft {

class tcp_stream : public stream {
    using place_t = std::source_location;

public:
    class connecting;

    tcp_stream() noexcept = default;

    // To a peer, from any port. `timeout` is at most what the system allows (about two minutes).
    [[nodiscard]] static connecting async_connect(const endpoint& to,
                                                  duration timeout = duration::max()) noexcept;
    static result<tcp_stream> connect(const endpoint& to, duration timeout = duration::max(),
                                      place_t place = place_t::current());

    // Of a number that is connected; it is the stream's from now on, also if this fails.
    static result<tcp_stream> adopt(int number) noexcept;

    result<void> set_no_delay(bool on) noexcept;
    // Probes of the peer after so many seconds of silence, and as often; zero: none.
    result<void> set_keep_alive(std::chrono::seconds every) noexcept;

private:
    friend class tcp_listener;
    static result<tcp_stream> of(descriptor owned) noexcept;
    explicit tcp_stream(std::shared_ptr<detail::stream_core> c) noexcept : stream(std::move(c)) {}
};

class tcp_stream::connecting final : public detail::io_operation {
public:
    connecting(const endpoint& to, duration timeout) noexcept;
    connecting(connecting&& other) noexcept;

    bool ready() noexcept;
    result<tcp_stream> take(const waiter* w, wait_status how) noexcept;

private:
    descriptor socket_;
    endpoint to_;
    std::error_code refused_;
};

}  // namespace weft
