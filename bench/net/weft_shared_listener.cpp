// weft_shared_listener [ROUNDS]: the cost of a connection to a server whose loops, each on a thread
// of its own, accept from one listener: three loops against two, and the last thousand connections
// against the first, over epoll and over io_uring, one accept at a time and many (multishot).
//
// 4 000 connections, one after the other: each connects, sends a byte, receives the byte, and is
// ended by both sides. The server has one core and the load the other. The bars are on the
// processor time of the server's process; the time of a connection is printed too. Exit status: 0
// no bar is missed, 1 one is, 2 bad input, or io_uring is refused.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/net/sockets.hpp"
#include "bench/net/trial.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/sched/loop.hpp"

namespace {

using bench::net::die;
using bench::net::give_up;
using bench::net::server_child;

constexpr int parts = 4;
constexpr int connections_of_a_part = 1000;

struct subject {
    const char* name;
    weft::io_kind kind;
    bool multishot;
};

void echo(weft::tcp_stream s) {
    std::array<std::byte, 64> room;
    while (const std::size_t n = s.read(room).value_or(0))
        if (!s.write_all(std::span(room).first(n))) return;
}

void accept_all(const subject& of, weft::tcp_listener& from) {
    auto driver = weft::make_io_driver(of.kind);
    if (of.kind == weft::io_kind::io_uring && driver->name() != std::string_view("io_uring"))
        give_up("io_uring is refused here");
    weft::loop l(std::move(driver));
    weft::fiber server(
        [&] {
            while (auto s = from.accept())
                weft::fiber([s = *std::move(s)]() mutable { echo(std::move(s)); }).detach();
        },
        {.on = l});
    l.run();
}

void serve(const subject& of, int loops, int tell) {
    auto l = weft::tcp_listener::bind("127.0.0.1:0", {.multishot = of.multishot}).value();
    bench::net::tell_port(tell, l.local_endpoint().port());
    std::vector<std::thread> threads;
    for (int i = 0; i != loops; ++i) threads.emplace_back([&] { accept_all(of, l); });
    for (std::thread& t : threads) t.join();
}

// The load has an address of its own for each server, so that it does not run out of ports.
void connect_once(std::uint32_t source, std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(source);
    // Without SO_REUSEADDR no other socket may have the port, at any address, for a minute after
    // the end.
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0) die("bind");
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0) die("connect");
    char c = 'x';
    if (::send(fd, &c, 1, MSG_NOSIGNAL) != 1 || ::recv(fd, &c, 1, 0) != 1)
        die("a server has not answered");
    ::shutdown(fd, SHUT_WR);
    if (::recv(fd, &c, 1, 0) != 0) die("a server has not ended");
    ::close(fd);
}

// The figures of a connection, one for each round.
struct figures {
    std::vector<double> cpu_us, first_us, last_us, wall_us;
};

void measure(const subject& of, int loops, std::uint32_t source, figures& into) {
    const server_child server([&](int tell) {
        bench::net::pin_to(0);
        serve(of, loops, tell);
    });
    bench::net::pin_to(1);
    for (int i = 0; i != 100; ++i) connect_once(source, server.port());
    std::array<double, parts + 1> cpu_us{server.cpu_us()};
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t part = 1; part <= parts; ++part) {
        for (int i = 0; i != connections_of_a_part; ++i) connect_once(source, server.port());
        cpu_us[part] = server.cpu_us();
    }
    const std::chrono::duration<double, std::micro> lasted =
        std::chrono::steady_clock::now() - began;
    into.cpu_us.push_back((cpu_us[parts] - cpu_us[0]) / (parts * connections_of_a_part));
    into.first_us.push_back(cpu_us[1] - cpu_us[0]);
    into.last_us.push_back(cpu_us[parts] - cpu_us[parts - 1]);
    into.wall_us.push_back(lasted.count() / (parts * connections_of_a_part));
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned rounds = bench::net::rounds_argument(argc, argv, 13);
    constexpr int most_loops = 3;
    const std::array<subject, 4> subjects = {{
        {"epoll", weft::io_kind::epoll, false},
        {"io_uring", weft::io_kind::io_uring, false},
        {"io_uring, multishot", weft::io_kind::io_uring, true},
        {"poll", weft::io_kind::poll, false},
    }};
    std::array<std::array<figures, most_loops>, subjects.size()> all;
    for (unsigned r = 0; r != rounds; ++r)
        for (std::size_t s = 0; s != subjects.size(); ++s)
            for (int loops = 1; loops <= most_loops; ++loops) {
                const auto cell =
                    static_cast<std::uint32_t>(s) * most_loops + static_cast<std::uint32_t>(loops);
                // 127.R.CELL.1
                const std::uint32_t source = 0x7f000001u | (r % 250 + 1) << 16 | cell << 8;
                measure(subjects[s], loops, source, all[s][static_cast<std::size_t>(loops) - 1]);
            }
    bench::net::bars bars;
    for (std::size_t s = 0; s != subjects.size(); ++s) {
        const std::string name = subjects[s].name;
        for (int loops = 1; loops <= most_loops; ++loops) {
            const figures& f = all[s][static_cast<std::size_t>(loops) - 1];
            std::printf("%-40s %6.1f us a connection, %6.1f us long\n",
                        (name + ", loops: " + std::to_string(loops)).c_str(),
                        bench::net::median(f.cpu_us), bench::net::median(f.wall_us));
        }
        const figures& three = all[s][2];
        bars.hold(name + ": three loops to two", three.cpu_us, all[s][1].cpu_us, 1.10);
        bars.hold(name + ", three: the last thousand to the first", three.last_us, three.first_us,
                  1.10);
    }
    return bars.any_missed ? 1 : 0;
}
