// server: a listener on 127.0.0.1, and its service: a loop, a fiber that accepts, and a session for
// each client in a nursery.
//
//   auto listener = echo::listen(0);
//   server_report report = serve(style, listener, stop_fd);  // until stop_fd is readable
#pragma once

#include <cstdint>

#include "report.hpp"
#include "styles.hpp"
#include "weft/io/tcp_listener.hpp"

namespace echo {

weft::tcp_listener listen(std::uint16_t port);  // 0: any free port; throws bad_input

// The sessions that are left at the end are destroyed while they are suspended.
server_report serve(const style& s, weft::tcp_listener& listener, int stop_fd);

}  // namespace echo
