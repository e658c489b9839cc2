// io: a connection from a fiber to another.

#include "weft/fiber/nursery.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/io/tcp_stream.hpp"
#include "weft/run/run.hpp"

int main() {
    bool accepted = false, connected = false;
    weft::run([&] {
        auto listener = weft::tcp_listener::bind("127.0.0.1:0").value();
        weft::nursery n;
        n.spawn([&] { accepted = listener.accept().has_value(); });
        connected = weft::tcp_stream::connect(listener.local_endpoint()).has_value();
        n.join();
    });
    return accepted && connected ? 0 : 1;
}
