// socket: opens, binds and connects the sockets of weft: the calls that do not wait, each with its
// error.
#pragma once

#include <cstdint>
#include <system_error>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/io/detail/io_operation.hpp"
#include "weft/io/endpoint.hpp"

namespace weft::detail {

// SOCK_NONBLOCK for a readiness driver, which tries each call; zero for a completion driver, which
// would otherwise get EAGAIN as the result of the call.
int nonblocking_flag() noexcept;

// Returns an fd that the caller owns. It is closed on exec.
result<int> open_socket(int family, int type) noexcept;
// Two local sockets that are connected with each other.
result<std::pair<int, int>> open_pair(int type) noexcept;
// The same as objects, by Socket::adopt().
template <class Socket>
result<std::pair<Socket, Socket>> adopt_pair(int type) noexcept {
    const result<std::pair<int, int>> numbers = open_pair(type);
    if (!numbers) return failure(numbers.error());
    auto a = Socket::adopt(numbers->first);
    auto b = Socket::adopt(numbers->second);
    if (!a || !b) return failure(a ? b.error() : a.error());
    return std::pair(*std::move(a), *std::move(b));
}
std::error_code set_option(int number, int level, int name, int value) noexcept;
// The same for a descriptor_ref; errc::closed after it was closed.
result<void> set_option(const descriptor_ref& of, int level, int name, int value) noexcept;
// The value of an option; not_supported and similar if the system does not know it.
result<int> get_option(const descriptor_ref& of, int level, int name) noexcept;
// Makes a call as descriptor_ref::call() does, whose value is not needed. errc::closed after it was
// closed.
template <class F>
result<void> done_or(const descriptor_ref& of, F&& f) noexcept {
    const std::int64_t n = of.call(std::forward<F>(f));
    if (n >= 0) return {};
    return failure(of.error_of(n));
}

// The address of a socket, and that of its peer; no family if there is none.
endpoint local_of(const descriptor_ref& of) noexcept;
endpoint peer_of(const descriptor_ref& of) noexcept;
// Binds, and listens if `backlog` is not negative.
std::error_code bind_socket(int number, const endpoint& to, int backlog) noexcept;

}  // namespace weft::detail
