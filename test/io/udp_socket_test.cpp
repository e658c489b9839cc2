#include "weft/io/udp_socket.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <thread>

#include "test/io/names.hpp"
#include "weft/base/errc.hpp"
#include "weft/task/task.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::endpoint;
using weft::ip_address;
using weft::udp_options;
using weft::udp_socket;
using weft::testing::for_some_port;
using weft::testing::next_of;

class udp : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(udp);

udp_socket any_udp(const udp_options& o = {}) { return udp_socket::bind("127.0.0.1:0", o).value(); }

TEST_P(udp, reports_the_sender_of_a_datagram) {
    run([] {
        udp_socket a = any_udp();
        udp_socket b = any_udp();
        ASSERT_TRUE(a.send_to(bytes_of("ping"), b.local_endpoint()));
        std::string s(100, 0);
        const weft::recv_from_result d = b.recv_from(room(s)).value();
        EXPECT_EQ(s.substr(0, d.bytes), "ping");
        EXPECT_EQ(d.from, a.local_endpoint());
        EXPECT_FALSE(d.is_truncated());
        ASSERT_TRUE(b.send_to(bytes_of("pong"), d.from));
        EXPECT_EQ(next_of(a), "pong");
    });
}

TEST_P(udp, waits_for_a_datagram) {
    run([] {
        udp_socket a = any_udp();
        udp_socket b = any_udp();
        std::string order;
        fiber reader([&] { order += next_of(b); });
        weft::this_fiber::sleep_for(2ms);
        order += "w";
        ASSERT_TRUE(a.send_to(bytes_of("r"), b.local_endpoint()));
        reader.join();
        EXPECT_EQ(order, "wr");
    });
}

// With io_uring each of them has a call under way; an entry counts up to 4095.
TEST_P(udp, serves_thousands_of_concurrent_receives) {
    if (WEFT_TEST_TSAN) GTEST_SKIP() << "so many fibers take longer there than a test may";
    run([] {
        constexpr int count = 4096;
        udp_socket s = any_udp();
        const int number = s.native_handle();
        int begun = 0;
        int notified = 0;
        std::deque<fiber> all;
        for (int i = 0; i < count; ++i)
            all.emplace_back([&] {
                std::string b(1, 0);
                ++begun;
                if (s.recv(room(b)).error() == weft::errc::closed) ++notified;
            });
        while (begun != count) weft::this_fiber::yield();
        s.close();
        for (fiber& f : all) f.join();
        EXPECT_EQ(notified, count);

        udp_socket next = any_udp();
        EXPECT_EQ(next.native_handle(), number) << "it was closed by the last of them";
        ASSERT_TRUE(next.send_to(bytes_of("x"), next.local_endpoint()));
        EXPECT_EQ(next_of(next), "x");
    });
}

TEST_P(udp, honours_a_timeout_beside_thousands_of_receives) {
    if (WEFT_TEST_TSAN) GTEST_SKIP() << "so many fibers take longer there than a test may";
    run([] {
        udp_socket s = any_udp();
        int begun = 0;
        std::deque<fiber> all;
        for (int i = 0; i < 4096; ++i)
            all.emplace_back([&] {
                std::string b(1, 0);
                ++begun;
                static_cast<void>(s.recv(room(b)));
            });
        while (begun != 4096) weft::this_fiber::yield();
        s.set_recv_timeout(1ms);
        std::string b(1, 0);
        const auto r = s.recv(room(b));
        EXPECT_EQ(r.error(), std::errc::timed_out);
        s.close();
    });
}

TEST_P(udp, keeps_datagrams_apart) {
    run([] {
        udp_socket a = any_udp();
        udp_socket b = udp_socket::connect(a.local_endpoint()).value();
        for (const char* text : {"one", "", "three"}) ASSERT_TRUE(b.send(bytes_of(text)));
        EXPECT_EQ(next_of(a), "one");
        std::string s(10, 0);
        EXPECT_EQ(a.recv(room(s)).value().bytes, 0u);  // an empty one is no end
        EXPECT_EQ(next_of(a), "three");
    });
}

TEST_P(udp, reports_how_much_did_not_fit) {
    run([] {
        udp_socket a = any_udp();
        udp_socket b = any_udp();
        for (const bool waits : {false, true}) {
            fiber sender([&] {
                if (waits) weft::this_fiber::sleep_for(2ms);
                EXPECT_TRUE(a.send_to(bytes_of("0123456789"), b.local_endpoint()));
                EXPECT_TRUE(a.send_to(bytes_of("next"), b.local_endpoint()));
            });
            if (!waits) sender.join();
            std::string s(4, 0);
            const weft::recv_from_result d = b.recv_from(room(s)).value();
            EXPECT_EQ(d.bytes, 4u);
            EXPECT_EQ(d.truncated_bytes, 6u);
            EXPECT_TRUE(d.is_truncated());
            EXPECT_EQ(s, "0123");
            EXPECT_EQ(next_of(b), "next");
            if (waits) sender.join();
        }
    });
}

TEST_P(udp, reports_a_datagram_that_is_too_long) {
    run([] {
        udp_socket a = any_udp();
        const std::string much(70'000, 'x');
        EXPECT_EQ(a.send_to(bytes_of(much), a.local_endpoint()).error(), std::errc::message_size);
    });
}

TEST_P(udp, with_a_peer_receives_from_that_peer_only) {
    run([] {
        udp_socket a = any_udp();
        udp_socket b = any_udp();
        udp_socket other = any_udp();
        ASSERT_TRUE(a.set_peer(b.local_endpoint()));
        EXPECT_EQ(a.remote_endpoint(), b.local_endpoint());
        ASSERT_TRUE(other.send_to(bytes_of("other"), a.local_endpoint()));
        ASSERT_TRUE(b.send_to(bytes_of("peer"), a.local_endpoint()));
        EXPECT_EQ(next_of(a), "peer");
        ASSERT_TRUE(a.send(bytes_of("to peer")));
        EXPECT_EQ(next_of(b), "to peer");
        ASSERT_TRUE(a.set_peer(other.local_endpoint()));
        ASSERT_TRUE(other.send_to(bytes_of("new peer"), a.local_endpoint()));
        EXPECT_EQ(next_of(a), "new peer");
    });
}

TEST_P(udp, reports_a_peer_port_that_is_closed) {
    run([] {
        endpoint gone = any_udp().local_endpoint();
        udp_socket s = udp_socket::connect(gone, {.recv_timeout = 5s}).value();
        ASSERT_TRUE(s.send(bytes_of("hello")));
        std::string b(10, 0);
        EXPECT_EQ(s.recv(room(b)).error(), std::errc::connection_refused);
        // The error is delivered once, and the socket serves on.
        s.set_recv_timeout(1ms);
        EXPECT_EQ(s.recv(room(b)).error(), std::errc::timed_out);
    });
}

TEST_P(udp, ends_a_waiting_receive_when_the_peer_port_is_closed) {
    run([] {
        endpoint gone = any_udp().local_endpoint();
        udp_socket s = udp_socket::connect(gone).value();
        std::string b(10, 0);
        std::error_code how;
        fiber reader([&] { how = s.recv(room(b)).error(); });
        weft::this_fiber::sleep_for(2ms);
        ASSERT_TRUE(s.send(bytes_of("hello")));
        reader.join();
        EXPECT_EQ(how, std::errc::connection_refused);
    });
}

TEST_P(udp, serves_tasks_as_it_serves_fibers) {
    run([] {
        udp_socket a = any_udp();
        udp_socket b = any_udp();
        auto ask = [&]() -> weft::task<std::string> {
            EXPECT_TRUE(co_await a.async_send_to(bytes_of("question"), b.local_endpoint()));
            std::string s(100, 0);
            const auto d = co_await a.async_recv(room(s));
            co_return s.substr(0, d.value().bytes);
        };
        auto answer = [&]() -> weft::task<std::string> {
            std::string s(100, 0);
            const weft::recv_from_result d = (co_await b.async_recv_from(room(s))).value();
            EXPECT_TRUE(co_await b.async_send_to(bytes_of("answer"), d.from));
            co_return s.substr(0, d.bytes);
        };
        auto [got, asked] = weft::await(weft::when_all(ask(), answer()));
        EXPECT_EQ(got, "answer");
        EXPECT_EQ(asked, "question");
    });
}

TEST_P(udp, serves_plain_threads) {
    udp_socket a;
    udp_socket b;
    run([&] {
        a = any_udp();
        b = any_udp();
    });
    std::thread far([&] {
        std::string s(100, 0);
        const weft::recv_from_result d = b.recv_from(room(s)).value();
        EXPECT_TRUE(b.send_to(std::as_bytes(std::span(s).first(d.bytes)), d.from));
    });
    a.set_recv_timeout(10s);
    EXPECT_TRUE(a.send_to(bytes_of("near"), b.local_endpoint()));
    EXPECT_EQ(next_of(a), "near");
    far.join();
}

TEST_P(udp, serves_many_concurrent_receives) {
    run([] {
        udp_socket a = any_udp();
        udp_socket b = any_udp();
        int sum = 0;
        auto receive = [&] { sum += std::stoi(next_of(b)); };
        fiber x(receive);
        fiber y(receive);
        fiber z(receive);
        weft::this_fiber::sleep_for(1ms);
        for (const char* text : {"1", "10", "100"})
            ASSERT_TRUE(a.send_to(bytes_of(text), b.local_endpoint()));
        x.join();
        y.join();
        z.join();
        EXPECT_EQ(sum, 111);
    });
}

TEST_P(udp, a_receive_ends_at_its_timeout) {
    run([] {
        udp_socket s = any_udp({.recv_timeout = 2ms});
        std::string b(10, 0);
        EXPECT_EQ(s.recv(room(b)).error(), std::errc::timed_out);
        EXPECT_EQ(s.recv_from(room(b)).error(), std::errc::timed_out);
        ASSERT_TRUE(s.send_to(bytes_of("late"), s.local_endpoint()));
        EXPECT_EQ(next_of(s), "late");
    });
}

TEST_P(udp, a_stop_ends_a_receive) {
    run([] {
        udp_socket s = any_udp();
        std::string b(10, 0);
        std::error_code how;
        fiber reader([&] { how = s.recv_from(room(b)).error(); });
        weft::this_fiber::sleep_for(1ms);
        reader.request_stop();
        reader.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        ASSERT_TRUE(s.send_to(bytes_of("kept"), s.local_endpoint()));
        EXPECT_EQ(next_of(s), "kept");
    });
}

TEST_P(udp, close_ends_a_receive) {
    run([] {
        udp_socket s = any_udp();
        std::string b(10, 0);
        std::error_code how;
        fiber reader([&] { how = s.recv_from(room(b)).error(); });
        weft::this_fiber::sleep_for(1ms);
        s.close();
        reader.join();
        EXPECT_EQ(how, weft::errc::closed);
        EXPECT_EQ(s.send_to(bytes_of("x"), endpoint(ip_address::loopback(), 9)).error(),
                  weft::errc::closed);
    });
}

TEST_P(udp, refuses_invalid_arguments) {
    run([] {
        udp_socket s = any_udp();
        EXPECT_TRUE(s);
        EXPECT_FALSE(udp_socket());
        EXPECT_EQ(udp_socket::bind(s.local_endpoint()).error(), std::errc::address_in_use);
        EXPECT_EQ(udp_socket::bind("nowhere").error(), std::errc::invalid_argument);
        const endpoint path = endpoint::local("@weft.udp").value();
        EXPECT_EQ(udp_socket::bind(path).error(), std::errc::address_family_not_supported);
        EXPECT_EQ(udp_socket::connect(path).error(), std::errc::address_family_not_supported);
        EXPECT_EQ(s.send(bytes_of("whom?")).error(), std::errc::destination_address_required);
        EXPECT_EQ(s.set_peer(path).error(), std::errc::address_family_not_supported);
        EXPECT_EQ(udp_socket().send(bytes_of("x")).error(), std::errc::bad_file_descriptor);
    });
}

TEST_P(udp, can_share_a_port) {
    run([] {
        const udp_socket s = any_udp({.reuse_port = true});
        EXPECT_TRUE(udp_socket::bind(s.local_endpoint(), {.reuse_port = true}));
    });
}

TEST_P(udp, broadcasts_when_allowed) {
    run([] {
        udp_socket all = udp_socket::bind("0.0.0.0:0").value();
        const endpoint to(ip_address::v4(127, 255, 255, 255), all.local_endpoint().port());
        udp_socket s = any_udp();
        EXPECT_EQ(s.send_to(bytes_of("x"), to).error(), std::errc::permission_denied);
        ASSERT_TRUE(s.set_broadcast(true));
        ASSERT_TRUE(s.send_to(bytes_of("to all"), to));
        EXPECT_EQ(next_of(all), "to all");
        ASSERT_TRUE(any_udp({.broadcast = true}).send_to(bytes_of("again"), to));
        EXPECT_EQ(next_of(all), "again");
    });
}

// A group of this process: a socket also receives what is sent to the groups that others on the
// machine have joined, and tests run side by side.
ip_address own_group(std::uint8_t first) {
    const auto pid = static_cast<unsigned>(::getpid());
    return ip_address::v4(first, static_cast<std::uint8_t>(192 + (pid >> 16) % 64),
                          static_cast<std::uint8_t>(pid >> 8), static_cast<std::uint8_t>(pid));
}

TEST_P(udp, receives_what_is_sent_to_its_group) {
    run([] {
        const unsigned lo = ::if_nametoindex("lo");
        const ip_address group = own_group(239);
        udp_socket a = udp_socket::bind("0.0.0.0:0", {.reuse_address = true}).value();
        const endpoint to(group, a.local_endpoint().port());
        udp_socket b = udp_socket::bind(to, {.reuse_address = true}).value();
        ASSERT_TRUE(a.join(group, lo));
        ASSERT_TRUE(b.join(group, lo));
        EXPECT_EQ(a.join(group, lo).error(), std::errc::address_in_use);
        udp_socket s = any_udp();
        ASSERT_TRUE(s.set_multicast_interface(lo));
        ASSERT_TRUE(s.set_multicast_hops(1));
        ASSERT_TRUE(s.send_to(bytes_of("to the group"), to));
        EXPECT_EQ(next_of(a), "to the group");
        EXPECT_EQ(next_of(b), "to the group");
        ASSERT_TRUE(s.set_multicast_loop(true));
        ASSERT_TRUE(b.leave(group, lo));
        EXPECT_EQ(b.leave(group, lo).error(), std::errc::address_not_available);
        ASSERT_TRUE(s.send_to(bytes_of("to one"), to));
        EXPECT_EQ(next_of(a), "to one");
    });
}

TEST_P(udp, receives_what_one_source_sends_to_its_group) {
    run([] {
        const unsigned lo = ::if_nametoindex("lo");
        const ip_address group = own_group(232);
        udp_socket listens = udp_socket::bind("0.0.0.0:0").value();
        const endpoint to(group, listens.local_endpoint().port());
        udp_socket wanted = udp_socket::bind("127.0.0.2:0").value();
        udp_socket other = udp_socket::bind("127.0.0.3:0").value();
        for (udp_socket* s : {&wanted, &other}) ASSERT_TRUE(s->set_multicast_interface(lo));
        const ip_address source = wanted.local_endpoint().address();
        ASSERT_TRUE(listens.join_source(group, source, lo));
        EXPECT_FALSE(listens.join_source(group, source, lo)) << "it has";
        ASSERT_TRUE(other.send_to(bytes_of("other"), to));
        ASSERT_TRUE(wanted.send_to(bytes_of("wanted"), to));
        EXPECT_EQ(next_of(listens), "wanted");
        ASSERT_TRUE(listens.leave_source(group, source, lo));
        EXPECT_FALSE(listens.leave_source(group, source, lo)) << "it has not";
        ASSERT_TRUE(wanted.send_to(bytes_of("to nobody"), to));
        listens.set_recv_timeout(1ms);
        EXPECT_NE(next_of(listens), "to nobody");
        auto v6 = udp_socket::bind("[::1]:0");
        if (!v6) return;  // a machine without IPv6
        const ip_address group6 = ip_address::parse("ff35::17").value();
        EXPECT_TRUE(v6->join_source(group6, ip_address::loopback_v6(), lo));
        EXPECT_TRUE(v6->leave_source(group6, ip_address::loopback_v6(), lo));
    });
}

TEST_P(udp, can_share_an_ipv6_port_with_ipv4) {
    run([] {
        auto v6 = udp_socket::bind("[::]:0", {.only_v6 = true});
        if (!v6) return;  // a machine without IPv6
        int only = 0;
        ::socklen_t size = sizeof only;
        ASSERT_EQ(::getsockopt(v6->native_handle(), IPPROTO_IPV6, IPV6_V6ONLY, &only, &size), 0);
        EXPECT_EQ(only, 1);
        EXPECT_TRUE(for_some_port([] {
            const auto s = udp_socket::bind("[::]:0", {.only_v6 = true}).value();
            const endpoint v4(ip_address::any(), s.local_endpoint().port());
            return udp_socket::bind(v4).has_value();
        }));
        udp_socket both = udp_socket::bind("[::]:0").value();
        EXPECT_EQ(
            udp_socket::bind(endpoint(ip_address::any(), both.local_endpoint().port())).error(),
            std::errc::address_in_use);
    });
}

TEST_P(udp, joins_ipv6_groups) {
    run([] {
        const unsigned lo = ::if_nametoindex("lo");
        const ip_address group = ip_address::parse("ff15::17").value();
        auto s = udp_socket::bind("[::1]:0");
        if (!s) return;  // a machine without IPv6
        ASSERT_TRUE(s->join(group, lo));
        EXPECT_TRUE(s->set_multicast_interface(lo));
        EXPECT_TRUE(s->set_multicast_hops(1));
        EXPECT_TRUE(s->set_multicast_loop(true));
        EXPECT_TRUE(s->leave(group, lo));
    });
}

}  // namespace
