// An echo server for thousands of clients, on one thread, with a fiber for each.
//
//   build/release/examples/echo_small                in another terminal: nc 127.0.0.1 7000
//   build/release/examples/echo_small ADDRESS:PORT
//
// It serves until a signal ends it. A client needs a descriptor: `ulimit -n` says how many there
// are.

// [program]
#include <array>
#include <span>

#include "weft/fiber/nursery.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/run/run.hpp"

int main(int argc, char** argv) {
    weft::run([&] {
        auto listener = weft::tcp_listener::bind(argc > 1 ? argv[1] : "127.0.0.1:7000").value();
        weft::nursery clients;  // its destructor asks the remaining clients to stop, and waits
        while (auto client = listener.accept())
            clients.spawn([c = *std::move(client)]() mutable {
                std::array<std::byte, 512> buffer;
                while (const std::size_t n = c.read(buffer).value_or(0))
                    if (!c.write_all(std::span(buffer).first(n))) return;
            });
    });
}
// [/program]
