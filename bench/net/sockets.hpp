// sockets: the steps before the first byte that the load and all peers have in common.
//
// A peer is `<name> PORT`: it listens on 127.0.0.1, prints "ready", echoes all bytes through a
// buffer of 512 bytes a connection, in one thread, and runs until SIGTERM ends it by the default
// action. An error before that is one line and exit status 2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench::net {

inline constexpr std::size_t buffer_bytes = 512;

// Prints `<program>: <what>: <the error in errno>` and exits.
[[noreturn]] void die(const char* what);

// The soft limit of open files becomes the hard one.
void raise_file_limit();

void set_no_delay(int fd);

// The port, from the only argument of a peer.
std::uint16_t port_argument(int argc, char** argv);

// A non-blocking listener on 127.0.0.1, with SO_REUSEADDR and the longest backlog.
int listen_on(std::uint16_t port);

void say_ready();

}  // namespace bench::net
