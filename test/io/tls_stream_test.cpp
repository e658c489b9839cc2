#include "weft/io/tls/tls_stream.hpp"

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "test/io/names.hpp"
#include "test/io/tls_pair.hpp"
#include "weft/task/task.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::errc;
using weft::tls_context;
using weft::tls_stream;
using weft::tls_verify_error;
using weft::transfer_result;
using weft::testing::anna;
using weft::testing::bytes_unlike;
using weft::testing::client_context;
using weft::testing::over;
using weft::testing::server_context;
using weft::testing::tls_identity;
using weft::testing::tls_pair;
using weft::testing::unshaken;

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

TEST_P(tls, refuses_use_when_moved_from_or_empty) {
    run([] {
        tls_pair p = unshaken();
        const tls_stream there = std::move(p.client);
        tls_stream never;
        for (tls_stream* none : {&p.client, &never}) {
            std::string s(4, 0);
            EXPECT_FALSE(*none);
            EXPECT_EQ(none->handshake().error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read(room(s)).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_exact(room(s)).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->write_all(bytes_of("x")).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->shutdown().error(), std::errc::bad_file_descriptor);
            none->under().set_options({.read_timeout = 1ms});
            EXPECT_EQ(none->under().options().read_timeout, weft::no_timeout);
            EXPECT_EQ(none->native_handle(), nullptr);
            EXPECT_STREQ(none->version(), "");
            none->close();
        }
        EXPECT_TRUE(there);
    });
}

TEST_P(tls, serves_tls_1_2) {
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

TEST_P(tls, is_unreadable_on_the_wire) {
    run([] {
        auto [near, far] = weft::testing::connected();
        auto [c, s] = weft::testing::connected();
        tls_pair p = over(std::move(near), std::move(s));
        std::string seen;
        // The relay between the two forwards what it reads, three bytes at a time.
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

TEST_P(tls, both_ends_write_more_than_the_buffers_hold) {
    run([] {
        auto [client, server] = shaken();
        const std::string sent = bytes_unlike(3 << 20);
        auto send = [&](tls_stream& s) {
            const transfer_result t = s.write_all(bytes_of(sent));
            EXPECT_TRUE(t) << t.error().message();
            EXPECT_EQ(t.bytes(), sent.size());
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

TEST_P(tls, reports_the_end) {
    run([] {
        auto [client, server] = shaken();
        std::string s(10, 0);
        EXPECT_TRUE(client.write_all(bytes_of("last")));
        EXPECT_TRUE(client.shutdown());
        EXPECT_TRUE(client.shutdown()) << "it is said already";
        EXPECT_EQ(client.write_all(bytes_of("x")).error(), std::errc::broken_pipe);
        const transfer_result t = server.read_exact(room(s));
        EXPECT_EQ(t.bytes(), 4u);
        EXPECT_EQ(t.error(), errc::unexpected_eof);
        EXPECT_EQ(server.read(room(s)).value(), 0u);
        EXPECT_EQ(server.read(room(s)).value(), 0u);
        EXPECT_TRUE(server.write_all(bytes_of("still"))) << "the other direction is open";
        EXPECT_EQ(client.read(room(s)).value(), 5u);
    });
}

TEST_P(tls, a_truncation_is_no_orderly_end) {
    run([] {
        std::string s(10, 0);
        auto between = shaken();
        EXPECT_TRUE(between.client.write_all(bytes_of("last")));
        EXPECT_TRUE(between.client.under().shutdown(weft::direction::write));
        EXPECT_EQ(between.server.read(room(s)).value(), 4u);
        EXPECT_EQ(between.server.read(room(s)).error(), errc::unexpected_eof);
        EXPECT_EQ(between.server.read(room(s)).error(), errc::unexpected_eof) << "for good";
        EXPECT_EQ(between.server.write_all(bytes_of("x")).error(), errc::unexpected_eof);
        auto within = shaken();
        EXPECT_TRUE(within.client.under().write_all(bytes_of({"\x17\x03\x03\0\x40half", 9})));
        EXPECT_TRUE(within.client.under().shutdown(weft::direction::write));
        EXPECT_EQ(within.server.read(room(s)).error(), errc::unexpected_eof);
        tls_pair before = unshaken();
        EXPECT_TRUE(before.client.under().shutdown(weft::direction::write));
        EXPECT_EQ(before.server.handshake().error(), errc::unexpected_eof);
    });
}

TEST_P(tls, refuses_a_forged_record) {
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

// The client's error for the server that it finds; the refusal ends the server's handshake, too.
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

TEST_P(tls, refuses_a_certificate_of_another_host) {
    run([] {
        EXPECT_EQ(refusal_of(unshaken("bert.test")), tls_verify_error::hostname_mismatch);
        EXPECT_EQ(refusal_of(unshaken("127.0.0.2")), tls_verify_error::hostname_mismatch);
        EXPECT_EQ(refusal_of(unshaken("nna.test")), tls_verify_error::hostname_mismatch);
    });
}

TEST_P(tls, refuses_an_untrusted_certificate) {
    run([] {
        const tls_identity bert("bert.test");
        const tls_context only_bert = tls_context::client(bert.certificate()).value();
        const std::error_code e = refusal_of(unshaken("anna.test", only_bert));
        EXPECT_EQ(e, tls_verify_error::untrusted);
        EXPECT_EQ(e.value(), X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT) << e.message();
        EXPECT_EQ(refusal_of(unshaken("anna.test", tls_context::client().value())),
                  tls_verify_error::untrusted);
    });
}

TEST_P(tls, refuses_an_expired_certificate) {
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
        EXPECT_EQ(e, tls_verify_error::untrusted);
        EXPECT_EQ(e.value(), X509_V_ERR_CERT_HAS_EXPIRED) << e.message();
    });
}

TEST_P(tls, verifies_an_address_like_a_name) {
    run([] {
        tls_pair p = unshaken("127.0.0.1");
        shake(p);
    });
}

TEST_P(tls, refuses_an_invalid_host_or_a_closed_stream) {
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

TEST_P(tls, reports_a_peer_that_does_not_speak_tls) {
    run([] {
        auto [c, under] = weft::testing::connected();
        tls_stream client = tls_stream::client(std::move(c), client_context(), "anna.test").value();
        EXPECT_TRUE(under.write_all(bytes_of("HTTP/1.0 400 what?\r\n\r\n")));
        const std::error_code e = client.handshake().error();
        EXPECT_EQ(e.category(), weft::tls_category());
        EXPECT_NE(e.message().find("wrong version number"), std::string::npos) << e.message();
    });
}

TEST_P(tls, starts_with_a_handshake) {
    run([] {
        tls_pair p = unshaken();
        std::string s(4, 0);
        EXPECT_EQ(p.client.read(room(s)).error(), std::errc::not_connected);
        EXPECT_EQ(p.client.write_all(bytes_of("x")).error(), std::errc::not_connected);
        EXPECT_EQ(p.client.shutdown().error(), std::errc::not_connected);
        shake(p);
        EXPECT_TRUE(p.client.handshake()) << "it is through already";
    });
}

TEST_P(tls, a_stop_ends_a_read_and_loses_nothing) {
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

TEST_P(tls, a_stop_ends_a_handshake_and_loses_nothing) {
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

TEST_P(tls, deadlines_end_waiting_operations) {
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

TEST_P(tls, a_cancelled_write_resumes_where_it_stopped) {
    run([] {
        auto [client, server] = shaken();
        const int few = 64 << 10;
        ::setsockopt(client.under().native_handle(), SOL_SOCKET, SO_SNDBUF, &few, sizeof few);
        const std::string all = bytes_unlike(8 << 20);
        const std::string_view text = all;
        transfer_result t;
        fiber f([&] { t = client.write_all(bytes_of(text)); }, {.launch = weft::launch::dispatch});
        f.request_stop();
        f.join();
        EXPECT_EQ(t.error(), std::errc::operation_canceled);
        std::size_t done = t.bytes();
        client.under().set_options({.write_timeout = 1ms});
        t = client.write_all(bytes_of(text.substr(done)));
        EXPECT_EQ(t.error(), std::errc::timed_out);
        done += t.bytes();
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

// Little fits between the two, and in few segments: TCP drops data that comes in too many. Sizes
// that are set explicitly stay; those that the kernel chose grow when it decides so.
tls_pair with_little_between(tls_pair p) {
    const int few = 16 << 10;
    const int some = 64 << 10;
    const int no = 0;
    for (tls_stream* s : {&p.client, &p.server}) {
        const int number = s->under().native_handle();
        ::setsockopt(number, SOL_SOCKET, SO_SNDBUF, &few, sizeof few);
        ::setsockopt(number, SOL_SOCKET, SO_RCVBUF, &some, sizeof some);
        ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &no, sizeof no);
    }
    return p;
}
tls_pair shaken_with_little_between() { return with_little_between(shaken()); }

// The number of bytes that the kernel reports: of FIONREAD, or of SIOCOUTQ.
std::size_t bytes_in(tls_stream& s, unsigned long where) {
    int bytes = 0;
    EXPECT_EQ(::ioctl(s.under().native_handle(), where, &bytes), 0);
    return static_cast<std::size_t>(bytes);
}

// Writes until there is no more room, and is stopped. Returns how many bytes it wrote. Some of them
// are in the stream.
std::size_t write_until_full(tls_stream& s, const std::string& text) {
    transfer_result t;
    fiber f([&] { t = s.write_all(bytes_of(text)); }, {.launch = weft::launch::dispatch});
    f.request_stop();
    f.join();
    EXPECT_EQ(t.error(), std::errc::operation_canceled);
    EXPECT_LT(t.bytes(), text.size());
    return t.bytes();
}

void expect_to_read(tls_stream& s, std::string_view what) {
    std::string got(what.size(), 0);
    const transfer_result t = s.read_exact(room(got));
    EXPECT_TRUE(t) << t.bytes() << " of " << what.size() << " bytes, " << t.error().message();
    EXPECT_TRUE(got == what);
}

TEST_P(tls, a_peer_that_never_reads_its_answers_is_throttled) {
    run([] {
        tls_pair p = shaken_with_little_between();
        constexpr std::size_t most = 15'000;
        constexpr std::size_t answer_bytes = 27;
        std::size_t asked = 0;
        auto ask = [&] {
            ::SSL_key_update(p.client.native_handle(), SSL_KEY_UPDATE_REQUESTED);
            const transfer_result t = p.client.write_all(bytes_of("x"));
            asked += t.bytes();
            return t.error();
        };
        std::size_t heard = 0;
        fiber server([&] {
            std::string piece(1000, 0);
            while (const auto n = p.server.read(room(piece)).value()) heard += n;
        });
        p.client.under().set_options({.write_timeout = 100ms});
        // A writer that is only slow continues.
        std::size_t before = most;
        while (asked < most && before != heard) {
            before = heard;
            while (asked < most && !ask()) {
            }
        }
        EXPECT_LT(asked, most) << "nobody made it wait";
        EXPECT_LE(heard * answer_bytes,
                  (64u << 10) + bytes_in(p.server, SIOCOUTQ) + bytes_in(p.client, FIONREAD));
        // Once it reads, it is served to the end.
        p.client.under().set_options({});
        fiber reader([&] {
            std::string none(1, 0);
            EXPECT_EQ(p.client.read(room(none)).value(), 0u);
        });
        while (asked < most && !ask()) {
        }
        EXPECT_TRUE(p.client.shutdown());
        server.join();
        EXPECT_EQ(heard, most);
        EXPECT_TRUE(p.server.shutdown());
        reader.join();
    });
}

TEST_P(tls, a_reader_sends_what_a_write_left_over) {
    run([] {
        auto [client, server] = shaken_with_little_between();
        const std::string text = bytes_unlike(1 << 20);
        const std::size_t taken = write_until_full(server, text);
        std::string answer(2, 0);
        fiber f([&] { EXPECT_TRUE(server.read_exact(room(answer))); },
                {.launch = weft::launch::dispatch});
        expect_to_read(client, std::string_view(text).substr(0, taken));
        EXPECT_TRUE(client.write_all(bytes_of("ok")));
        f.join();
        EXPECT_EQ(answer, "ok");
    });
}

TEST_P(tls, a_waiting_reader_sends_what_a_write_left_over) {
    run([] {
        auto [client, server] = shaken_with_little_between();
        const std::string text = bytes_unlike(1 << 20);
        std::string answer(2, 0);
        fiber f([&] { EXPECT_TRUE(server.read_exact(room(answer))); },
                {.launch = weft::launch::dispatch});
        const std::size_t taken = write_until_full(server, text);
        expect_to_read(client, std::string_view(text).substr(0, taken));
        EXPECT_TRUE(client.write_all(bytes_of("ok")));
        f.join();
        EXPECT_EQ(answer, "ok");
    });
}

TEST_P(tls, a_reader_that_waits_for_room_still_receives) {
    run([] {
        auto [client, server] = shaken_with_little_between();
        const std::string text = bytes_unlike(1 << 20);
        const std::size_t taken = write_until_full(server, text);
        // Neither reads before it has written more than fits between them.
        const std::string sent = bytes_unlike(1 << 20);
        fiber f([&] { expect_to_read(server, sent); }, {.launch = weft::launch::dispatch});
        EXPECT_TRUE(client.write_all(bytes_of(sent)));
        f.join();
        fiber g([&] { EXPECT_TRUE(server.write_all(bytes_of(text).subspan(taken))); });
        expect_to_read(client, text);
        g.join();
    });
}

TEST_P(tls, a_reader_that_waits_for_room_can_be_cancelled) {
    run([] {
        auto [client, server] = shaken_with_little_between();
        const std::string text = bytes_unlike(1 << 20);
        write_until_full(server, text);
        std::string s(4, 0);
        std::error_code how;
        auto read = [&] { how = server.read(room(s)).error(); };
        fiber stopped(read, {.launch = weft::launch::dispatch});
        stopped.request_stop();
        stopped.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        server.under().set_options({.read_timeout = 1ms});
        read();
        EXPECT_EQ(how, std::errc::timed_out);
        server.under().set_options({});
        EXPECT_TRUE(client.write_all(bytes_of("text")));
        EXPECT_EQ(server.read(room(s)).value(), 4u) << "nothing was lost";
        fiber closed(read, {.launch = weft::launch::dispatch});
        server.close();
        closed.join();
        EXPECT_EQ(how, errc::closed);
    });
}

TEST_P(tls, a_reader_and_a_writer_share_the_room) {
    run([] {
        auto [client, server] = shaken_with_little_between();
        const std::string text = bytes_unlike(300'000);
        fiber reader([&] { EXPECT_EQ(read_to_the_end(server), std::string(300, 'x')); },
                     {.launch = weft::launch::dispatch});
        fiber writer([&] {
            EXPECT_TRUE(server.write_all(bytes_of(text)));
            EXPECT_TRUE(server.shutdown());
        });
        // The reader answers each key update, between the writes of the writer.
        for (int i = 0; i < 300; ++i) {
            ::SSL_key_update(client.native_handle(), SSL_KEY_UPDATE_REQUESTED);
            EXPECT_TRUE(client.write_all(bytes_of("x")));
            if (i % 3 == 0)
                expect_to_read(client, std::string_view(text).substr(
                                           static_cast<std::size_t>(i / 3) * 1000, 1000));
        }
        EXPECT_TRUE(client.shutdown());
        EXPECT_TRUE(read_to_the_end(client) == text.substr(100'000));
        writer.join();
        reader.join();
    });
}

// The shared loop notifies both, each is woken on its own thread.
TEST_P(tls, a_reading_and_a_writing_thread_share_the_room) {
    tls_pair p;
    run([&] { p = shaken_with_little_between(); });
    const std::string text = bytes_unlike(300'000);
    std::thread reader([&] { EXPECT_EQ(read_to_the_end(p.server), std::string(3000, 'x')); });
    std::thread writer([&] {
        EXPECT_TRUE(p.server.write_all(bytes_of(text)));
        EXPECT_TRUE(p.server.shutdown());
    });
    run([&] {
        for (int i = 0; i < 3000; ++i) {
            ::SSL_key_update(p.client.native_handle(), SSL_KEY_UPDATE_REQUESTED);
            EXPECT_TRUE(p.client.write_all(bytes_of("x")));
            const auto at = static_cast<std::size_t>(i) * 100;
            if (i % 10 == 0) expect_to_read(p.client, std::string_view(text).substr(at, 1000));
        }
        EXPECT_TRUE(p.client.shutdown());
        EXPECT_EQ(read_to_the_end(p.client), "");
    });
    reader.join();
    writer.join();
}

TEST_P(tls, an_empty_transfer_completes_at_once) {
    run([] {
        auto [client, server] = shaken_with_little_between();
        const std::string text = bytes_unlike(1 << 20);
        write_until_full(server, text);
        auto written = server.async_write_all({});
        EXPECT_TRUE(written.ready());
        EXPECT_TRUE(written.take(nullptr, weft::wait_status::woken));
        auto all = server.async_read_exact({});
        EXPECT_TRUE(all.ready());
        EXPECT_TRUE(all.take(nullptr, weft::wait_status::woken));
        auto some = server.async_read({});
        EXPECT_TRUE(some.ready());
        EXPECT_EQ(some.take(nullptr, weft::wait_status::woken).value(), 0u);
    });
}

// A word from the server, with which the tickets of TLS 1.3 come, and the end.
void greet(tls_pair& p) {
    fiber f([&] {
        EXPECT_TRUE(p.server.write_all(bytes_of("hello")));
        EXPECT_TRUE(p.server.shutdown());
    });
    EXPECT_EQ(read_to_the_end(p.client), "hello");
    EXPECT_TRUE(p.client.shutdown());
    f.join();
}

tls_context server_context(const weft::tls_server_options& o) {
    return tls_context::server(anna().certificate(), anna().key(), o).value();
}
tls_context client_context(const weft::tls_client_options& o) {
    return tls_context::client(anna().certificate(), o).value();
}

tls_pair unshaken_of(const tls_context& c, const tls_context& s,
                     const std::string& host = "anna.test", const weft::tls_session& session = {}) {
    auto [near, far] = weft::testing::connected();
    return {tls_stream::client(std::move(near), c, host, session).value(),
            tls_stream::server(std::move(far), s).value()};
}

tls_pair shaken_of(const tls_context& c, const tls_context& s,
                   const std::string& host = "anna.test", const weft::tls_session& session = {}) {
    tls_pair p = unshaken_of(c, s, host, session);
    shake(p);
    return p;
}

// The server's error; with TLS 1.3 a refused client receives it in a read.
std::error_code server_refuses(const tls_context& c, const tls_context& s,
                               const std::string& host = "anna.test",
                               const weft::tls_session& session = {}) {
    tls_pair p = unshaken_of(c, s, host, session);
    std::error_code e;
    fiber f([&] { e = p.server.handshake().error(); });
    std::string b(1, 0);
    EXPECT_FALSE(p.client.handshake() && p.client.read(room(b)));
    f.join();
    return e;
}

const int both_versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

TEST_P(tls, agrees_on_the_servers_first_protocol_that_is_offered) {
    run([] {
        const tls_context s = server_context({.protocols = {"h2", "http/1.1"}});
        tls_pair p = shaken_of(client_context({.protocols = {"x", "http/1.1", "h2"}}), s);
        EXPECT_EQ(p.client.protocol(), "h2");
        EXPECT_EQ(p.server.protocol(), "h2");
        p = shaken_of(client_context(), s);
        EXPECT_EQ(p.client.protocol(), "") << "it offers none";
        p = shaken_of(client_context({.protocols = {"h2"}}), server_context());
        EXPECT_EQ(p.client.protocol(), "") << "the server has none";
        const std::error_code e = server_refuses(client_context({.protocols = {"x"}}), s);
        EXPECT_EQ(e.category(), weft::tls_category()) << e.message();
        EXPECT_EQ(tls_stream().protocol(), "");
    });
}

TEST_P(tls, can_request_or_require_a_client_certificate) {
    run([] {
        using weft::tls_clients;
        const tls_identity bert("bert.test");
        const auto server = [](tls_clients how) {
            return server_context({.clients = how, .clients_trusted_file = anna().certificate()});
        };
        const tls_context no_one = client_context();
        const tls_context one =
            client_context({.certificate_file = anna().certificate(), .key_file = anna().key()});
        const tls_context stranger =
            client_context({.certificate_file = bert.certificate(), .key_file = bert.key()});
        for (const int version : both_versions) {
            for (const tls_context* c : {&no_one, &one, &stranger})
                ::SSL_CTX_set_max_proto_version(c->native_handle(), version);
            tls_pair p = shaken_of(one, server(tls_clients::required));
            EXPECT_NE(::SSL_get0_peer_certificate(p.server.native_handle()), nullptr);
            p = shaken_of(no_one, server(tls_clients::asked));
            EXPECT_EQ(::SSL_get0_peer_certificate(p.server.native_handle()), nullptr);
            p = shaken_of(stranger, server_context());
            EXPECT_EQ(::SSL_get0_peer_certificate(p.server.native_handle()), nullptr);
            EXPECT_EQ(server_refuses(no_one, server(tls_clients::required)).category(),
                      weft::tls_category());
            EXPECT_EQ(server_refuses(stranger, server(tls_clients::required)),
                      tls_verify_error::untrusted);
            EXPECT_EQ(server_refuses(stranger, server(tls_clients::asked)),
                      tls_verify_error::untrusted);
        }
    });
}

TEST_P(tls, uses_no_version_below_the_minimum) {
    run([] {
        const tls_context old = client_context();
        ::SSL_CTX_set_max_proto_version(old.native_handle(), TLS1_2_VERSION);
        const auto least = weft::tls_version::tls_1_3;
        EXPECT_EQ(server_refuses(old, server_context({.least = least})).category(),
                  weft::tls_category());
        const tls_context before = server_context();
        ::SSL_CTX_set_max_proto_version(before.native_handle(), TLS1_2_VERSION);
        EXPECT_EQ(server_refuses(client_context({.least = least}), before).category(),
                  weft::tls_category());
        tls_pair p = shaken_of(client_context({.least = least}), server_context({.least = least}));
        EXPECT_STREQ(p.client.version(), "TLSv1.3");
    });
}

TEST_P(tls, a_server_presents_the_requested_host) {
    run([] {
        const tls_identity bert("bert.test");
        // The context that refers to this one keeps it alive.
        const tls_context s = server_context(
            {.hosts = {{"Bert.Test",
                        tls_context::server(bert.certificate(), bert.key(), {.protocols = {"b"}})
                            .value()}}});
        const weft::tls_client_options o = {.protocols = {"a", "b"}};
        const tls_context to_bert = tls_context::client(bert.certificate(), o).value();
        for (const int version : both_versions) {
            ::SSL_CTX_set_max_proto_version(to_bert.native_handle(), version);
            EXPECT_EQ(shaken_of(to_bert, s, "bert.test").server.protocol(), "b");
            EXPECT_EQ(shaken_of(to_bert, s, "BERT.test").server.protocol(), "b");
            EXPECT_EQ(shaken_of(client_context(o), s, "anna.test").server.protocol(), "");
            EXPECT_EQ(shaken_of(client_context(o), s, "127.0.0.1").server.protocol(), "")
                << "an address is no name";
        }
    });
}

// Also where the server asks the client for another key, and the client so names the host again.
TEST_P(tls, a_host_has_no_nested_hosts) {
    run([] {
        const tls_identity bert("bert.test");
        const auto of_bert = [&](const char* protocol, std::map<std::string, tls_context> hosts) {
            const tls_context c = tls_context::server(bert.certificate(), bert.key(),
                                                      {.protocols = {protocol}, .hosts = hosts})
                                      .value();
            EXPECT_EQ(::SSL_CTX_set1_groups_list(c.native_handle(), "P-384"), 1);
            return c;
        };
        const tls_context s =
            of_bert("a", {{"bert.test", of_bert("b", {{"bert.test", of_bert("c", {})}})}});
        const tls_context c =
            tls_context::client(bert.certificate(), {.protocols = {"a", "b", "c"}}).value();
        for (const char* groups : {"P-384", "X25519:P-384"}) {
            EXPECT_EQ(::SSL_CTX_set1_groups_list(c.native_handle(), groups), 1);
            EXPECT_EQ(shaken_of(c, s, "bert.test").server.protocol(), "b") << groups;
        }
    });
}

TEST_P(tls, resumes_a_session_with_and_without_a_client_certificate) {
    run([] {
        const weft::tls_server_options asking = {.clients = weft::tls_clients::required,
                                                 .clients_trusted_file = anna().certificate()};
        for (const int version : both_versions) {
            for (const bool certified : {false, true}) {
                const tls_context s = certified ? server_context(asking) : server_context();
                const tls_context c = client_context(
                    {.certificate_file = anna().certificate(), .key_file = anna().key()});
                ::SSL_CTX_set_max_proto_version(c.native_handle(), version);
                weft::tls_session kept;
                for (const bool again : {false, true, true}) {
                    tls_pair p = shaken_of(c, s, "anna.test", kept);
                    greet(p);
                    EXPECT_EQ(p.server.is_resumed(), again);
                    EXPECT_EQ(p.client.is_resumed(), again);
                    EXPECT_FALSE(p.server.session()) << "it is the client's";
                    kept = p.client.session();
                    EXPECT_TRUE(kept);
                }
            }
        }
    });
}

TEST_P(tls, a_session_is_bound_to_its_host_and_contexts) {
    run([] {
        const tls_context s = server_context();
        const tls_context c = client_context();
        tls_pair p = shaken_of(c, s);
        greet(p);
        const weft::tls_session kept = p.client.session();
        EXPECT_TRUE(kept);
        const auto refused = [&](const tls_context& by, const std::string& host) {
            auto [near, far] = weft::testing::connected();
            return tls_stream::client(std::move(near), by, host, kept).error();
        };
        EXPECT_EQ(refused(c, "127.0.0.1"), std::errc::invalid_argument);
        EXPECT_EQ(refused(client_context(), "anna.test"), std::errc::invalid_argument);
        EXPECT_FALSE(shaken_of(c, server_context(), "anna.test", kept).client.is_resumed());
        EXPECT_FALSE(unshaken_of(c, s).client.session()) << "it is not agreed yet";
        EXPECT_FALSE(tls_stream().session());
        EXPECT_FALSE(tls_stream().is_resumed());
    });
}

// Otherwise a client of one host would be accepted as a client of the other, without a certificate.
TEST_P(tls, a_session_of_one_host_is_not_resumed_on_another) {
    run([] {
        const tls_context inner = server_context(
            {.clients = weft::tls_clients::required, .clients_trusted_file = anna().certificate()});
        const tls_context s = server_context({.hosts = {{"anna.test", inner}}});
        for (const int version : both_versions) {
            const tls_context c = client_context();
            ::SSL_CTX_set_max_proto_version(c.native_handle(), version);
            tls_pair guest = shaken_of(c, s, "127.0.0.1");
            greet(guest);
            SSL_SESSION* const kept = ::SSL_get1_session(guest.client.native_handle());
            tls_pair p = unshaken_of(c, s, "anna.test");
            ::SSL_set_session(p.client.native_handle(), kept);  // behind the back of the stream
            ::SSL_SESSION_free(kept);
            fiber f([&] { EXPECT_FALSE(p.server.handshake()); });
            std::string b(1, 0);
            EXPECT_FALSE(p.client.handshake() && p.client.read(room(b)));
            f.join();
        }
    });
}

TEST_P(tls, resumes_no_session_when_resumption_is_off) {
    run([] {
        for (const int version : both_versions) {
            const tls_context c = client_context();
            ::SSL_CTX_set_max_proto_version(c.native_handle(), version);
            tls_pair p = shaken_of(c, server_context({.resumes = false}));
            greet(p);
            EXPECT_FALSE(p.client.session());
            const tls_context forgets = client_context({.resumes = false});
            ::SSL_CTX_set_max_proto_version(forgets.native_handle(), version);
            p = shaken_of(forgets, server_context());
            greet(p);
            EXPECT_FALSE(p.client.session());
        }
    });
}

// Both ends want the kernel to make their records. `cipher`, if it is given, is the only cipher.
tls_pair shaken_in_kernel(int version = TLS1_3_VERSION, const char* cipher = nullptr) {
    const tls_context c = client_context({.in_kernel = true});
    ::SSL_CTX_set_max_proto_version(c.native_handle(), version);
    if (cipher != nullptr) {
        const auto set =
            version == TLS1_3_VERSION ? ::SSL_CTX_set_ciphersuites : ::SSL_CTX_set_cipher_list;
        EXPECT_EQ(set(c.native_handle(), cipher), 1);
    }
    return shaken_of(c, server_context({.in_kernel = true}));
}

// Null: the kernel can make records; else why it does not.
const char* why_not_in_kernel() {
    auto [near, far] = weft::testing::connected();
    const int r = ::setsockopt(near.native_handle(), IPPROTO_TCP, TCP_ULP, "tls", sizeof "tls");
    return r == 0 ? nullptr : std::strerror(errno);
}

void expect_to_carry_and_end(tls_pair& p) {
    const std::string sent = bytes_unlike(100'000);
    for (auto [from, to] : {std::pair(&p.client, &p.server), std::pair(&p.server, &p.client)}) {
        fiber f([&, from = from] {
            EXPECT_TRUE(from->write_all(bytes_of("first")));
            EXPECT_TRUE(from->write_all(bytes_of(sent)));
            EXPECT_TRUE(from->shutdown());
        });
        EXPECT_TRUE(read_to_the_end(*to) == "first" + sent);
        f.join();
    }
}

TEST_P(tls, records_are_encrypted_by_a_kernel_that_can) {
    run([] {
        if (const char* const why = why_not_in_kernel()) GTEST_SKIP() << "no kTLS here: " << why;
        for (const char* cipher : {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"}) {
            tls_pair p = shaken_in_kernel(TLS1_3_VERSION, cipher);
            EXPECT_TRUE(p.client.sends_in_kernel()) << cipher;
            EXPECT_TRUE(p.server.sends_in_kernel()) << cipher;
            expect_to_carry_and_end(p);
        }
        tls_pair p = shaken_in_kernel(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256");
        EXPECT_TRUE(p.client.sends_in_kernel());
        EXPECT_TRUE(p.server.sends_in_kernel());
        expect_to_carry_and_end(p);
        p = shaken_of(client_context(), server_context({.in_kernel = true}));
        EXPECT_FALSE(p.client.sends_in_kernel()) << "it is each end's own choice";
        EXPECT_TRUE(p.server.sends_in_kernel());
        expect_to_carry_and_end(p);
    });
}

TEST_P(tls, records_the_kernel_cannot_encrypt_are_encrypted_by_openssl) {
    run([] {
        tls_pair none = shaken_in_kernel(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA");
        EXPECT_FALSE(none.client.sends_in_kernel());
        EXPECT_FALSE(none.server.sends_in_kernel());
        expect_to_carry_and_end(none);
        const bool can = why_not_in_kernel() == nullptr;
        for (const int version : both_versions) {
            tls_pair p = shaken_in_kernel(version);
            EXPECT_EQ(p.client.sends_in_kernel(), can);
            EXPECT_EQ(p.server.sends_in_kernel(), can);
            expect_to_carry_and_end(p);
            // The cipher is the last of which a kernel has learned.
            p = shaken_in_kernel(version, version == TLS1_3_VERSION
                                              ? "TLS_CHACHA20_POLY1305_SHA256"
                                              : "ECDHE-ECDSA-CHACHA20-POLY1305");
            EXPECT_TRUE(can || !p.client.sends_in_kernel());
            expect_to_carry_and_end(p);
        }
        EXPECT_FALSE(shaken().client.sends_in_kernel()) << "nobody has asked for it";
        EXPECT_FALSE(tls_stream().sends_in_kernel());
    });
}

TEST_P(tls, records_without_room_in_the_socket_keep_their_type) {
    run([] {
        for (const int version : both_versions) {
            auto [client, server] = with_little_between(shaken_in_kernel(version));
            const std::string text = bytes_unlike(1 << 20);
            const std::size_t taken = write_until_full(server, text);
            // Behind the back of the stream, which would wait for room.
            EXPECT_EQ(::SSL_shutdown(server.native_handle()), 0);
            std::string answer(2, 0);
            fiber f([&] { EXPECT_TRUE(server.read_exact(room(answer))); },
                    {.launch = weft::launch::dispatch});
            EXPECT_TRUE(read_to_the_end(client) == text.substr(0, taken)) << "and the end";
            EXPECT_TRUE(client.write_all(bytes_of("ok")));
            f.join();
            EXPECT_EQ(answer, "ok");
        }
    });
}

// At a close, the kernel drops what it holds of a record that it was given and could not send yet.
TEST_P(tls, a_close_loses_no_byte_reported_as_written) {
    run([] {
        for (std::size_t bytes = 16384; bytes >= 1500; bytes -= 1500) {
            tls_pair p = shaken_in_kernel();
            if (bytes % 1000 >= 500) p = with_little_between(std::move(p));
            auto& [client, server] = p;
            const std::string piece = bytes_unlike(bytes);
            std::size_t written = 0;
            for (;;) {
                auto op = server.async_write_all(bytes_of(piece));
                if (!op.ready()) break;
                EXPECT_TRUE(op.take(nullptr, weft::wait_status::woken));
                written += bytes;
            }
            server.close();
            std::string got(written, 0);
            const transfer_result t = client.read_exact(room(got));
            EXPECT_TRUE(t) << t.bytes() << " of " << written << " in pieces of " << bytes;
        }
    });
}

// A kernel has its keys once and for all.
TEST_P(tls, a_key_update_the_kernel_cannot_make_ends_the_stream) {
    run([] {
        if (const char* const why = why_not_in_kernel()) GTEST_SKIP() << "no kTLS here: " << why;
        auto [client, server] = shaken_of(client_context(), server_context({.in_kernel = true}));
        std::string s(1, 0);
        ::SSL_key_update(client.native_handle(), SSL_KEY_UPDATE_NOT_REQUESTED);
        EXPECT_TRUE(client.write_all(bytes_of("x")));
        EXPECT_TRUE(server.read_exact(room(s))) << "it has other keys itself, and asks for none";
        EXPECT_TRUE(server.write_all(bytes_of("y")));
        expect_to_read(client, "y");
        ::SSL_key_update(client.native_handle(), SSL_KEY_UPDATE_REQUESTED);
        EXPECT_TRUE(client.write_all(bytes_of("x")));
        EXPECT_TRUE(server.read_exact(room(s)));
        EXPECT_EQ(server.write_all(bytes_of("y")).error(), std::errc::operation_not_supported);
        EXPECT_EQ(server.write_all(bytes_of("y")).error(), std::errc::operation_not_supported);
        EXPECT_EQ(server.read(room(s)).error(), std::errc::operation_not_supported) << "for good";
        server.close();
        EXPECT_EQ(client.read(room(s)).error(), errc::unexpected_eof)
            << "it was sent nothing wrong";
    });
}

TEST_P(tls, allows_one_reader_and_one_writer_at_a_time) {
    run([] {
        auto [client, server] = shaken();
        std::string s(4, 0);
        fiber f([&] { EXPECT_EQ(server.read(room(s)).value(), 4u); },
                {.launch = weft::launch::dispatch});
        std::string more(4, 0);
        EXPECT_EQ(server.read(room(more)).error(), std::errc::operation_in_progress);
        EXPECT_EQ(server.read_exact(room(more)).error(), std::errc::operation_in_progress);
        EXPECT_EQ(server.handshake().error(), std::errc::operation_in_progress);
        EXPECT_TRUE(server.write_all(bytes_of("at once")));
        EXPECT_TRUE(client.write_all(bytes_of("text")));
        f.join();
    });
}

TEST_P(tls, an_abandoned_operation_blocks_no_other) {
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

// OpenSSL reports the first entry of its error queue, which other code may have left.
TEST_P(tls, ignores_errors_left_in_the_openssl_queue) {
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

TEST_P(tls, close_ends_waiting_operations) {
    run([] {
        auto [client, server] = shaken();
        std::error_code how;
        std::string s(4, 0);
        fiber f([&] { how = server.read(room(s)).error(); }, {.launch = weft::launch::dispatch});
        server.close();
        f.join();
        EXPECT_EQ(how, errc::closed);
        EXPECT_EQ(server.write_all(bytes_of("x")).error(), errc::closed);
        EXPECT_EQ(server.shutdown().error(), errc::closed);
        EXPECT_EQ(client.read(room(s)).error(), errc::unexpected_eof);
    });
}

TEST_P(tls, a_write_to_a_closed_peer_raises_no_signal) {
    struct ::sigaction before;
    ::sigaction(SIGPIPE, nullptr, &before);
    ASSERT_EQ(before.sa_handler, SIG_DFL) << "it would end the program";
    run([] {
        auto [client, server] = shaken();
        client.under().abort();
        const std::string much(1 << 20, 'x');
        std::error_code how;
        for (int i = 0; i < 100 && !how; ++i) how = server.write_all(bytes_of(much)).error();
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

// Packets with data that a socket has sent: tcpi_data_segs_out, which the C library's tcp_info ends
// before.
std::uint32_t data_packets_of(int socket) {
    std::array<std::uint32_t, 40> about{};
    ::socklen_t bytes = sizeof about;
    EXPECT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_INFO, about.data(), &bytes), 0);
    return about[39];
}

// Hello to finished, and then the tickets; the client's hello, and its finished.
TEST_P(tls, each_flight_of_the_handshake_is_one_send) {
    run([] {
        tls_pair p = weft::testing::unshaken();
        fiber far([&] { EXPECT_TRUE(p.client.handshake()); });
        EXPECT_TRUE(p.server.handshake());
        far.join();
        EXPECT_STREQ(p.server.version(), "TLSv1.3");
        EXPECT_EQ(data_packets_of(p.server.under().native_handle()), 2u);
        EXPECT_EQ(data_packets_of(p.client.under().native_handle()), 2u);
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
