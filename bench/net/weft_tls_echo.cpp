// weft_net_tls_echo PORT CERTIFICATE KEY [fiber|task]: an echo server under TLS, for net_tls_load:
// one loop, one fiber or task a connection, a buffer of 4 KiB each.

#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <utility>

#include "bench/net/sockets.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/io/tls/tls_stream.hpp"
#include "weft/run/run.hpp"
#include "weft/task/task.hpp"
#include "weft/task/task_handle.hpp"

namespace {

using buffer_t = std::array<std::byte, 4096>;

void serve(weft::tls_stream s) {
    buffer_t buffer;
    if (!s.handshake()) return;
    while (const std::size_t n = s.read(buffer).value_or(0))
        if (!s.write_all(std::span(buffer).first(n))) return;
}

weft::task<> serve_by_task(weft::tls_stream s) {
    buffer_t buffer;
    const auto shaken = co_await s.async_handshake();
    if (!shaken) co_return;
    for (;;) {
        const std::size_t n = (co_await s.async_read(buffer)).value_or(0);
        if (n == 0) co_return;
        const weft::transfer_result sent = co_await s.async_write_all(std::span(buffer).first(n));
        if (!sent) co_return;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string style = argc == 5 ? argv[4] : "fiber";
    if (argc < 4 || argc > 5 || (style != "fiber" && style != "task")) {
        std::fprintf(stderr, "usage: weft_net_tls_echo PORT CERTIFICATE KEY [fiber|task]\n");
        return 2;
    }
    bench::net::raise_file_limit();
    return weft::run([&] {
        const auto context = weft::tls_context::server(argv[2], argv[3]);
        auto listener = weft::tcp_listener::bind(std::string("127.0.0.1:") + argv[1]);
        if (!context || !listener) {
            std::fprintf(stderr, "weft_net_tls_echo: no such port, certificate or key\n");
            return 2;
        }
        bench::net::say_ready();
        weft::nursery sessions;
        while (auto c = listener->accept()) {
            auto s = weft::tls_stream::server(*std::move(c), *context);
            if (!s) continue;
            if (style == "task")
                sessions.spawn(serve_by_task(*std::move(s)));
            else
                weft::fiber([s = *std::move(s)]() mutable { serve(std::move(s)); }).detach();
        }
        return 0;
    });
}
