// tcp_listener: where connections of TCP come in.
//
//   auto listener = weft::tcp_listener::bind("0.0.0.0:7000").value();
//   for (;;) {
//       auto s = listener.accept();
//       if (!s) break;                                  // closed, or stopped
//       weft::fiber([s = *std::move(s)]() mutable { serve(s); }).detach();
//   }
//
// Its one idea: an accept either gives a connection or the reason why this listener gives no more.
// What happens to one connection alone (the peer was gone before it was accepted) is passed over.
// When the process is out of descriptors, the waiting peers are refused cleanly, by a descriptor
// that is kept in reserve for this, and the listener tries again after a pause that grows from 5 ms
// to a second: it neither fails nor spins.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/io/tcp_stream.hpp"

namespace weft {

struct listen_options {
    int backlog = 4096;       // connections that wait to be accepted; the system has its own limit
    bool reuse_port = false;  // several listeners of one port share what comes
};

class tcp_listener {
    using place_t = std::source_location;

public:
    class accepting;

    tcp_listener() noexcept = default;  // none

    // "127.0.0.1:7000", "[::1]:0"; port zero: a free one, see local_endpoint(). Fails with what the
    // system says: address_in_use, permission_denied; invalid_argument.
    static result<tcp_listener> bind(std::string_view where, const listen_options& = {});
    static result<tcp_listener> bind(const endpoint& where, const listen_options& = {});

    // Any number of parties may accept at once. closed: it was closed.
    [[nodiscard]] accepting async_accept() noexcept;
    result<tcp_stream> accept(place_t place = place_t::current());

    void close() noexcept { owned_.ref().close(); }  // any thread

    endpoint local_endpoint() const noexcept;
    int native_handle() const noexcept { return owned_.number(); }
    // How many connections were refused because there were no descriptors.
    std::uint64_t refused_count() const noexcept;

private:
    descriptor owned_;
    std::shared_ptr<detail::accept_reserve> reserve_;
};

class tcp_listener::accepting final : public detail::io_operation {
public:
    accepting(const descriptor_ref& of, detail::accept_reserve* reserve) noexcept;

    bool ready() noexcept;
    result<tcp_stream> take(const waiter* w, wait_status how) noexcept;
};

}  // namespace weft
