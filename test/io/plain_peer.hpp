// plain_peer: the far end of a connection, made of plain system calls.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/io/channels.hpp"

namespace weft::testing {

inline void send_plainly(int to, std::string_view text, int flags = 0) {
    EXPECT_EQ(::send(to, text.data(), text.size(), flags | MSG_NOSIGNAL),
              static_cast<::ssize_t>(text.size()));
}
inline std::string read_plainly(int from, std::size_t bytes) {
    std::string s(bytes, 0);
    const ::ssize_t n = ::recv(from, s.data(), bytes, MSG_WAITALL);
    s.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return s;
}
inline void reset(plain_fd& far) {
    const ::linger at_once{1, 0};
    ::setsockopt(far, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    far.close();
}
inline std::pair<unix_stream, plain_fd> half_of_unix() {
    int n[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, n), 0);
    return {unix_stream::adopt(n[0]).value(), plain_fd(n[1])};
}
inline plain_fd dialled(const endpoint& to, int flags = 0, int type = SOCK_STREAM) {
    plain_fd c(::socket(to.family(), type | SOCK_CLOEXEC | flags, 0));
    EXPECT_EQ(::connect(c, to.data(), to.size()), 0) << std::strerror(errno);
    return c;
}
// So many that the next one has to wait, as in connect(2).
inline std::vector<plain_fd> dial_until_full(const endpoint& to, int type = SOCK_STREAM) {
    std::vector<plain_fd> all;
    for (;;) {
        plain_fd c(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (::connect(c, to.data(), to.size()) != 0) break;
        all.push_back(std::move(c));
    }
    EXPECT_EQ(errno, EAGAIN);
    return all;
}
// Until something comes, or the end: for two seconds at most.
inline bool is_told(int number, short events = POLLIN) {
    pollfd p{number, events, 0};
    return ::poll(&p, 1, 2000) == 1;
}
inline endpoint local_name() {
    static int count = 0;
    return endpoint::local("@weft.law." + std::to_string(::getpid()) + "." +
                           std::to_string(++count))
        .value();
}

// Until what was sent has come: a busy machine delivers it a little later.
inline void until_readable(int fd) {
    ::pollfd p{fd, POLLIN, 0};
    ASSERT_EQ(::poll(&p, 1, 5000), 1);
}

}  // namespace weft::testing
