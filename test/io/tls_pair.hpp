// tls_pair: the two ends of a connection of TLS, before and after they have spoken.
#pragma once

#include <string>
#include <thread>
#include <utility>

#include "test/io/drivers.hpp"
#include "test/io/tls_identity.hpp"
#include "weft/io/tls/tls_stream.hpp"

namespace weft::testing {

inline const tls_identity& anna() {
    static const tls_identity the_one("anna.test");
    return the_one;
}

inline tls_context server_context() {
    return tls_context::server(anna().certificate(), anna().key()).value();
}
inline tls_context client_context() { return tls_context::client(anna().certificate()).value(); }

// Two ends that have not spoken yet.
struct tls_pair {
    tls_stream client;
    tls_stream server;
};

inline tls_pair over(tcp_stream c, tcp_stream s, const std::string& host = "anna.test",
                     const tls_context& trusts = client_context()) {
    return {tls_stream::client(std::move(c), trusts, host).value(),
            tls_stream::server(std::move(s), server_context()).value()};
}

inline tls_pair unshaken(const std::string& host = "anna.test",
                         const tls_context& trusts = client_context()) {
    auto [c, s] = connected();
    return over(std::move(c), std::move(s), host, trusts);
}

// The kernel is to make their records, where it can.
inline tls_pair unshaken_in_kernel() {
    const auto files = std::pair(anna().certificate(), anna().key());
    auto [c, s] = connected();
    return {tls_stream::client(std::move(c),
                               tls_context::client(files.first, {.in_kernel = true}).value(),
                               "anna.test")
                .value(),
            tls_stream::server(
                std::move(s),
                tls_context::server(files.first, files.second, {.in_kernel = true}).value())
                .value()};
}

// Its handshake is made by plain threads, so that no loop has seen it yet.
inline tls_pair shaken_by_threads(tls_pair p = unshaken()) {
    std::thread server([&p] { EXPECT_TRUE(p.server.handshake()); });
    EXPECT_TRUE(p.client.handshake());
    server.join();
    return p;
}

}  // namespace weft::testing
