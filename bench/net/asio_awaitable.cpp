// net_asio_awaitable PORT: an echo server on Boost.Asio as C++20 coroutines, one a connection.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "bench/net/sockets.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto awaited = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> echo(tcp::socket socket) {
    char buffer[bench::net::buffer_bytes];
    for (;;) {
        const auto [no_read, bytes] =
            co_await socket.async_read_some(asio::buffer(buffer), awaited);
        if (no_read) co_return;
        const auto [no_write, sent] =
            co_await asio::async_write(socket, asio::buffer(buffer, bytes), awaited);
        if (no_write) co_return;
    }
}

asio::awaitable<void> listen(tcp::acceptor& acceptor) {
    for (;;) {
        auto [error, socket] = co_await acceptor.async_accept(awaited);
        if (error) continue;
        socket.set_option(tcp::no_delay(true), error);
        asio::co_spawn(acceptor.get_executor(), echo(std::move(socket)), asio::detached);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint16_t port = bench::net::port_argument(argc, argv);
    bench::net::raise_file_limit();
    asio::io_context context(1);
    tcp::acceptor acceptor(context, tcp::v4(), bench::net::listen_on(port));
    asio::co_spawn(context, listen(acceptor), asio::detached);
    bench::net::say_ready();
    context.run();
}
