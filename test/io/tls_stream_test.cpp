#include "weft/io/tls/tls_stream.hpp"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "test/io/drivers.hpp"
#include "test/io/tls_identity.hpp"
#include "weft/task/task.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace std::chrono_literals;
using weft::bytes_of;
using weft::errc;
using weft::fiber;
using weft::tls_context;
using weft::tls_refusal;
using weft::tls_stream;
using weft::transferred;
using weft::testing::room;
using weft::testing::tls_identity;

const tls_identity& anna() {
    static const tls_identity the_one("anna.test");
    return the_one;
}

tls_context server_context() {
    return tls_context::server(anna().certificate(), anna().key()).value();
}
tls_context client_context() { return tls_context::client(anna().certificate()).value(); }

// Two ends that have not spoken yet.
struct tls_pair {
    tls_stream client;
    tls_stream server;
};

tls_pair over(weft::tcp_stream c, weft::tcp_stream s, const std::string& host = "anna.test",
              const tls_context& trusts = client_context()) {
    return {tls_stream::client(std::move(c), trusts, host).value(),
            tls_stream::server(std::move(s), server_context()).value()};
}

tls_pair unshaken(const std::string& host = "anna.test",
                  const tls_context& trusts = client_context()) {
    auto [c, s] = weft::testing::connected();
    return over(std::move(c), std::move(s), host, trusts);
}

void shake(tls_pair& p) {
    fiber f([&] { EXPECT_TRUE(p.server.handshake()); });
    EXPECT_TRUE(p.client.handshake());
    f.join();
}

tls_pair shaken() {
    tls_pair p = unshaken();
    shake(p);
    return p;
}

// No two of its words are alike.
std::string words(std::size_t bytes) {
    std::string s(bytes, 0);
    for (std::uint32_t i = 0; i < bytes / 4; ++i) std::memcpy(s.data() + i * 4, &i, 4);
    return s;
}

std::string read_to_the_end(tls_stream& s) {
    std::string got;
    std::string piece(50'000, 0);
    while (const auto n = s.read(room(piece)).value()) got.append(piece, 0, n);
    return got;
}

class tls : public weft::testing::on_each_driver {
protected:
    void TearDown() override { EXPECT_EQ(::ERR_peek_error(), 0u) << "OpenSSL has noted something"; }
};
INSTANTIATE_ON_DRIVERS(tls);

TEST_P(tls, carries_bytes_both_ways) {
    run([] {
        auto [client, server] = shaken();
        EXPECT_STREQ(client.version(), "TLSv1.3");
        EXPECT_TRUE(client.write_all(bytes_of("question")));
        std::string s(100, 0);
        EXPECT_EQ(server.read(room(s)).value(), 8u);
        EXPECT_EQ(s.substr(0, 8), "question");
        EXPECT_TRUE(server.write_all(bytes_of("answer")));
        s.resize(3);
        EXPECT_TRUE(client.read_exact(room(s)));
        EXPECT_EQ(s, "ans");
        EXPECT_TRUE(client.read_exact(room(s)));
        EXPECT_EQ(s, "wer");
        EXPECT_TRUE(client.write_all({}));
        EXPECT_EQ(client.read({}).value(), 0u);
    });
}

TEST_P(tls, one_that_was_moved_from_or_never_was_says_so) {
    run([] {
        tls_pair p = unshaken();
        const tls_stream there = std::move(p.client);
        tls_stream never;
        for (tls_stream* none : {&p.client, &never}) {
            std::string s(4, 0);
            EXPECT_FALSE(*none);
            EXPECT_EQ(none->handshake().error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read(room(s)).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_exact(room(s)).error, std::errc::bad_file_descriptor);
            EXPECT_EQ(none->write_all(bytes_of("x")).error, std::errc::bad_file_descriptor);
            EXPECT_EQ(none->shutdown().error(), std::errc::bad_file_descriptor);
            none->under().set_options({.read_timeout = 1ms});
            EXPECT_EQ(none->under().options().read_timeout, weft::duration::max());
            EXPECT_EQ(none->native_handle(), nullptr);
            EXPECT_STREQ(none->version(), "");
            none->close();
        }
        EXPECT_TRUE(there);
    });
}

TEST_P(tls, serves_the_version_before) {
    run([] {
        const tls_context old = client_context();
        ::SSL_CTX_set_max_proto_version(old.native_handle(), TLS1_2_VERSION);
        tls_pair p = unshaken("anna.test", old);
        shake(p);
        EXPECT_STREQ(p.client.version(), "TLSv1.2");
        EXPECT_TRUE(p.client.write_all(bytes_of("question")));
        EXPECT_TRUE(p.client.shutdown());
        EXPECT_EQ(read_to_the_end(p.server), "question");
    });
}

TEST_P(tls, nobody_else_can_read_it) {
    run([] {
        auto [near, far] = weft::testing::connected();
        auto [c, s] = weft::testing::connected();
        tls_pair p = over(std::move(near), std::move(s));
        std::string seen;
        // Who stands between passes on what he sees, three bytes at a time.
        auto pass = [&seen](weft::tcp_stream& from, weft::tcp_stream& to) {
            std::string b(3, 0);
            while (const auto n = from.read(room(b)).value_or(0)) {
                seen.append(b, 0, n);
                if (!to.write_all(bytes_of(std::string_view(b.data(), n)))) break;
            }
        };
        fiber there([&] { pass(far, c); });
        fiber back([&] { pass(c, far); });
        shake(p);
        EXPECT_TRUE(p.client.write_all(bytes_of("a secret of some length")));
        std::string got(23, 0);
        EXPECT_TRUE(p.server.read_exact(room(got)));
        EXPECT_EQ(got, "a secret of some length");
        EXPECT_EQ(seen[0], 22) << "the record of a handshake";
        EXPECT_EQ(seen.find("secret"), std::string::npos);
        p.client.close();
        p.server.close();
        there.join();
        back.join();
    });
}

TEST_P(tls, both_write_more_than_fits_between_them) {
    run([] {
        auto [client, server] = shaken();
        const std::string sent = words(3 << 20);
        auto send = [&](tls_stream& s) {
            const transferred t = s.write_all(bytes_of(sent));
            EXPECT_TRUE(t) << t.error.message();
            EXPECT_EQ(t.bytes, sent.size());
            EXPECT_TRUE(s.shutdown());
        };
        fiber a([&] { send(client); });
        fiber b([&] { EXPECT_TRUE(read_to_the_end(client) == sent); });
        fiber c([&] { send(server); });
        EXPECT_TRUE(read_to_the_end(server) == sent);
        a.join();
        b.join();
        c.join();
    });
}

TEST_P(tls, tells_the_end) {
    run([] {
        auto [client, server] = shaken();
        std::string s(10, 0);
        EXPECT_TRUE(client.write_all(bytes_of("last")));
        EXPECT_TRUE(client.shutdown());
        EXPECT_TRUE(client.shutdown()) << "it is said already";
        EXPECT_EQ(client.write_all(bytes_of("x")).error, std::errc::broken_pipe);
        const transferred t = server.read_exact(room(s));
        EXPECT_EQ(t.bytes, 4u);
        EXPECT_EQ(t.error, errc::end_of_stream);
        EXPECT_EQ(server.read(room(s)).value(), 0u);
        EXPECT_EQ(server.read(room(s)).value(), 0u);
        EXPECT_TRUE(server.write_all(bytes_of("still"))) << "the other direction is open";
        EXPECT_EQ(client.read(room(s)).value(), 5u);
    });
}

TEST_P(tls, being_cut_off_is_no_end) {
    run([] {
        std::string s(10, 0);
        auto between = shaken();
        EXPECT_TRUE(between.client.write_all(bytes_of("last")));
        EXPECT_TRUE(between.client.under().shutdown(weft::direction::write));
        EXPECT_EQ(between.server.read(room(s)).value(), 4u);
        EXPECT_EQ(between.server.read(room(s)).error(), errc::end_of_stream);
        EXPECT_EQ(between.server.read(room(s)).error(), errc::end_of_stream) << "for good";
        EXPECT_EQ(between.server.write_all(bytes_of("x")).error, errc::end_of_stream);
        auto within = shaken();
        EXPECT_TRUE(within.client.under().write_all(bytes_of({"\x17\x03\x03\0\x40half", 9})));
        EXPECT_TRUE(within.client.under().shutdown(weft::direction::write));
        EXPECT_EQ(within.server.read(room(s)).error(), errc::end_of_stream);
        tls_pair before = unshaken();
        EXPECT_TRUE(before.client.under().shutdown(weft::direction::write));
        EXPECT_EQ(before.server.handshake().error(), errc::end_of_stream);
    });
}

TEST_P(tls, refuses_what_was_changed) {
    run([] {
        auto [client, server] = shaken();
        std::string forged("\x17\x03\x03\0\x20", 5);
        forged.append(32, 'x');
        EXPECT_TRUE(client.under().write_all(bytes_of(forged)));
        std::string s(10, 0);
        const std::error_code e = server.read(room(s)).error();
        EXPECT_EQ(e.category(), weft::tls_category()) << e.message();
        EXPECT_EQ(server.read(room(s)).error(), e) << "for good";
    });
}

// What a client says of who he finds, and that it ends the handshake of the other too.
std::error_code refusal_of(tls_pair p) {
    std::error_code at_server;
    fiber f([&] { at_server = p.server.handshake().error(); });
    const std::error_code e = p.client.handshake().error();
    EXPECT_EQ(p.client.handshake().error(), e) << "for good";
    p.client.close();
    f.join();
    EXPECT_EQ(at_server.category(), weft::tls_category()) << at_server.message();
    return e;
}

TEST_P(tls, refuses_another_host) {
    run([] {
        EXPECT_EQ(refusal_of(unshaken("bert.test")), tls_refusal::other_host);
        EXPECT_EQ(refusal_of(unshaken("127.0.0.2")), tls_refusal::other_host);
        EXPECT_EQ(refusal_of(unshaken("nna.test")), tls_refusal::other_host);
    });
}

TEST_P(tls, refuses_whom_nobody_trusts) {
    run([] {
        const tls_identity bert("bert.test");
        const tls_context only_bert = tls_context::client(bert.certificate()).value();
        const std::error_code e = refusal_of(unshaken("anna.test", only_bert));
        EXPECT_EQ(e, tls_refusal::not_trusted);
        EXPECT_EQ(e.value(), X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT) << e.message();
        EXPECT_EQ(refusal_of(unshaken("anna.test", tls_context::client().value())),
                  tls_refusal::not_trusted);
    });
}

TEST_P(tls, refuses_whose_time_is_over) {
    run([] {
        const tls_identity past("anna.test", -1);
        auto [c, s] = weft::testing::connected();
        const std::error_code e = refusal_of(
            {tls_stream::client(std::move(c), tls_context::client(past.certificate()).value(),
                                "anna.test")
                 .value(),
             tls_stream::server(std::move(s),
                                tls_context::server(past.certificate(), past.key()).value())
                 .value()});
        EXPECT_EQ(e, tls_refusal::not_trusted);
        EXPECT_EQ(e.value(), X509_V_ERR_CERT_HAS_EXPIRED) << e.message();
    });
}

TEST_P(tls, knows_an_address_as_it_knows_a_name) {
    run([] {
        tls_pair p = unshaken("127.0.0.1");
        shake(p);
    });
}

TEST_P(tls, is_told_whom_it_speaks_to) {
    run([] {
        for (const std::string& host : {std::string(), std::string("anna.test\0", 10)}) {
            auto [c, s] = weft::testing::connected();
            EXPECT_EQ(tls_stream::client(std::move(c), client_context(), host).error(),
                      std::errc::invalid_argument);
        }
        EXPECT_EQ(tls_stream::client({}, client_context(), "anna.test").error(), errc::closed);
        EXPECT_EQ(tls_stream::server({}, server_context()).error(), errc::closed);
    });
}

TEST_P(tls, says_what_is_no_tls) {
    run([] {
        auto [c, under] = weft::testing::connected();
        tls_stream client = tls_stream::client(std::move(c), client_context(), "anna.test").value();
        EXPECT_TRUE(under.write_all(bytes_of("HTTP/1.0 400 what?\r\n\r\n")));
        const std::error_code e = client.handshake().error();
        EXPECT_EQ(e.category(), weft::tls_category());
        EXPECT_NE(e.message().find("wrong version number"), std::string::npos) << e.message();
    });
}

TEST_P(tls, begins_with_a_handshake) {
    run([] {
        tls_pair p = unshaken();
        std::string s(4, 0);
        EXPECT_EQ(p.client.read(room(s)).error(), std::errc::not_connected);
        EXPECT_EQ(p.client.write_all(bytes_of("x")).error, std::errc::not_connected);
        EXPECT_EQ(p.client.shutdown().error(), std::errc::not_connected);
        shake(p);
        EXPECT_TRUE(p.client.handshake()) << "it is through already";
    });
}

TEST_P(tls, a_stop_ends_a_read_and_costs_nothing) {
    run([] {
        auto [client, server] = shaken();
        std::error_code how;
        std::string s(4, 0);
        fiber f([&] { how = server.read(room(s)).error(); }, {.launch = weft::launch::dispatch});
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        EXPECT_TRUE(client.write_all(bytes_of("kept")));
        EXPECT_TRUE(server.read_exact(room(s)));
        EXPECT_EQ(s, "kept");
    });
}

TEST_P(tls, a_stop_ends_a_handshake_and_costs_nothing) {
    run([] {
        tls_pair p = unshaken();
        std::error_code how;
        fiber f([&] { how = p.client.handshake().error(); }, {.launch = weft::launch::dispatch});
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        shake(p);
    });
}

TEST_P(tls, deadlines_end_what_waits) {
    run([] {
        tls_pair slow = unshaken();
        slow.client.under().set_options({.read_timeout = 1ms});
        EXPECT_EQ(slow.client.handshake().error(), std::errc::timed_out);
        auto [client, server] = shaken();
        std::string s(4, 0);
        server.under().set_options({.read_timeout = 1ms});
        EXPECT_EQ(server.read(room(s)).error(), std::errc::timed_out);
        const weft::timeout_scope limit(1ms);
        EXPECT_EQ(client.read(room(s)).error(), std::errc::operation_canceled);
    });
}

TEST_P(tls, a_write_that_was_ended_goes_on_where_it_was) {
    run([] {
        auto [client, server] = shaken();
        const int few = 64 << 10;
        ::setsockopt(client.under().native_handle(), SOL_SOCKET, SO_SNDBUF, &few, sizeof few);
        const std::string all = words(8 << 20);
        const std::string_view text = all;
        transferred t;
        fiber f([&] { t = client.write_all(bytes_of(text)); }, {.launch = weft::launch::dispatch});
        f.request_stop();
        f.join();
        EXPECT_EQ(t.error, std::errc::operation_canceled);
        std::size_t done = t.bytes;
        client.under().set_options({.write_timeout = 1ms});
        t = client.write_all(bytes_of(text.substr(done)));
        EXPECT_EQ(t.error, std::errc::timed_out);
        done += t.bytes;
        EXPECT_GT(done, 0u);
        EXPECT_LT(done, text.size());
        client.under().set_options({});
        fiber g([&] {
            EXPECT_TRUE(client.write_all(bytes_of(text.substr(done))));
            EXPECT_TRUE(client.shutdown());
        });
        EXPECT_TRUE(read_to_the_end(server) == all);
        g.join();
    });
}

TEST_P(tls, one_reads_and_one_writes_at_a_time) {
    run([] {
        auto [client, server] = shaken();
        std::string s(4, 0);
        fiber f([&] { EXPECT_EQ(server.read(room(s)).value(), 4u); },
                {.launch = weft::launch::dispatch});
        std::string more(4, 0);
        EXPECT_EQ(server.read(room(more)).error(), std::errc::operation_in_progress);
        EXPECT_EQ(server.read_exact(room(more)).error, std::errc::operation_in_progress);
        EXPECT_EQ(server.handshake().error(), std::errc::operation_in_progress);
        EXPECT_TRUE(server.write_all(bytes_of("at once")));
        EXPECT_TRUE(client.write_all(bytes_of("text")));
        f.join();
    });
}

TEST_P(tls, an_operation_that_is_given_up_is_in_nobodys_way) {
    run([] {
        auto [client, server] = shaken();
        std::string s(4, 0);
        {
            auto given_up = server.async_read(room(s));
            EXPECT_FALSE(given_up.ready());
        }
        EXPECT_TRUE(client.write_all(bytes_of("text")));
        EXPECT_EQ(server.read(room(s)).value(), 4u);
    });
}

// Of OpenSSL's notes the first is told.
TEST_P(tls, what_somebody_else_has_done_wrong_is_not_its_own_error) {
    run([] {
        auto [c, s] = weft::testing::connected();
        tls_context gone = client_context();
        const tls_context kept = std::move(gone);
        ERR_raise(ERR_LIB_USER, 77);
        const auto none = tls_stream::client(std::move(c), gone, "anna.test");  // NOLINT: is moved
        ASSERT_FALSE(none);
        EXPECT_NE(ERR_GET_LIB(static_cast<unsigned long>(none.error().value())), ERR_LIB_USER);
    });
}

TEST_P(tls, close_ends_what_waits) {
    run([] {
        auto [client, server] = shaken();
        std::error_code how;
        std::string s(4, 0);
        fiber f([&] { how = server.read(room(s)).error(); }, {.launch = weft::launch::dispatch});
        server.close();
        f.join();
        EXPECT_EQ(how, errc::closed);
        EXPECT_EQ(server.write_all(bytes_of("x")).error, errc::closed);
        EXPECT_EQ(server.shutdown().error(), errc::closed);
        EXPECT_EQ(client.read(room(s)).error(), errc::end_of_stream);
    });
}

TEST_P(tls, nobody_gets_a_signal) {
    struct ::sigaction before;
    ::sigaction(SIGPIPE, nullptr, &before);
    ASSERT_EQ(before.sa_handler, SIG_DFL) << "it would end the program";
    run([] {
        auto [client, server] = shaken();
        client.under().abort();
        const std::string much(1 << 20, 'x');
        std::error_code how;
        for (int i = 0; i < 100 && !how; ++i) how = server.write_all(bytes_of(much)).error;
        EXPECT_TRUE(how == std::errc::broken_pipe || how == std::errc::connection_reset)
            << how.message();
    });
}

TEST_P(tls, serves_tasks_as_it_serves_fibers) {
    run([] {
        tls_pair p = unshaken();
        auto ask = [&]() -> weft::task<std::string> {
            EXPECT_TRUE(co_await p.client.async_handshake());
            EXPECT_TRUE(co_await p.client.async_write_all(bytes_of("?")));
            std::string s(1, 0);
            EXPECT_EQ((co_await p.client.async_read(room(s))).value(), 1u);
            EXPECT_TRUE(co_await p.client.async_shutdown());
            co_return s;
        };
        auto answer = [&]() -> weft::task<> {
            EXPECT_TRUE(co_await p.server.async_handshake());
            std::string s(1, 0);
            EXPECT_TRUE(co_await p.server.async_read_exact(room(s)));
            EXPECT_TRUE(co_await p.server.async_write_all(bytes_of("!")));
            EXPECT_EQ((co_await p.server.async_read(room(s))).value(), 0u);
        };
        EXPECT_EQ(std::get<0>(weft::await(weft::when_all(ask(), answer()))), "!");
    });
}

TEST_P(tls, serves_plain_threads) {
    auto [c, s] = weft::testing::connected();
    tls_stream client = tls_stream::client(std::move(c), client_context(), "anna.test").value();
    std::thread far([under = std::move(s)]() mutable {
        tls_stream server = tls_stream::server(std::move(under), server_context()).value();
        EXPECT_TRUE(server.handshake());
        EXPECT_TRUE(server.write_all(bytes_of("far")));
        EXPECT_TRUE(server.shutdown());
    });
    run([&] {
        EXPECT_TRUE(client.handshake());
        EXPECT_EQ(read_to_the_end(client), "far");
    });
    far.join();
}

}  // namespace
