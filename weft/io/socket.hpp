// socket: what the sockets of weft are opened, bound and connected by: the calls that do not wait,
// each with its error.
#pragma once

#include "weft/base/result.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/io/io_operation.hpp"

namespace weft::detail {

// Whether what is opened here must not block by itself: so for a driver of readiness, which tries
// each call; not so for one that completes, which would be told that the call cannot be made.
int nonblocking_flag() noexcept;

// A number that the caller owns. It is closed on exec.
result<int> open_socket(int family, int type) noexcept;
std::error_code set_option(int number, int level, int name, int value) noexcept;
// bind, and listen if `backlog` is not negative.
std::error_code bind_socket(int number, const endpoint& to, int backlog) noexcept;

}  // namespace weft::detail
