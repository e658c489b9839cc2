#include "connection.hpp"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace echo {

namespace {

void set_option(int fd, int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
}

constexpr std::size_t slow_bytes_max = 256 * 1024;

std::size_t draw_length(dice& d, bool slow) {
    if (slow) return 1 + d.below(slow_bytes_max);
    return 1 + d.below(d.one_in(16) ? 20'000 : 4096);  // one in twenty needs several buffers
}

}  // namespace

connection::~connection() {
    if (fd_ >= 0) ::close(fd_);
}

void connection::open() {
    how_ = load_.ending ? ending::by_server : static_cast<ending>(dice_.below(3));
    reset_ = dice_.one_in(3);
    slow_ = dice_.one_in(16);
    left_bytes_ = dice_.one_in(32) ? 0 : dice_.below(512 * 1024);
    const std::uint64_t seed = dice_.next();
    out_ = in_ = byte_stream(seed);
    to_send_ = to_recv_ = 0;
    finished_ = false;
    resting_ = false;
    watched_ = not_watched;

    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return rest();
    set_option(fd_, IPPROTO_TCP, TCP_NODELAY, 1);
    if (slow_) set_option(fd_, SOL_SOCKET, SO_RCVBUF, 4096);  // before connect: it sets the window
    const auto* address = reinterpret_cast<const sockaddr*>(&load_.server);
    if (::connect(fd_, address, sizeof load_.server) < 0 && errno != EINPROGRESS) {
        if (errno != EADDRNOTAVAIL) ++load_.report.broken;  // else: local ports are short, wait
        ::close(fd_);
        fd_ = -1;
        return rest();
    }
    ++load_.report.connections;
    start_message();
}

void connection::on_event(std::uint32_t events) {
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) recv_some();
    if (is_open() && to_send_ > 0 && (events & EPOLLOUT)) send_some();
}

void connection::wake() {
    resting_ = false;
    if (is_open()) return watch();
    if (!load_.ending) open();
}

void connection::end(farewell f) {
    if (f != farewell::polite) {
        if (is_open()) hang_up();
        if (f == farewell::by_server) open();
        return;
    }
    how_ = ending::polite;
    left_bytes_ = 0;
}

void connection::start_message() {
    to_send_ = to_recv_ = draw_length(dice_, slow_);
    started_ = steady::now();
    send_some();
    if (is_open() && slow_) rest();
}

// I1: nothing beyond the scripted end is sent or received, so a seed determines the whole life.
void connection::send_some() {
    std::size_t count = std::min(to_send_, chunk_bytes);
    if (how_ == ending::in_send) count = std::min<std::uint64_t>(count, left_bytes_);
    if (count > 0) {
        out_.peek(load_.sent.data(), count);
        const ssize_t n = ::send(fd_, load_.sent.data(), count, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return ended_by_server();
        const std::size_t sent = n < 0 ? 0 : static_cast<std::size_t>(n);
        out_.skip(sent);
        to_send_ -= sent;
        if (how_ == ending::in_send) left_bytes_ -= sent;
    }
    if (how_ == ending::in_send && left_bytes_ == 0) return hang_up();
    watch();
}

void connection::recv_some() {
    std::size_t count = chunk_bytes;
    if (how_ == ending::in_recv) count = std::min<std::uint64_t>(count, left_bytes_);
    if (count > 0) {
        const ssize_t n = ::recv(fd_, load_.received.data(), count, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n == 0 && finished_) return hang_up();
        if (n <= 0) return ended_by_server();
        verify(static_cast<std::size_t>(n));
    }
    if (how_ == ending::in_recv && left_bytes_ == 0) return hang_up();
    if (to_recv_ == 0 && to_send_ == 0 && !finished_) message_is_back();
}

void connection::verify(std::size_t count) {
    const std::size_t known = std::min(count, to_recv_);
    in_.peek(load_.expected.data(), known);
    in_.skip(known);
    to_recv_ -= known;
    load_.report.bytes_verified += known;
    load_.report.mismatches += count - known;  // more than was sent
    if (std::memcmp(load_.received.data(), load_.expected.data(), known) != 0) {
        for (std::size_t i = 0; i < known; ++i) {
            load_.report.mismatches += load_.received[i] != load_.expected[i] ? 1 : 0;
        }
    }
    if (how_ != ending::in_send) left_bytes_ -= std::min<std::uint64_t>(left_bytes_, count);
}

void connection::message_is_back() {
    if (!load_.ending && started_ >= load_.measured_from) {
        ++load_.report.round_trips;
        const auto took = std::chrono::nanoseconds(steady::now() - started_).count();
        if (!slow_) load_.round_trip_ns.add(static_cast<std::uint64_t>(took));
    }
    answered_ = how_ == ending::by_server;
    if (how_ != ending::polite || left_bytes_ > 0) return start_message();
    finished_ = true;
    ::shutdown(fd_, SHUT_WR);
}

void connection::watch() {
    const std::uint32_t wanted = (resting_ ? 0u : EPOLLIN) | (to_send_ > 0 ? EPOLLOUT : 0u);
    if (wanted == watched_) return;
    epoll_event e{};
    e.events = wanted;
    e.data.ptr = this;
    ::epoll_ctl(load_.epoll_fd, watched_ == not_watched ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd_, &e);
    watched_ = wanted;
}

void connection::rest() {
    if (!resting_) load_.resting.push_back(this);
    resting_ = true;
    if (is_open()) watch();
}

void connection::hang_up() {
    load_.report.hung_up_mid_echo += to_recv_ > 0 ? 1 : 0;
    if (reset_) {
        ++load_.report.resets;
        const linger at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    ::close(fd_);
    fd_ = -1;
    if (!load_.ending) open();
}

void connection::ended_by_server() {
    ::close(fd_);
    fd_ = -1;
    if (how_ == ending::by_server && load_.report.complete != 0) return;
    ++load_.report.broken;
    rest();
}

}  // namespace echo
