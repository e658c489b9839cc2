// tcp_proxy: passes every connection on to another address, both ways at once.
//
// Shows: two fibers on one connection, half-closed streams, a nursery that ends both when one
// fails, limits of time, and connecting by name.
//
//   build/release/examples/tcp_proxy 127.0.0.1:7001 example.org:80
//
// Port 0 selects a free port. The third argument is how many seconds a connection may be silent in
// both directions, 300 by default; a client that only reads keeps its download. The program runs
// until a signal ends it.

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "weft/fiber/nursery.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/run/run.hpp"

namespace {

using namespace std::chrono_literals;

// When bytes last came, from either side.
struct activity {
    std::chrono::seconds limit;
    weft::time_point last = weft::now();

    bool is_recent() const { return weft::now() < weft::after(last, limit); }
};

// Copies until `from` has ended; then shuts `to` down for writing, and `to` may still answer.
void pass(weft::tcp_stream& from, weft::tcp_stream& to, activity& a) {
    std::array<std::byte, 16384> buffer;
    for (;;) {
        const auto n = from.read(buffer);
        if (!n && n.error() == std::errc::timed_out && a.is_recent()) continue;  // other direction
        if (!n) throw std::system_error(n.error());
        if (*n == 0) break;
        a.last = weft::now();
        to.write_all(std::span(buffer).first(*n)).value();
    }
    static_cast<void>(to.shutdown(weft::direction::write));  // the peer may be gone already
}

void serve(weft::tcp_stream client, const std::string& target, std::chrono::seconds limit) {
    auto server = weft::tcp_stream::connect(target, 10s);
    if (!server) {
        std::fprintf(stderr, "tcp_proxy: %s: %s\n", target.c_str(),
                     server.error().message().c_str());
        client.abort();
        return;
    }
    client.set_options({.read_timeout = limit, .write_timeout = 1min});
    server->set_options({.read_timeout = limit, .write_timeout = 1min});
    activity a{limit};
    try {
        weft::nursery both;
        both.spawn([&] { pass(client, *server, a); });
        both.spawn([&] { pass(*server, client, a); });
        both.join();
    } catch (const std::system_error&) {
        client.abort();  // one of the two has failed: the other does not wait for it
        server->abort();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::chrono::seconds limit(argc == 4 ? std::atoi(argv[3]) : 300);
    if (argc < 3 || argc > 4 || limit.count() <= 0) {
        std::fprintf(stderr, "usage: tcp_proxy ADDRESS:PORT HOST:PORT [SECONDS]\n");
        return 2;
    }
    const std::string target = argv[2];
    return weft::run([&] {
        auto listener = weft::tcp_listener::bind(std::string_view(argv[1]));
        if (!listener) {
            std::fprintf(stderr, "tcp_proxy: %s: %s\n", argv[1],
                         listener.error().message().c_str());
            return 2;
        }
        std::printf("%s\n", listener->local_endpoint().to_string().c_str());
        std::fflush(stdout);
        while (auto s = listener->accept())
            weft::fiber([s = *std::move(s), &target, limit]() mutable {
                serve(std::move(s), target, limit);
            }).detach();
        return 0;
    });
}
