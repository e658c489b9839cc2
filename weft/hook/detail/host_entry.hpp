// host_entry: the answer of gethostbyname and its variants, copied into memory of the caller's.
#pragma once

#include <netdb.h>

#include <cstddef>

namespace weft::hook {

// Everything that `from` points to is copied into `room`, and `into` points to it there. False:
// `room` is too small.
bool copy_host(const hostent& from, hostent& into, char* room, std::size_t bytes) noexcept;

// The count of bytes that is enough for that.
std::size_t host_bytes(const hostent& h) noexcept;

}  // namespace weft::hook
