#include "weft/io/unix_seqpacket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "test/io/names.hpp"
#include "weft/base/errc.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::endpoint;
using weft::unix_seqpacket;
using weft::unix_seqpacket_listener;
using weft::testing::next_of;

class seqpacket : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(seqpacket);

TEST_P(seqpacket, keeps_messages_apart_and_reports_the_end) {
    run([] {
        auto [a, b] = unix_seqpacket::pair().value();
        for (const char* text : {"one", "two", "three"}) ASSERT_TRUE(a.send(bytes_of(text)));
        ASSERT_TRUE(a.end());
        EXPECT_EQ(next_of(b), "one");
        EXPECT_EQ(next_of(b), "two");
        EXPECT_EQ(next_of(b), "three");
        std::string s(10, 0);
        EXPECT_EQ(b.recv(room(s)).error(), weft::errc::unexpected_eof);
        ASSERT_TRUE(b.send(bytes_of("the other way")));
        EXPECT_EQ(next_of(a), "the other way");
        a.close();
        EXPECT_EQ(b.send(bytes_of("x")).error(), std::errc::broken_pipe);
    });
}

TEST_P(seqpacket, waits_for_a_message_and_for_the_end) {
    run([] {
        auto [a, b] = unix_seqpacket::pair().value();
        std::string got;
        std::error_code how;
        fiber reader([&, &s = b] {
            got = next_of(s);
            std::string room_for(10, 0);
            how = s.recv(room(room_for)).error();
        });
        weft::this_fiber::sleep_for(2ms);
        ASSERT_TRUE(a.send(bytes_of("message")));
        weft::this_fiber::sleep_for(2ms);
        EXPECT_EQ(got, "message");
        a.close();
        reader.join();
        EXPECT_EQ(how, weft::errc::unexpected_eof);
    });
}

TEST_P(seqpacket, reports_what_did_not_fit_and_sends_no_empty_message) {
    run([] {
        auto [a, b] = unix_seqpacket::pair().value();
        EXPECT_EQ(a.send(bytes_of("")).error(), std::errc::invalid_argument);
        ASSERT_TRUE(a.send(bytes_of("0123456789")));
        ASSERT_TRUE(a.send(bytes_of("next")));
        std::string s(4, 0);
        const weft::recv_result r = b.recv(room(s)).value();
        EXPECT_EQ(r.bytes, 4u);
        EXPECT_EQ(r.truncated_bytes, 6u);
        EXPECT_EQ(next_of(b), "next");
    });
}

TEST_P(seqpacket, connects_to_a_listener_and_knows_its_peer) {
    run([] {
        const endpoint e = endpoint::local("@weft.seqpacket." + std::to_string(::getpid())).value();
        unix_seqpacket_listener l = unix_seqpacket_listener::bind(e).value();
        unix_seqpacket c = unix_seqpacket::connect(e).value();
        unix_seqpacket s = l.accept().value();
        ASSERT_TRUE(c.send(bytes_of("hello")));
        EXPECT_EQ(next_of(s), "hello");
        EXPECT_EQ(c.remote_endpoint(), e);
        for (const unix_seqpacket* one : {&c, &s}) {
            const weft::peer_credentials p = one->credentials().value();
            EXPECT_EQ(p.process, ::getpid());
            EXPECT_EQ(p.user, ::getuid());
            EXPECT_EQ(p.group, ::getgid());
        }
        auto [a, b] = weft::unix_stream::pair().value();
        EXPECT_EQ(a.credentials().value().process, ::getpid());
        a.close();
        EXPECT_EQ(a.credentials().error(), weft::errc::closed);
        // Kinds do not mix.
        EXPECT_FALSE(weft::unix_stream::connect(e));
        EXPECT_EQ(weft::unix_listener::adopt(::dup(l.native_handle())).error(),
                  std::errc::invalid_argument);
        EXPECT_TRUE(unix_seqpacket_listener::adopt(::dup(l.native_handle())));
    });
}

TEST_P(seqpacket, serves_tasks_and_ends_at_a_timeout_a_stop_or_a_close) {
    run([] {
        auto [a, b] = unix_seqpacket::pair().value();
        auto ask = [](unix_seqpacket& from, unix_seqpacket& to) -> weft::task<std::string> {
            const auto sent = co_await from.async_send(bytes_of("by a task"));
            EXPECT_TRUE(sent);
            std::string s(100, 0);
            const auto r = co_await to.async_recv(room(s));
            co_return s.substr(0, r.value().bytes);
        };
        EXPECT_EQ(weft::await(ask(a, b)), "by a task");
        std::string s(10, 0);
        b.set_recv_timeout(2ms);
        EXPECT_EQ(b.recv(room(s)).error(), std::errc::timed_out);
        b.set_recv_timeout(weft::no_timeout);
        std::error_code how;
        fiber reader([&, &from = b] { how = from.recv(room(s)).error(); });
        weft::this_fiber::yield();
        reader.request_stop();
        reader.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        fiber other([&, &from = b] { how = from.recv(room(s)).error(); });
        weft::this_fiber::yield();
        b.close();
        other.join();
        EXPECT_EQ(how, weft::errc::closed);
    });
}

}  // namespace
