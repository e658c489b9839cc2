// host_entry: what gethostbyname and its variants answer, copied into memory of the caller's.
#pragma once

#include <netdb.h>

#include <cstddef>

namespace weft::hook {

// Everything that `from` points to goes into `room`, and `into` points to it there. False: there is
// not room enough.
bool copy_host(const hostent& from, hostent& into, char* room, std::size_t bytes) noexcept;

// How many bytes are enough for that.
std::size_t host_bytes(const hostent& h) noexcept;

}  // namespace weft::hook
