// weft_net_echo PORT [fiber|task|shared [borrowed]]: weft's own echo server for the comparison: one
// loop, one fiber or task a connection, a buffer of 512 bytes each; epoll, io_uring or poll as
// WEFT_IO says. shared: fibers that take turns on one stack, which holds their buffers. borrowed:
// no buffers of their own; a session borrows a buffer when bytes have come.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "bench/net/sockets.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/run/run.hpp"
#include "weft/task/task.hpp"
#include "weft/task/task_handle.hpp"

namespace {

using bench::net::buffer_bytes;

void serve(weft::tcp_stream s) {
    std::array<std::byte, buffer_bytes> buffer;
    while (const std::size_t n = s.read(buffer).value_or(0))
        if (!s.write_all(std::span(buffer).first(n))) return;
}

weft::task<> serve_by_task(weft::tcp_stream s) {
    std::array<std::byte, buffer_bytes> buffer;
    for (;;) {
        const std::size_t n = (co_await s.async_read(buffer)).value_or(0);
        if (n == 0) co_return;
        const weft::transfer_result sent = co_await s.async_write_all(std::span(buffer).first(n));
        if (!sent) co_return;
    }
}

void serve_borrowed(weft::tcp_stream s) {
    for (;;) {
        const auto r = s.read_borrowed();
        if (!r || r->empty() || !s.write_all(r->span())) return;
    }
}

weft::task<> serve_borrowed_by_task(weft::tcp_stream s) {
    for (;;) {
        const auto r = co_await s.async_read_borrowed();
        if (!r || r->empty()) co_return;
        const weft::transfer_result sent = co_await s.async_write_all(r->span());
        if (!sent) co_return;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string style = argc > 2 ? argv[2] : "fiber";
    const bool tasks = style == "task";
    const bool borrowed = argc == 4 && std::strcmp(argv[3], "borrowed") == 0;
    if (argc < 2 || argc > 4 || (!tasks && style != "fiber" && style != "shared") ||
        (argc == 4 && !borrowed)) {
        std::fprintf(stderr, "usage: weft_net_echo PORT [fiber|task|shared [borrowed]]\n");
        return 2;
    }
    bench::net::raise_file_limit();
    const std::string where = std::string("127.0.0.1:") + argv[1];
    weft::shared_stack_group common;
    const weft::fiber_options how = {.shared = style == "shared" ? &common : nullptr};
    return weft::run([&] {
        auto listener = weft::tcp_listener::bind(where);
        if (!listener) {
            std::fprintf(stderr, "weft_net_echo: %s: %s\n", where.c_str(),
                         listener.error().message().c_str());
            return 2;
        }
        // Refuses to be measured with another driver than the one asked for.
        const char* const wanted = std::getenv("WEFT_IO");
        const char* const driver = weft::detail::io_driver_here()->name();
        if (wanted != nullptr && std::strcmp(wanted, driver) != 0) {
            std::fprintf(stderr, "weft_net_echo: by %s, not by %s\n", driver, wanted);
            return 2;
        }
        bench::net::say_ready();
        weft::nursery sessions;
        while (auto s = listener->accept()) {
            if (tasks)
                sessions.spawn((borrowed ? serve_borrowed_by_task : serve_by_task)(*std::move(s)));
            else
                weft::fiber(
                    [s = *std::move(s), by = borrowed ? serve_borrowed : serve]() mutable {
                        by(std::move(s));
                    },
                    how)
                    .detach();
        }
        return 0;
    });
}
