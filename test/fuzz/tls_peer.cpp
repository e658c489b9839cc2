// tls_peer: a peer of TLS that sends any bytes in any pieces, and ends.
//
// Laws: neither the server nor the client accepts the peer's identity, and what failed by TLS fails
// the same way from then on; a session ends when the peer does.
//
// Input: the driver; whether the client is tested; a length and the sizes of the pieces; the bytes.

#include <sys/socket.h>

#include <array>

#include "test/fuzz/fuzz.hpp"
#include "test/io/tls_identity.hpp"
#include "weft/io/tls/tls_stream.hpp"

namespace {

using weft::tls_context;
using weft::tls_stream;

tls_stream of_kind(bool is_client, weft::tcp_stream over) {
    static const weft::testing::tls_identity anna("anna.test");
    static const tls_context trust = tls_context::client(anna.certificate()).value();
    static const tls_context self = tls_context::server(anna.certificate(), anna.key()).value();
    return is_client ? tls_stream::client(std::move(over), trust, "anna.test").value()
                     : tls_stream::server(std::move(over), self).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    weft::testing::fuzz::input in(data, size);
    weft::testing::fuzz::in_fiber(in.byte(), [in]() mutable {
        int numbers[2];
        FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, numbers) == 0);
        auto peer = weft::unix_stream::adopt(numbers[0]).value();
        auto looked_at = of_kind(in.byte() % 2 != 0, weft::tcp_stream::adopt(numbers[1]).value());
        const weft::testing::fuzz::input sizes(in.take(in.byte()));
        weft::fiber sends([&, text = in.rest()] {
            weft::testing::fuzz::write_in_pieces(peer, looked_at.under(), text, sizes);
        });

        const auto shaken = looked_at.handshake();
        FUZZ_CHECK(!shaken && shaken.error());
        std::array<std::byte, 256> room;
        const auto n = looked_at.read(room);
        const auto written = looked_at.write_all(weft::bytes_of("text"));
        FUZZ_CHECK(!n && written.error() && written.bytes() == 0);
        const auto again = looked_at.handshake();
        FUZZ_CHECK(!again && again.error());
        const auto& kind = shaken.error().category();
        if (kind == weft::tls_category() || kind == weft::tls_trust_category())
            FUZZ_CHECK(n.error() == shaken.error() && written.error() == shaken.error() &&
                       again.error() == shaken.error());
        static_cast<void>(looked_at.shutdown());
        looked_at.close();
    });
    return 0;
}
