// net_asio_tls_echo PORT CERTIFICATE KEY: an echo server under TLS on Boost.Asio, in its oldest
// style, a completion handler for each step, for net_tls_load. One thread, and the io_context
// knows it.

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "bench/net/sockets.hpp"

namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

class session : public std::enable_shared_from_this<session> {
public:
    session(tcp::socket socket, ssl::context& c) : stream_(std::move(socket), c) {}

    void shake() {
        stream_.async_handshake(ssl::stream_base::server,
                                [self = shared_from_this()](error_code error) {
                                    if (!error) self->read();
                                });
    }

private:
    void read() {
        stream_.async_read_some(asio::buffer(buffer_),
                                [self = shared_from_this()](error_code error, std::size_t bytes) {
                                    if (!error) self->write(bytes);
                                });
    }
    void write(std::size_t bytes) {
        asio::async_write(stream_, asio::buffer(buffer_, bytes),
                          [self = shared_from_this()](error_code error, std::size_t) {
                              if (!error) self->read();
                          });
    }

    ssl::stream<tcp::socket> stream_;
    std::array<char, 4096> buffer_;
};

void accept(tcp::acceptor& acceptor, ssl::context& c) {
    acceptor.async_accept([&](error_code error, tcp::socket socket) {
        if (!error) {
            socket.set_option(tcp::no_delay(true), error);
            std::make_shared<session>(std::move(socket), c)->shake();
        }
        accept(acceptor, c);
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: net_asio_tls_echo PORT CERTIFICATE KEY\n");
        return 2;
    }
    bench::net::raise_file_limit();
    asio::io_context context(1);
    ssl::context tls(ssl::context::tls_server);
    tls.use_certificate_chain_file(argv[2]);
    tls.use_private_key_file(argv[3], ssl::context::pem);
    const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
    tcp::acceptor acceptor(context, tcp::v4(), bench::net::listen_on(port));
    accept(acceptor, tls);
    bench::net::say_ready();
    context.run();
}
