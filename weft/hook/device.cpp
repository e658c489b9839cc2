#include "weft/hook/device.hpp"

#include <cerrno>
#include <cstring>

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
