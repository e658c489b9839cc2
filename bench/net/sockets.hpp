// sockets: what the load and every peer do alike before the first byte.
//
// A peer is `<name> PORT`: it listens on 127.0.0.1, says "ready", echoes whatever comes through a
// buffer of 512 bytes a connection, in one thread, and lives until SIGTERM, whose default action is
// its end. What goes wrong before that is one line and exit status 2.
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

// The port that a peer was given as its only argument.
std::uint16_t port_argument(int argc, char** argv);

// A non-blocking listener on 127.0.0.1, with SO_REUSEADDR and the longest backlog.
int listen_on(std::uint16_t port);

void say_ready();

}  // namespace bench::net
