#include "reactor.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace echo {

reactor::reactor(int listener_fd, int stop_fd, session_maker make)
    : listener_fd_(listener_fd),
      stop_fd_(stop_fd),
      epoll_fd_(::epoll_create1(EPOLL_CLOEXEC)),
      make_(std::move(make)) {
    control(EPOLL_CTL_ADD, listener_fd_, EPOLLIN);
    control(EPOLL_CTL_ADD, stop_fd_, EPOLLIN);
}

reactor::~reactor() { ::close(epoll_fd_); }

server_report reactor::run() {
    epoll_event events[128];
    for (bool stopping = false; !stopping;) {
        const int count = ::epoll_wait(epoll_fd_, events, 128, -1);
        for (int i = 0; i < count; ++i) {
            const int fd = events[i].data.fd;
            if (fd == stop_fd_) {
                stopping = true;
            } else if (fd == listener_fd_) {
                accept_all();
            } else {
                on_ready(fd);
            }
        }
    }
    for (std::size_t fd = 0; fd < sessions_.size(); ++fd) {
        if (sessions_[fd]) destroy(static_cast<int>(fd));
    }
    report_.buffers_constructed = buffer::constructed;
    report_.buffers_destroyed = buffer::destroyed;
    return report_;
}

void reactor::accept_all() {
    for (;;) {
        const int fd = ::accept4(listener_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == ECONNABORTED || errno == EINTR) continue;
            if (errno == EMFILE || errno == ENFILE) {  // listens again when a session ends
                listening_ = false;
                control(EPOLL_CTL_MOD, listener_fd_, 0);
            }
            return;
        }
        welcome(fd);
    }
}

void reactor::welcome(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int send_bytes = 32 * 1024;  // a client that does not read must not cost more than this
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);

    const auto slot = static_cast<std::size_t>(fd);
    if (slot >= sessions_.size()) {
        sessions_.resize(slot + 1);
        waits_to_send_.resize(slot + 1);
    }
    sessions_[slot] = make_(fd);
    ++report_.sessions;
    sessions_[slot]->resume();  // as far as its first receive
    control(EPOLL_CTL_ADD, fd, EPOLLIN);
    waits_to_send_[slot] = false;
}

void reactor::on_ready(int fd) {
    const auto slot = static_cast<std::size_t>(fd);
    session& s = *sessions_[slot];
    do s.ready();
    while (s.now() == session::state::sending);  // a send is attempted at once, or it is blocked

    if (s.now() == session::state::hung_up) return destroy(fd);
    const bool blocked = s.now() == session::state::blocked;
    if (blocked == waits_to_send_[slot]) return;
    waits_to_send_[slot] = blocked;
    report_.sends_waited += blocked ? 1 : 0;
    control(EPOLL_CTL_MOD, fd, blocked ? EPOLLOUT : EPOLLIN);
}

void reactor::destroy(int fd) {
    auto& s = sessions_[static_cast<std::size_t>(fd)];
    report_.killed_suspended += s->suspended() ? 1 : 0;
    s.reset();  // closes the socket, which takes it out of the epoll set
    if (!listening_) {
        listening_ = true;
        control(EPOLL_CTL_MOD, listener_fd_, EPOLLIN);
    }
}

void reactor::control(int operation, int fd, std::uint32_t events) {
    epoll_event e{};
    e.events = events;
    e.data.fd = fd;
    if (::epoll_ctl(epoll_fd_, operation, fd, &e) < 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
}

}  // namespace echo
