#include "weft/io/listener.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "weft/io/detail/socket.hpp"

namespace weft::detail {

namespace {

// Takes ownership of the fd, also on failure. The fd is nonblocking with every driver, because
// reserve_fd::refuse() must not wait.
result<listening> own(int number, const listen_options& o) {
    std::error_code error;
    const descriptor_ref ref = descriptor_ref::adopt(number, 0, error);
    if (!ref) {
        if (number >= 0) ::close(number);
        return failure(error);
    }
    listening l;
    l.owned = descriptor(ref);
    l.reserve = std::make_shared<reserve_fd>(o.multishot ? std::make_shared<prefetched_accepts>(ref)
                                                         : nullptr);
    return l;
}

std::error_code set_options(int number, const endpoint& where, const listen_options& o) noexcept {
    std::error_code error;
    const auto set = [&](int level, int name, int value) {
        if (!error) error = set_option(number, level, name, value);
    };
    if (where.is_ip()) set(SOL_SOCKET, SO_REUSEADDR, 1);
    if (o.reuse_port) set(SOL_SOCKET, SO_REUSEPORT, 1);
    if (o.only_v6 && where.family() == AF_INET6) set(IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (o.fast_open > 0) set(IPPROTO_TCP, TCP_FASTOPEN, o.fast_open);
    if (o.defer_accept_timeout > std::chrono::seconds::zero())
        set(IPPROTO_TCP, TCP_DEFER_ACCEPT,
            static_cast<int>(std::min<std::int64_t>(o.defer_accept_timeout.count(), 65535)));
    return error;
}

}  // namespace

result<listening> listen_at(const endpoint& where, int type, const listen_options& o) {
    const int number = ::socket(where.family(), type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (number < 0) return failure(std::error_code(errno, std::system_category()));
    result<listening> l = own(number, o);
    if (!l) return l;
    std::error_code error = set_options(number, where, o);
    if (!error) error = bind_socket(number, where, o.backlog);
    if (error) return failure(error);
    return l;
}

result<listening> listen_by(int number, bool is_local, int type, const listen_options& o) {
    result<listening> l = own(number, o);
    if (!l) return l;
    const descriptor_ref& ref = l->owned.ref();
    const int domain = get_option(ref, SOL_SOCKET, SO_DOMAIN).value_or(AF_UNSPEC);
    const bool fits = is_local ? domain == AF_UNIX : domain == AF_INET || domain == AF_INET6;
    // The rule for short reads is known of TCP alone (io_entry.hpp), not of MPTCP.
    if (!is_local && get_option(ref, SOL_SOCKET, SO_PROTOCOL).value_or(0) != IPPROTO_TCP)
        return failure(std::errc::invalid_argument);
    if (!fits || get_option(ref, SOL_SOCKET, SO_TYPE).value_or(0) != type ||
        get_option(ref, SOL_SOCKET, SO_ACCEPTCONN).value_or(0) == 0)
        return failure(std::errc::invalid_argument);
    const result<void> set = done_or(ref, [](int n) noexcept {
        const int flags = ::fcntl(n, F_GETFL);
        return flags < 0 || ::fcntl(n, F_SETFD, FD_CLOEXEC) != 0
                   ? -1
                   : ::fcntl(n, F_SETFL, flags | O_NONBLOCK);
    });
    if (!set) return failure(set.error());
    return l;
}

accept_fd_operation::accept_fd_operation(const descriptor_ref& of, reserve_fd* reserve) noexcept
    : io_operation({}, 1, no_timeout, "a connection to accept") {
    request_.what = io_request::accept;
    request_.of = of;
    reserve_ = reserve;
    request_.ahead = reserve != nullptr ? reserve->ahead() : nullptr;
}

bool accept_fd_operation::ready() noexcept {
    request_.flags = SOCK_CLOEXEC | nonblocking_flag();
    if (request_.ahead != nullptr)
        if (const int n = request_.ahead->take(); n >= 0) return progress(n);
    return io_operation::ready();
}

accept_fd_operation::~accept_fd_operation() {
    if (const int n = taken_ ? -1 : untaken_number(); n >= 0) ::close(n);
}

result<int> accept_fd_operation::number(const waiter* w, wait_status how) noexcept {
    const transfer_result t = outcome(w, how);
    if (!t) return failure(t.error());
    taken_ = true;
    return static_cast<int>(t.bytes());
}

}  // namespace weft::detail
