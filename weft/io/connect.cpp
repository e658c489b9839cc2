#include "weft/io/connect.hpp"

#include <sys/socket.h>

#include "weft/io/socket.hpp"

namespace weft::detail {

connect_operation::connect_operation(const endpoint& to, duration timeout) noexcept
    : io_operation({}, 1, timeout, "a connection"), to_(to) {
    request_.what = io_request::connect;
    request_.reads = false;
}

connect_operation::connect_operation(connect_operation&& other) noexcept
    : io_operation(std::move(other)), to_(other.to_) {}

bool connect_operation::ready() noexcept {
    const result<int> number = open_socket(to_.family(), SOCK_STREAM);
    if (!number) {
        refused_ = number.error();
        return true;
    }
    result<descriptor> owned = own_stream(*number);
    if (!owned) {
        refused_ = owned.error();
        return true;
    }
    socket_ = *std::move(owned);
    request_.of = socket_.ref();
    request_.data = to_.data();
    request_.bytes = to_.size();
    return io_operation::ready();
}

result<descriptor> connect_operation::socket(const waiter* w, wait_status how) noexcept {
    if (refused_) return failure(refused_);
    const transferred t = outcome(w, how);
    if (t.error) return failure(t.error);
    return std::move(socket_);
}

}  // namespace weft::detail
