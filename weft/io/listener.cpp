#include "weft/io/listener.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "weft/io/socket.hpp"

namespace weft::detail {

result<listening> listen_at(const endpoint& where, const listen_options& o) {
    // It does not block, whatever the driver: who refuses must not.
    const int number = ::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (number < 0) return failure(std::error_code(errno, std::system_category()));
    std::error_code error;
    const descriptor_ref ref = descriptor_ref::adopt(number, 0, error);
    if (!ref) {
        ::close(number);
        return failure(error);
    }
    listening l;
    l.owned = descriptor(ref);
    if (where.is_ip()) error = set_option(number, SOL_SOCKET, SO_REUSEADDR, 1);
    if (!error && o.reuse_port) error = set_option(number, SOL_SOCKET, SO_REUSEPORT, 1);
    if (!error) error = bind_socket(number, where, o.backlog);
    if (error) return failure(error);
    l.reserve = std::make_shared<accept_reserve>(o.multishot ? std::make_shared<accept_ahead>(ref)
                                                             : nullptr);
    return l;
}

accept_operation::accept_operation(const descriptor_ref& of, accept_reserve* reserve) noexcept
    : io_operation({}, 1, duration::max(), "a connection to accept") {
    request_.what = io_request::accept;
    request_.of = of;
    reserve_ = reserve;
    request_.ahead = reserve != nullptr ? reserve->ahead() : nullptr;
}

bool accept_operation::ready() noexcept {
    request_.flags = SOCK_CLOEXEC | nonblocking_flag();
    if (request_.ahead != nullptr)
        if (const int n = request_.ahead->take(); n >= 0) return progress(n);
    return io_operation::ready();
}

result<int> accept_operation::number(const waiter* w, wait_status how) const noexcept {
    const transferred t = outcome(w, how);
    if (t.error) return failure(t.error);
    return static_cast<int>(t.bytes);
}

}  // namespace weft::detail
