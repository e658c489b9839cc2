// net_bare_epoll PORT: an echo server that is nothing but its system calls, the reference for a
// library over epoll.
//
// A connection is registered once, for edges of both directions. A read that does not fill the
// buffer has drained the socket, so no read is made only to get EAGAIN; later bytes are a new edge.
// A read follows a short read only when an edge reports the end of the stream, which that read then
// finds. A request costs one recv and one send, and its share of an epoll_wait.

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "bench/net/sockets.hpp"

namespace {

using namespace bench::net;

// Invariants:
// I1  [begin, end) of buffer is what was received and not yet sent.
// I2  While that is not empty the socket refused more, and nothing is received.
struct connection {
    explicit connection(int socket) noexcept : fd(socket) {}

    int fd;
    std::size_t begin = 0;
    std::size_t end = 0;
    char buffer[buffer_bytes];
};

constexpr std::uint32_t last_words = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

enum class progress { all, some, lost };

progress send_rest(connection& c) {
    while (c.begin < c.end) {
        const ssize_t n = send(c.fd, c.buffer + c.begin, c.end - c.begin, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN ? progress::some : progress::lost;  // I2
        c.begin += static_cast<std::size_t>(n);
    }
    c.begin = c.end = 0;
    return progress::all;
}

// Echoes until the socket is drained or full; false: the connection is over.
bool echo(connection& c, bool ends) {
    for (;;) {
        const progress sent = send_rest(c);
        if (sent != progress::all) return sent == progress::some;
        const ssize_t n = recv(c.fd, c.buffer, sizeof c.buffer, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN;
        if (n == 0) return false;
        c.end = static_cast<std::size_t>(n);  // I1
        if (c.end < sizeof c.buffer && !ends) return send_rest(c) != progress::lost;
    }
}

void accept_all(int epoll_fd, int listener) {
    for (;;) {
        const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
        if (fd < 0 && errno == EAGAIN) return;
        if (fd < 0) die("accept");
        set_no_delay(fd);
        epoll_event e{};
        e.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        e.data.ptr = new connection(fd);
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) != 0) die("epoll_ctl");
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint16_t port = port_argument(argc, argv);
    raise_file_limit();
    const int listener = listen_on(port);
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) die("epoll_create1");
    epoll_event of_listener{};
    of_listener.events = EPOLLIN | EPOLLET;  // its data.ptr is null
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &of_listener) != 0) die("epoll_ctl");
    say_ready();
    for (;;) {
        epoll_event events[256];
        const int count = epoll_wait(epoll_fd, events, 256, -1);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; ++i) {
            auto* const c = static_cast<connection*>(events[i].data.ptr);
            if (c == nullptr) {
                accept_all(epoll_fd, listener);
            } else if (!echo(*c, (events[i].events & last_words) != 0)) {
                close(c->fd);
                delete c;
            }
        }
    }
}
