// An echo server that reads like one for a single client, and serves thousands.
//
//   build/release/examples/echo_server                  serves a thousand clients of its own
//   build/release/examples/echo_server 127.0.0.1:7000   serves any client, until a signal

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <utility>

#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/run/run.hpp"
#include "weft/sync/latch.hpp"

namespace {

void serve(weft::tcp_stream client) {
    std::array<std::byte, 512> buffer;
    while (const std::size_t n = client.read(buffer).value_or(0))
        if (!client.write_all(std::span(buffer).first(n))) return;
}

void accept_all(weft::tcp_listener& listener) {
    weft::nursery clients;  // the destructor asks the remaining clients to stop, and waits for them
    while (auto client = listener.accept())
        clients.spawn([c = *std::move(client)]() mutable { serve(std::move(c)); });
}

// No client sends before all are connected.
bool is_echoed(const weft::endpoint& server, int number, weft::latch& all) {
    auto s = weft::tcp_stream::connect(server);
    all.arrive_and_wait();
    if (!s) return false;
    const std::string said = "hello from client " + std::to_string(number);
    std::string heard(said.size(), '\0');
    return s->write_all(weft::bytes_of(said)) &&
           s->read_exact(std::as_writable_bytes(std::span(heard))) && heard == said;
}

// A descriptor on each side, and some for the rest; fewer clients if the system has too few.
int affordable_clients(int wanted) {
    ::rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return static_cast<int>(
        std::min<::rlim_t>(static_cast<::rlim_t>(wanted), (limit.rlim_cur - 64) / 2));
}

int serve_own_clients(weft::tcp_listener& listener) {
    weft::fiber server([&] { accept_all(listener); });
    const int count = affordable_clients(1000);
    int echoed = 0;
    {
        weft::latch all(count);
        weft::nursery clients;
        for (int i = 0; i < count; ++i)
            clients.spawn([&, i] { echoed += is_echoed(listener.local_endpoint(), i, all); });
        clients.join();
    }
    listener.close();
    server.join();
    std::printf("%d clients of %d heard what they said\n", echoed, count);
    return echoed == count ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2) {
        std::fprintf(stderr, "usage: echo_server [ADDRESS:PORT]\n");
        return 2;
    }
    const std::string where = argc == 2 ? argv[1] : "127.0.0.1:0";
    return weft::run([&] {
        auto listener = weft::tcp_listener::bind(where);
        if (!listener) {
            std::fprintf(stderr, "echo_server: %s: %s\n", where.c_str(),
                         listener.error().message().c_str());
            return 2;
        }
        if (argc == 1) return serve_own_clients(*listener);
        accept_all(*listener);
        return 0;
    });
}
