#include "weft/io/socket.hpp"

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

std::error_code set_option(int number, int level, int name, int value) noexcept {
    if (::setsockopt(number, level, name, &value, sizeof value) == 0) return {};
    return {errno, std::system_category()};
}

std::error_code bind_socket(int number, const endpoint& to, int backlog) noexcept {
    if (::bind(number, to.data(), to.size()) != 0 ||
        (backlog >= 0 && ::listen(number, backlog) != 0))
        return {errno, std::system_category()};
    return {};
}

}  // namespace weft::detail
