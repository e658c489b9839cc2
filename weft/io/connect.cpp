#include "weft/io/detail/connect.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "weft/io/detail/socket.hpp"

namespace weft::detail {

connect_operation::connect_operation(const endpoint& to, time_limit limit, bool fast,
                                     int type) noexcept
    : io_operation({}, 1, no_timeout, "a connection"), to_(to), fast_(fast), type_(type) {
    request_.what = io_request::connect;
    request_.reads = false;
    set_limit(limit);
}

connect_operation::connect_operation(connect_operation&& other) noexcept
    : io_operation(std::move(other)), to_(other.to_), fast_(other.fast_), type_(other.type_) {}

bool connect_operation::ready() noexcept {
    const result<int> number = open_socket(to_.family(), type_);
    if (!number) {
        refused_ = number.error();
        return true;
    }
    result<descriptor> owned = own_stream(*number, to_.is_ip() ? io_entry::short_is_all : 0);
    if (!owned) {
        refused_ = owned.error();
        return true;
    }
    socket_ = *std::move(owned);
    // A hint: without it the first bytes are sent later.
    if (fast_) static_cast<void>(set_option(socket_.ref(), IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1));
    request_.of = socket_.ref();
    request_.data = to_.data();
    request_.bytes = to_.size();
    return io_operation::ready();
}

result<descriptor> connect_operation::socket(const waiter* w, wait_status how) noexcept {
    if (refused_) return failure(refused_);
    const transfer_result t = outcome(w, how);
    if (!t) {
        socket_.close();  // now, also if the operation object stays
        return failure(t.error());
    }
    return std::move(socket_);
}

}  // namespace weft::detail
