// socket: what the sockets of weft are opened, bound and connected by: the calls that do not wait,
// each with its error.
#pragma once

#include <cstdint>
#include <system_error>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/io/io_operation.hpp"

namespace weft::detail {

// Whether what is opened here must not block by itself: so for a driver of readiness, which tries
// each call; not so for one that completes, which would be told that the call cannot be made.
int nonblocking_flag() noexcept;

// A number that the caller owns. It is closed on exec.
result<int> open_socket(int family, int type) noexcept;
// Two local sockets that are connected with each other.
result<std::pair<int, int>> open_pair(int type) noexcept;
// The same as what they become by Socket::adopt().
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
// The same of an opening; bad_file_descriptor after it was closed.
result<void> set_option(const descriptor_ref& of, int level, int name, int value) noexcept;
// What the system says of it; not_supported and the like where it does not know it.
result<int> get_option(const descriptor_ref& of, int level, int name) noexcept;
// What descriptor_ref::call() gave of a call that gives nothing.
inline result<void> done_or(std::int64_t n) noexcept {
    if (n >= 0) return {};
    return failure(std::error_code(static_cast<int>(-n), std::system_category()));
}

// Where an opening is, and where its peer; of no family if there is none.
endpoint local_of(const descriptor_ref& of) noexcept;
endpoint peer_of(const descriptor_ref& of) noexcept;
// bind, and listen if `backlog` is not negative.
std::error_code bind_socket(int number, const endpoint& to, int backlog) noexcept;

}  // namespace weft::detail
