// udp_echo: sends each datagram back to where it came from, many in one system call.
//
// Shows: recv_many and send_many; datagrams of one sender that the system joins and splits again
// (GRO and GSO); an answer that leaves from the address that was asked (packet info); and an error
// of one receiver that costs no other receiver its answer.
//
//   build/release/examples/udp_echo 127.0.0.1:7007 &  echo hello | nc -u -w1 127.0.0.1 7007
//
// The program prints the address it is bound to; port 0 selects a free port. The program runs until
// a signal ends it, and then prints how many datagrams it has sent back, in how many batches. The
// source address of a datagram is only a claim: a server on the open net would not send this much
// to an address that is not verified.

#include <signal.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "weft/base/errc.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/signal_set.hpp"
#include "weft/io/udp_socket.hpp"
#include "weft/run/run.hpp"

namespace {

struct counts {
    std::uint64_t datagrams = 0;
    std::uint64_t batches = 0;
};

constexpr std::size_t most = 32;
constexpr std::size_t room_bytes = 65536;  // the largest that joined datagrams may be

std::size_t datagrams_in(const weft::incoming_datagram& i) {
    return i.segment == 0 ? 1 : (i.bytes + i.segment - 1) / i.segment;
}

// Returns when the socket is closed, or when the system has an error of its own.
std::error_code echo(weft::udp_socket& s, counts& c) {
    const auto rooms = std::make_unique<std::byte[]>(most * room_bytes);
    std::array<weft::incoming_datagram, most> batch;
    for (std::size_t i = 0; i < most; ++i)
        batch[i].into = {rooms.get() + i * room_bytes, room_bytes};
    std::array<weft::outgoing_datagram, most> answers;
    for (;;) {
        const auto n = s.recv_many(batch);
        if (!n) return n.error();
        for (std::size_t i = 0; i < *n; ++i)
            answers[i] = {.bytes = batch[i].text(),
                          .to = &batch[i].from,
                          .segment = batch[i].segment,
                          .from = batch[i].to};
        // A datagram that cannot be sent is skipped.
        for (std::size_t at = 0; at < *n;) {
            const weft::send_many_result sent =
                s.send_many(std::span(answers).first(*n).subspan(at));
            for (std::size_t i = 0; i < sent.count(); ++i)
                c.datagrams += datagrams_in(batch[at + i]);
            at += sent.count() + (sent ? 0 : 1);
        }
        ++c.batches;
    }
}

int fail(const char* what, const std::string& why) {
    std::fprintf(stderr, "udp_echo: %s: %s\n", what, why.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return fail("usage", "udp_echo ADDRESS:PORT");
    return weft::run([&] {
        auto s =
            weft::udp_socket::bind(std::string_view(argv[1]), {.coalesce = true, .details = true});
        if (!s) return fail(argv[1], s.error().message());
        auto ends = weft::signal_set::open({SIGINT, SIGTERM});
        if (!ends) return fail("signals", ends.error().message());
        std::printf("%s\n", s->local_endpoint().to_string().c_str());
        std::fflush(stdout);
        counts c;
        std::error_code why;
        weft::fiber echoes([&] {
            why = echo(*s, c);
            ends->close();
        });
        static_cast<void>(ends->wait());
        s->close();
        echoes.join();
        if (why != weft::errc::closed) return fail("datagrams", why.message());
        std::printf("%llu datagrams, %llu batches\n", static_cast<unsigned long long>(c.datagrams),
                    static_cast<unsigned long long>(c.batches));
        return 0;
    });
}
