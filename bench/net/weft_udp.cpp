// weft_udp [ROUNDS]: the cost of a datagram echo to its server, in processor time a datagram.
//
//   64 bytes      a loop in C: epoll, recvmmsg, sendmmsg
//                 weft: recv_many(), send_many() in a fiber, over epoll, and over io_uring
//   1 200 bytes   weft, one by one
//                 weft, coalesced on receipt and split by the system on send (GRO, GSO)
//
// The load sends batches of 32 and counts the echoes. "busy": from another core, with so many
// batches in flight that the server always finds the next one. "idle": from the same core, with one
// batch in flight: the server sleeps before each batch, and finds all of it. For the 1 200 bytes
// the load is the same for both servers: it sends and receives in segments. Exit status: 0 no bar
// is missed, 1 one is, 2 bad input.

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/net/sockets.hpp"
#include "bench/net/trial.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/udp_socket.hpp"
#include "weft/sched/loop.hpp"

namespace {

using bench::net::die;
using bench::net::give_up;
using bench::net::server_child;

constexpr std::size_t batch = 32;
constexpr std::size_t room_bytes = 65536;
using room = std::array<std::byte, room_bytes>;

sockaddr* at(sockaddr_in& a) { return reinterpret_cast<sockaddr*>(&a); }

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

// The reference: nothing but its system calls. Registered once, for edges.
void serve_bare(int tell) {
    static std::array<room, batch> rooms;
    static std::array<sockaddr_in, batch> from;
    static std::array<mmsghdr, batch> messages;
    static std::array<iovec, batch> parts;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in here = loopback(0);
    socklen_t size = sizeof here;
    if (bind(fd, at(here), size) != 0) die("bind");
    getsockname(fd, at(here), &size);
    const int poll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event e{};
    e.events = EPOLLIN | EPOLLET;
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e) != 0) die("epoll_ctl");
    for (std::size_t i = 0; i != batch; ++i) {
        messages[i].msg_hdr.msg_name = &from[i];
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    bench::net::tell_port(tell, ntohs(here.sin_port));
    for (;;) {
        for (std::size_t i = 0; i != batch; ++i) {
            parts[i] = {rooms[i].data(), room_bytes};
            messages[i].msg_hdr.msg_namelen = sizeof from[i];
        }
        const int n = recvmmsg(fd, messages.data(), batch, MSG_DONTWAIT, nullptr);
        if (n < 0) {
            if (errno != EAGAIN) die("recvmmsg");
            epoll_wait(poll, &e, 1, -1);
            continue;
        }
        const auto count = static_cast<std::size_t>(n);
        for (std::size_t i = 0; i != count; ++i) parts[i].iov_len = messages[i].msg_len;
        if (sendmmsg(fd, messages.data(), static_cast<unsigned>(n), MSG_DONTWAIT) != n)
            die("sendmmsg");
    }
}

void echo_all(weft::udp_socket& s) {
    static std::array<room, batch> rooms;
    std::array<weft::incoming_datagram, batch> in;
    std::array<weft::outgoing_datagram, batch> out;
    for (std::size_t i = 0; i != batch; ++i) in[i].into = rooms[i];
    while (const std::size_t n = s.recv_many(in).value_or(0)) {
        for (std::size_t i = 0; i != n; ++i) {
            out[i].bytes = in[i].text();
            out[i].to = &in[i].from;
            out[i].segment = in[i].segment;
        }
        if (const auto sent = s.send_many(std::span(out).first(n)); !sent) return;
    }
}

void serve_by_weft(int tell, weft::io_kind kind, const weft::udp_options& o) {
    auto driver = weft::make_io_driver(kind);
    if (kind == weft::io_kind::io_uring && driver->name() != std::string_view("io_uring"))
        give_up("io_uring is refused here");
    weft::loop l(std::move(driver));
    weft::fiber server(
        [&] {
            weft::udp_socket s = weft::udp_socket::bind("127.0.0.1:0", o).value();
            bench::net::tell_port(tell, s.local_endpoint().port());
            echo_all(s);
        },
        {.on = l});
    l.run();
}

void serve_by_epoll(int tell) { serve_by_weft(tell, weft::io_kind::epoll, {}); }
void serve_by_uring(int tell) { serve_by_weft(tell, weft::io_kind::io_uring, {}); }
void serve_segments(int tell) { serve_by_weft(tell, weft::io_kind::epoll, {.coalesce = true}); }

struct subject {
    const char* name;
    std::size_t bytes;
    std::size_t window;  // batches in flight
    void (*serve)(int tell);
    std::vector<double> us{};  // a datagram, of each round
};

// Connected to a server; sends batches, and counts the echoes.
class client {
public:
    client(std::uint16_t port, std::size_t bytes)
        : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), bytes_(bytes) {
        sockaddr_in a = loopback(port);
        if (connect(fd_, at(a), sizeof a) != 0) die("connect");
        const timeval patience = {5, 0};
        setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        const int room_for_all = 1 << 20;
        setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room_for_all, sizeof room_for_all);
        const int segment = static_cast<int>(bytes);
        const int on = 1;
        if (in_segments() &&
            (setsockopt(fd_, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0 ||
             setsockopt(fd_, SOL_UDP, UDP_GRO, &on, sizeof on) != 0))
            die("this system does not cut datagrams");
        for (std::size_t i = 0; i != batch; ++i) {
            parts_[i] = {rooms()[i].data(), room_bytes};
            in_[i].msg_hdr.msg_iov = &parts_[i];
            out_[i].msg_hdr.msg_iov = &message_;
            in_[i].msg_hdr.msg_iovlen = out_[i].msg_hdr.msg_iovlen = 1;
        }
        message_ = {rooms()[0].data(), in_segments() ? batch * bytes : bytes};
    }
    client(const client&) = delete;
    ~client() { ::close(fd_); }

    // Sends `batches` batches and receives the echoes, with at most `window` batches in flight.
    void exchange(std::size_t batches, std::size_t window) {
        const std::size_t all = batches * batch * bytes_;
        const std::size_t most = window * batch * bytes_;
        for (std::size_t sent = 0, came = 0; came < all;) {
            while (sent < all && sent + batch * bytes_ <= came + most) {
                send_batch();
                sent += batch * bytes_;
            }
            came += receive();
        }
    }

private:
    bool in_segments() const noexcept { return bytes_ > 64; }
    static std::array<room, batch>& rooms() {
        static std::array<room, batch> all;
        return all;
    }
    void send_batch() {
        const unsigned count = in_segments() ? 1 : batch;
        if (sendmmsg(fd_, out_.data(), count, 0) != static_cast<int>(count)) die("send");
    }
    std::size_t receive() {
        const int n = recvmmsg(fd_, in_.data(), batch, MSG_WAITFORONE, nullptr);
        if (n <= 0) die("an echo has not come");
        std::size_t bytes = 0;
        for (int i = 0; i != n; ++i) bytes += in_[static_cast<std::size_t>(i)].msg_len;
        return bytes;
    }

    const int fd_;
    const std::size_t bytes_;
    iovec message_{};
    std::array<iovec, batch> parts_{};
    std::array<mmsghdr, batch> in_{}, out_{};
};

double measure(const subject& s) {
    constexpr std::size_t batches = 4000, before = 200;
    const server_child server([&](int tell) {
        bench::net::pin_to(0);
        s.serve(tell);
    });
    bench::net::pin_to(s.window == 1 ? 0 : 1);
    client c(server.port(), s.bytes);
    c.exchange(before, s.window);
    const double began = server.cpu_us();
    c.exchange(batches, s.window);
    return (server.cpu_us() - began) / static_cast<double>(batches * batch);
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned rounds = bench::net::rounds_argument(argc, argv, 13);
    std::vector<subject> all = {
        {"64 bytes, busy: recvmmsg and sendmmsg in C", 64, 4, serve_bare},
        {"64 bytes, busy: weft over epoll", 64, 4, serve_by_epoll},
        {"64 bytes, busy: weft over io_uring", 64, 4, serve_by_uring},
        {"64 bytes, idle: recvmmsg and sendmmsg in C", 64, 1, serve_bare},
        {"64 bytes, idle: weft over epoll", 64, 1, serve_by_epoll},
        {"64 bytes, idle: weft over io_uring", 64, 1, serve_by_uring},
        {"1200 bytes, busy: weft, one by one", 1200, 2, serve_by_epoll},
        {"1200 bytes, busy: weft, GRO and GSO", 1200, 2, serve_segments},
    };
    bench::net::pin_to(0);
    for (unsigned r = 0; r != rounds; ++r)
        for (subject& s : all) s.us.push_back(measure(s));
    for (const subject& s : all)
        std::printf("%-52s %6.3f us a datagram\n", s.name, bench::net::median(s.us));
    bench::net::bars bars;
    const auto hold = [&](const char* what, std::size_t of, std::size_t to, double most) {
        bars.hold(what, all[of].us, all[to].us, most);
    };
    hold("busy: weft over epoll to C", 1, 0, 1.05);
    hold("busy: weft over io_uring to C", 2, 0, 1.05);
    hold("idle: weft over epoll to C", 4, 3, 1.05);
    hold("idle: weft over io_uring to C", 5, 3, 1.05);
    hold("GRO and GSO to one by one", 7, 6, 0.5);
    return bars.any_missed ? 1 : 0;
}
