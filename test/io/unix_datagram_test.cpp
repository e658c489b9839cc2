#include "weft/io/unix_datagram.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "test/io/names.hpp"
#include "weft/base/errc.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::endpoint;
using weft::unix_datagram;
using weft::testing::next_of;

class local_datagram : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(local_datagram);

endpoint own_name(const char* what) {
    return endpoint::local("@weft." + std::string(what) + std::to_string(::getpid())).value();
}

TEST_P(local_datagram, arrives_whole_with_its_sender) {
    run([] {
        unix_datagram a = unix_datagram::bind(own_name("a")).value();
        unix_datagram b = unix_datagram::bind(own_name("b")).value();
        ASSERT_TRUE(a.send_to(bytes_of("one"), own_name("b")));
        ASSERT_TRUE(a.send_to(bytes_of(""), own_name("b")));
        ASSERT_TRUE(a.send_to(bytes_of("three"), own_name("b")));
        std::string s(100, 0);
        const weft::recv_from_result d = b.recv_from(room(s)).value();
        EXPECT_EQ(s.substr(0, d.bytes), "one");
        EXPECT_EQ(d.from, own_name("a"));
        EXPECT_EQ(next_of(b), "");
        EXPECT_EQ(next_of(b), "three");
    });
}

TEST_P(local_datagram, reports_how_much_did_not_fit) {
    run([] {
        auto [a, b] = unix_datagram::pair().value();
        ASSERT_TRUE(a.send(bytes_of("0123456789")));
        ASSERT_TRUE(a.send(bytes_of("next")));
        std::string s(4, 0);
        const weft::recv_result r = b.recv(room(s)).value();
        EXPECT_EQ(r.bytes, 4u);
        EXPECT_EQ(r.truncated_bytes, 6u);
        EXPECT_EQ(next_of(b), "next");
    });
}

TEST_P(local_datagram, from_an_unnamed_socket_has_no_sender) {
    run([] {
        unix_datagram b = unix_datagram::bind(own_name("b")).value();
        unix_datagram named = unix_datagram::bind(own_name("a")).value();
        unix_datagram nameless = unix_datagram::connect(own_name("b")).value();
        std::string s(10, 0);
        weft::incoming_datagram place = {.into = room(s)};
        ASSERT_TRUE(named.send_to(bytes_of("x"), own_name("b")));
        ASSERT_EQ(b.recv_many({&place, 1}).value(), 1u);
        EXPECT_EQ(place.from, own_name("a"));
        ASSERT_TRUE(nameless.send(bytes_of("x")));
        ASSERT_EQ(b.recv_many({&place, 1}).value(), 1u);
        EXPECT_EQ(place.from, endpoint());
    });
}

// The queue of the peer is short: more than fits is sent as it takes them.
TEST_P(local_datagram, sends_wait_while_the_peer_takes_none) {
    run([] {
        unix_datagram b = unix_datagram::bind(own_name("b")).value();
        unix_datagram a = unix_datagram::connect(own_name("b")).value();
        constexpr int count = 5000;
        int sent = 0;
        fiber sender([&] {
            for (; sent != count; ++sent)
                if (!a.send(bytes_of(std::to_string(sent)))) return;
        });
        weft::this_fiber::sleep_for(2ms);
        EXPECT_LT(sent, count);
        for (int i = 0; i != count; ++i) ASSERT_EQ(next_of(b), std::to_string(i));
        sender.join();
        EXPECT_EQ(sent, count);
    });
}

TEST_P(local_datagram, batches_are_whole_and_in_order) {
    run([] {
        auto [a, b] = unix_datagram::pair().value();
        std::string text(95, 'x');
        for (std::size_t i = 0; i != text.size(); ++i) text[i] = static_cast<char>(i);
        const std::array<weft::outgoing_datagram, 2> all = {
            {{.bytes = bytes_of("first")}, {.bytes = bytes_of(text), .segment = 10}}};
        weft::send_many_result sent;
        fiber sender([&, &s = a] { sent = s.send_many(all); });
        EXPECT_EQ(next_of(b), "first");
        std::string got;
        for (int i = 0; i != 10; ++i) got += next_of(b);
        sender.join();
        EXPECT_EQ(got, text);
        EXPECT_EQ(sent.count(), 2u);
        EXPECT_TRUE(sent.cut_here());
    });
}

TEST_P(local_datagram, can_use_adopted_descriptors) {
    run([] {
        int numbers[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, numbers), 0);
        unix_datagram a = unix_datagram::adopt(numbers[0]).value();
        unix_datagram b = unix_datagram::adopt(numbers[1]).value();
        ASSERT_TRUE(a.send(bytes_of("x")));
        EXPECT_EQ(next_of(b), "x");
        EXPECT_EQ(unix_datagram::adopt(-1).error(), std::errc::bad_file_descriptor);
    });
}

TEST_P(local_datagram, refuses_invalid_arguments) {
    run([] {
        unix_datagram s = unix_datagram::bind(own_name("s")).value();
        const endpoint ip(weft::ip_address::loopback(), 9);
        EXPECT_EQ(unix_datagram::bind(own_name("s")).error(), std::errc::address_in_use);
        EXPECT_EQ(unix_datagram::bind(ip).error(), std::errc::address_family_not_supported);
        EXPECT_EQ(unix_datagram::connect(ip).error(), std::errc::address_family_not_supported);
        EXPECT_EQ(unix_datagram::connect(own_name("nobody")).error(),
                  std::errc::connection_refused);
        s.set_recv_timeout(1ms);
        EXPECT_EQ(next_of(s), std::make_error_code(std::errc::timed_out).message());
        auto [a, b] = unix_datagram::pair().value();
        b.close();
        EXPECT_EQ(a.send(bytes_of("x")).error(), std::errc::connection_refused);
        EXPECT_EQ(b.send(bytes_of("x")).error(), weft::errc::closed);
    });
}

}  // namespace
