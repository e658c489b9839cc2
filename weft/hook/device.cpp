#include "weft/hook/device.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "weft/hook/fd_table.hpp"
#include "weft/hook/readiness.hpp"

namespace weft::hook {
namespace {

constinit spin_lock locks[64];

}  // namespace

spin_lock& lock_of(int fd) noexcept { return locks[static_cast<unsigned>(fd) % 64]; }

bool is_ready(int fd, short events) noexcept {
    ::pollfd p = {fd, events, 0};
    return real::poll(&p, 1, 0) > 0;
}

int family_of(int fd) noexcept {
    int family = 0;
    ::socklen_t bytes = sizeof family;
    real::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes);
    return family;
}

bool keeps_error(int fd, bool reads) noexcept {
    if (!sort_of(fd).is_socket()) return false;
    const int before = errno;
    ::pollfd p = {fd, 0, 0};
    bool kept = real::poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
    if (kept && known_sort(fd).sort() == fd_sort::stream) {
        // What came before the error comes before it.
        int there = 0;
        if (reads && real::ioctl(fd, FIONREAD, &there) == 0 && there > 0) kept = false;
        // What the error queue of a connection holds (timestamps, ends of zero-copy) looks alike.
        ::tcp_info connection{};
        ::socklen_t bytes = sizeof connection;
        if (kept && real::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &connection, &bytes) == 0)
            kept = connection.tcpi_state == TCP_CLOSE;
        kept = kept && family_of(fd) != AF_UNIX;
    }
    errno = before;
    return kept;
}

void opened_by(const msghdr& m) noexcept {
    if (m.msg_control == nullptr || m.msg_controllen == 0) return;
    auto& given = const_cast<msghdr&>(m);
    for (cmsghdr* c = CMSG_FIRSTHDR(&given); c != nullptr; c = CMSG_NXTHDR(&given, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            opened(fd);
        }
    }
}

}  // namespace weft::hook
