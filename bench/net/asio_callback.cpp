// net_asio_callback PORT: an echo server on Boost.Asio in its oldest style, a completion handler
// for each step. One thread, and the io_context knows it.

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#include "bench/net/sockets.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class session : public std::enable_shared_from_this<session> {
public:
    explicit session(tcp::socket socket) : socket_(std::move(socket)) {}

    void read() {
        socket_.async_read_some(asio::buffer(buffer_),
                                [self = shared_from_this()](error_code error, std::size_t bytes) {
                                    if (!error) self->write(bytes);
                                });
    }

private:
    void write(std::size_t bytes) {
        asio::async_write(socket_, asio::buffer(buffer_, bytes),
                          [self = shared_from_this()](error_code error, std::size_t) {
                              if (!error) self->read();
                          });
    }

    tcp::socket socket_;
    std::array<char, bench::net::buffer_bytes> buffer_;
};

void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([&acceptor](error_code error, tcp::socket socket) {
        if (!error) {
            socket.set_option(tcp::no_delay(true), error);
            std::make_shared<session>(std::move(socket))->read();
        }
        accept(acceptor);
    });
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint16_t port = bench::net::port_argument(argc, argv);
    bench::net::raise_file_limit();
    asio::io_context context(1);
    tcp::acceptor acceptor(context, tcp::v4(), bench::net::listen_on(port));
    accept(acceptor);
    bench::net::say_ready();
    context.run();
}
