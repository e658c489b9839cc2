// tls_between: two TLS peers, and a relay between them that changes what they send.
//
// Laws: what one peer reads is the beginning of what the other has written, and all of it if the
// end arrived; where nothing was changed, everything arrives, and the end. Both peers end.
//
// Input: the driver; the lengths of the two texts; then the change to each piece that arrives, in
// either direction: a kind, and a position. When the input is used up, pieces are forwarded
// unchanged.

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <span>

#include "test/fuzz/fuzz.hpp"
#include "test/io/tls_identity.hpp"
#include "weft/io/tls/tls_stream.hpp"

namespace {

using namespace std::chrono_literals;
using weft::tls_context;
using weft::tls_stream;
using weft::testing::fuzz::input;

// Two ends, of which weft::tcp_stream takes one for its own.
std::pair<weft::tcp_stream, weft::unix_stream> wire() {
    int numbers[2];
    FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, numbers) == 0);
    return {weft::tcp_stream::adopt(numbers[0]).value(),
            weft::unix_stream::adopt(numbers[1]).value()};
}

struct between {
    weft::unix_stream ends[2];
    input plan;
    bool changed = false;

    void relay(weft::unix_stream& from, weft::unix_stream& to) {
        // A length that was changed has both wait for bytes that never come.
        from.set_options({.read_timeout = 3ms});
        std::string room(512, 0);
        for (;;) {
            const auto n = from.read(std::as_writable_bytes(std::span(room)));
            if (!n && n.error() == std::errc::timed_out && !changed) continue;
            if (!n || *n == 0 || !pass(room.substr(0, *n), to)) break;
        }
        static_cast<void>(to.shutdown(changed ? weft::direction::both : weft::direction::write));
        if (changed) static_cast<void>(from.shutdown(weft::direction::both));
    }

    // False: it is cut here.
    bool pass(std::string piece, weft::unix_stream& to) {
        const unsigned kind = plan.byte() % 8;
        const std::size_t at = kind == 0 ? 0 : plan.byte() * 2 % piece.size();
        changed |= kind > 1;
        if (kind == 1 && at != 0) {  // in two
            if (!to.write_all(weft::bytes_of(piece.substr(0, at)))) return false;
            weft::this_fiber::yield();
            piece.erase(0, at);
        } else if (kind == 2) {
            piece[at] = static_cast<char>(piece[at] ^ (1 << plan.byte() % 8));
        } else if (kind == 3) {
            piece.erase(at, 1);
        } else if (kind == 4) {
            piece.insert(at, 1, static_cast<char>(plan.byte()));
        } else if (kind == 5) {
            piece += piece;
        } else if (kind == 6) {
            piece[at] = static_cast<char>(plan.byte());
        } else if (kind == 7) {
            piece.resize(at);
        }
        return to.write_all(weft::bytes_of(piece)) && kind != 7;
    }
};

// Sends its text, and reads the other's. True: all went well.
bool speak(tls_stream& s, std::string_view says, std::string_view hears) {
    if (!s.handshake() || !s.write_all(weft::bytes_of(says)) || !s.shutdown()) return false;
    std::array<char, 300> room;
    for (;;) {
        const auto n = s.read(std::as_writable_bytes(std::span(room)));
        if (!n) return false;
        if (*n == 0) break;
        FUZZ_CHECK(hears.starts_with(std::string_view(room.data(), *n)));
        hears.remove_prefix(*n);
    }
    FUZZ_CHECK(hears.empty());
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const weft::testing::tls_identity anna("anna.test");
    static const tls_context trust = tls_context::client(anna.certificate()).value();
    static const tls_context self = tls_context::server(anna.certificate(), anna.key()).value();
    input in(data, size);
    weft::testing::fuzz::in_fiber(in.byte(), [in]() mutable {
        const std::string asks(in.byte() * 4, 'a');
        const std::string answers(in.byte() * 4, 'b');
        auto [of_client, client_end] = wire();
        auto [of_server, server_end] = wire();
        between middle{{std::move(client_end), std::move(server_end)}, in};
        auto client = tls_stream::client(std::move(of_client), trust, "anna.test").value();
        auto server = tls_stream::server(std::move(of_server), self).value();
        bool client_well = false;
        weft::fiber there([&] { middle.relay(middle.ends[0], middle.ends[1]); });
        weft::fiber back([&] { middle.relay(middle.ends[1], middle.ends[0]); });
        weft::fiber asking([&] {
            client_well = speak(client, asks, answers);
            client.close();
        });
        const bool server_well = speak(server, answers, asks);
        server.close();
        asking.join();
        there.join();
        back.join();
        FUZZ_CHECK(middle.changed || (client_well && server_well));
    });
    return 0;
}
