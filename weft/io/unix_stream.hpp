// unix_stream, unix_listener: connections within the machine, by a path or an abstract name.
//
//   auto l = weft::unix_listener::bind(*weft::endpoint::local("/run/service")).value();
//   auto s = weft::unix_stream::connect(*weft::endpoint::local("/run/service"));
//   auto [a, b] = weft::unix_stream::pair().value();    // connected with each other
//
// A path stays when its listener has gone; bind() fails on one that is there (address_in_use).
#pragma once

#include <utility>

#include "weft/io/connect.hpp"
#include "weft/io/listener.hpp"

namespace weft {

class unix_stream : public stream {
    using place_t = std::source_location;

public:
    using connecting = detail::connecting<unix_stream>;

    unix_stream() noexcept = default;  // none

    [[nodiscard]] static connecting async_connect(const endpoint& to,
                                                  duration timeout = duration::max()) noexcept {
        return {to, timeout};
    }
    static result<unix_stream> connect(const endpoint& to, duration timeout = duration::max(),
                                       place_t place = place_t::current());
    static result<std::pair<unix_stream, unix_stream>> pair();

    // Of a number that is connected; it is the stream's from now on, also if this fails.
    static result<unix_stream> adopt(int number) noexcept;

private:
    friend connecting;
    static result<unix_stream> of(descriptor owned) noexcept;
    explicit unix_stream(std::shared_ptr<detail::stream_core> c) noexcept : stream(std::move(c)) {}
};

class unix_listener : public listener<unix_stream> {
public:
    unix_listener() noexcept = default;
    static result<unix_listener> bind(const endpoint& where, const listen_options& = {});

private:
    using listener::listener;
};

}  // namespace weft
