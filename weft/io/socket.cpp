#include "weft/io/detail/socket.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace weft::detail {

int nonblocking_flag() noexcept {
    const io_driver* const d = io_driver_here();
    const flow* const f = current_flow();
    const bool is_given = d != nullptr && d->completes() && (f == nullptr || !f->shares_stack());
    return is_given ? 0 : SOCK_NONBLOCK;
}

result<int> open_socket(int family, int type) noexcept {
    const int number = ::socket(family, type | SOCK_CLOEXEC | nonblocking_flag(), 0);
    if (number < 0) return failure(std::error_code(errno, std::system_category()));
    return number;
}

result<std::pair<int, int>> open_pair(int type) noexcept {
    int numbers[2];
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC | nonblocking_flag(), 0, numbers) != 0)
        return failure(std::error_code(errno, std::system_category()));
    return std::pair(numbers[0], numbers[1]);
}

std::error_code set_option(int number, int level, int name, int value) noexcept {
    if (::setsockopt(number, level, name, &value, sizeof value) == 0) return {};
    return {errno, std::system_category()};
}

result<void> set_option(const descriptor_ref& of, int level, int name, int value) noexcept {
    return done_or(of, [&](int number) noexcept {
        return ::setsockopt(number, level, name, &value, sizeof value);
    });
}

result<int> get_option(const descriptor_ref& of, int level, int name) noexcept {
    int value = 0;
    const result<void> r = done_or(of, [&](int number) noexcept {
        ::socklen_t size = sizeof value;
        return ::getsockopt(number, level, name, &value, &size);
    });
    if (!r) return failure(r.error());
    return value;
}

endpoint local_of(const descriptor_ref& of) noexcept {
    endpoint e;
    static_cast<void>(of.call([&](int number) noexcept {
        e = endpoint::of_socket(number);
        return 0;
    }));
    return e;
}

endpoint peer_of(const descriptor_ref& of) noexcept {
    endpoint e;
    static_cast<void>(of.call([&](int number) noexcept {
        e = endpoint::of_peer(number);
        return 0;
    }));
    return e;
}

std::error_code bind_socket(int number, const endpoint& to, int backlog) noexcept {
    if (::bind(number, to.data(), to.size()) != 0 ||
        (backlog >= 0 && ::listen(number, backlog) != 0))
        return {errno, std::system_category()};
    return {};
}

}  // namespace weft::detail
