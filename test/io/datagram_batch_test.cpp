#include "weft/io/datagram_batch.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "test/io/names.hpp"
#include "test/support/allocations.hpp"
#include "weft/base/errc.hpp"
#include "weft/io/udp_socket.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::endpoint;
using weft::incoming_datagram;
using weft::ip_address;
using weft::outgoing_datagram;
using weft::udp_options;
using weft::udp_socket;
using weft::testing::bytes_unlike;

class datagram_batch : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(datagram_batch);

udp_socket socket_of_batches(const udp_options& o = {}) {
    return udp_socket::bind("127.0.0.1:0", o).value();
}

// Buffers for so many datagrams, each of so many bytes.
class places {
public:
    explicit places(std::size_t count, std::size_t bytes = 100) : rooms_(count), all(count) {
        for (std::size_t i = 0; i != count; ++i) {
            rooms_[i].resize(bytes);
            all[i].into = rooms_[i];
        }
    }
    std::string text(std::size_t i) const {
        return {reinterpret_cast<const char*>(all[i].text().data()), all[i].bytes};
    }

private:
    std::vector<std::vector<std::byte>> rooms_;

public:
    std::vector<incoming_datagram> all;
};

// Messages of these texts, which must outlive them.
std::vector<outgoing_datagram> of_texts(const std::vector<std::string>& texts, const endpoint& to) {
    std::vector<outgoing_datagram> all;
    for (const std::string& t : texts) all.push_back({.bytes = bytes_of(t), .to = &to});
    return all;
}

TEST_P(datagram_batch, is_received_as_it_was_sent) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        const endpoint to = b.local_endpoint();
        const std::vector<std::string> texts = {"one", "", "three", "four"};
        const weft::send_many_result sent = a.send_many(of_texts(texts, to));
        EXPECT_TRUE(sent) << sent.error().message();
        EXPECT_EQ(sent.count(), 4u);
        places p(10);
        ASSERT_EQ(b.recv_many(p.all).value(), 4u);
        for (std::size_t i = 0; i != 4; ++i) {
            EXPECT_EQ(p.text(i), texts[i]);
            EXPECT_EQ(p.all[i].from, a.local_endpoint());
            EXPECT_FALSE(p.all[i].is_truncated());
        }
    });
}

TEST_P(datagram_batch, waits_for_the_first_datagram_only) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        const endpoint to = b.local_endpoint();
        places p(8);
        std::size_t came = 0;
        for (int round = 0; round != 3; ++round) {
            came = 0;
            fiber reader([&] { came = b.recv_many(p.all).value(); });
            weft::this_fiber::sleep_for(2ms);
            EXPECT_EQ(came, 0u);
            ASSERT_TRUE(a.send_to(bytes_of("only"), to));
            reader.join();
            EXPECT_EQ(came, 1u);
            EXPECT_EQ(p.text(0), "only");
        }
    });
}

TEST_P(datagram_batch, fills_the_array_and_leaves_the_rest_in_the_socket) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        const endpoint to = b.local_endpoint();
        std::vector<std::string> texts;
        for (int i = 0; i != 100; ++i) texts.push_back(std::to_string(i));
        const weft::send_many_result sent =
            a.send_many(of_texts(texts, to));  // more than one call's
        EXPECT_EQ(sent.count(), 100u);
        std::vector<std::string> got;
        places p(48);
        while (got.size() != 100) {
            const std::size_t n = b.recv_many(p.all).value();
            ASSERT_GE(n, 1u);
            ASSERT_LE(n, 48u);
            for (std::size_t i = 0; i != n; ++i) got.push_back(p.text(i));
        }
        EXPECT_EQ(got, texts);
        EXPECT_EQ(b.recv_many({}).value(), 0u);
        EXPECT_EQ(a.send_many({}).count(), 0u);
    });
}

TEST_P(datagram_batch, reports_which_datagrams_did_not_fit) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        const endpoint to = b.local_endpoint();
        const std::vector<std::string> texts = {"1234", "0123456789", "abc"};
        ASSERT_TRUE(a.send_many(of_texts(texts, to)));
        places p(3, 4);
        ASSERT_EQ(b.recv_many(p.all).value(), 3u);
        EXPECT_EQ(p.all[0].truncated_bytes, 0u);
        EXPECT_EQ(p.text(1), "0123");
        EXPECT_EQ(p.all[1].truncated_bytes, 6u);
        EXPECT_EQ(p.text(2), "abc");
        EXPECT_EQ(p.all[2].truncated_bytes, 0u);
    });
}

TEST_P(datagram_batch, reports_a_bad_datagram_in_the_middle_and_loses_no_other) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        const endpoint to = b.local_endpoint();
        const std::vector<std::string> texts = {"one", "two", std::string(70'000, 'x'), "four"};
        const std::vector<outgoing_datagram> all = of_texts(texts, to);
        const weft::send_many_result sent = a.send_many(all);
        EXPECT_EQ(sent.count(), 2u);
        EXPECT_EQ(sent.error(), std::errc::message_size);
        EXPECT_EQ(a.send_many(std::span(all).subspan(3)).count(), 1u);
        places p(8);
        ASSERT_EQ(b.recv_many(p.all).value(), 3u);
        EXPECT_EQ(p.text(0) + p.text(1) + p.text(2), "onetwofour");
    });
}

TEST_P(datagram_batch, reports_an_error_of_the_peer_and_keeps_the_datagrams) {
    run([] {
        udp_socket s = socket_of_batches();
        endpoint gone = socket_of_batches().local_endpoint();
        ASSERT_TRUE(s.send_to(bytes_of("kept"), s.local_endpoint()));
        ASSERT_TRUE(s.set_peer(gone));
        ASSERT_TRUE(s.send(bytes_of("to nobody")));  // loopback: refused at once
        places p(4);
        EXPECT_EQ(s.recv_many(p.all).error(), std::errc::connection_refused);
        ASSERT_EQ(s.recv_many(p.all).value(), 1u);
        EXPECT_EQ(p.text(0), "kept");
    });
}

TEST_P(datagram_batch, ends_at_a_timeout_a_stop_or_a_close) {
    run([] {
        udp_socket s = socket_of_batches({.recv_timeout = 2ms});
        places p(4);
        EXPECT_EQ(s.recv_many(p.all).error(), std::errc::timed_out);
        s.set_recv_timeout(weft::no_timeout);
        std::error_code how;
        fiber reader([&] { how = s.recv_many(p.all).error(); });
        weft::this_fiber::yield();
        reader.request_stop();
        reader.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        fiber other([&] { how = s.recv_many(p.all).error(); });
        weft::this_fiber::yield();
        s.close();
        other.join();
        EXPECT_EQ(how, weft::errc::closed);
        const outgoing_datagram one = {.bytes = bytes_of("x")};
        EXPECT_EQ(s.send_many({&one, 1}).error(), weft::errc::closed);
        EXPECT_EQ(udp_socket().send_many({&one, 1}).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(udp_socket().recv_many(p.all).error(), std::errc::bad_file_descriptor);
    });
}

TEST_P(datagram_batch, serves_tasks_and_plain_threads) {
    udp_socket a;
    udp_socket b;
    run([&] {
        a = socket_of_batches();
        b = socket_of_batches();
        const endpoint to = b.local_endpoint();
        auto ask = [&]() -> weft::task<std::string> {
            const outgoing_datagram one = {.bytes = bytes_of("by a task"), .to = &to};
            const weft::send_many_result sent = co_await a.async_send_many({&one, 1});
            EXPECT_EQ(sent.count(), 1u);
            places p(2);
            EXPECT_EQ((co_await b.async_recv_many(p.all)).value(), 1u);
            co_return p.text(0);
        };
        EXPECT_EQ(weft::await(ask()), "by a task");
    });
    b.set_recv_timeout(10s);
    std::thread far([&] {
        const endpoint to = b.local_endpoint();
        const outgoing_datagram one = {.bytes = bytes_of("by a thread"), .to = &to};
        EXPECT_TRUE(a.send_many({&one, 1}));
    });
    places p(2);
    EXPECT_EQ(b.recv_many(p.all).value(), 1u);
    EXPECT_EQ(p.text(0), "by a thread");
    far.join();
}

TEST_P(datagram_batch, allocates_nothing) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        const endpoint to = b.local_endpoint();
        const std::vector<std::string> texts(40, "text");
        const std::vector<outgoing_datagram> all = of_texts(texts, to);
        places p(40);
        const std::size_t before = weft::testing::allocations();
        const weft::send_many_result sent = a.send_many(all);
        std::size_t came = 0;
        while (came < 40) came += b.recv_many(p.all).value_or(100);
        EXPECT_EQ(weft::testing::allocations(), before);
        EXPECT_EQ(sent.count(), 40u);
        EXPECT_EQ(came, 40u);
    });
}

// Segments.

// The result for so many bytes: each datagram no longer than a segment.
std::string gather(udp_socket& s, std::size_t bytes, std::size_t segment) {
    std::string got;
    places p(16, 65'536);
    while (got.size() < bytes) {
        const auto n = s.recv_many(p.all);
        if (!n) return "failed: " + n.error().message();
        for (std::size_t i = 0; i != *n; ++i) {
            EXPECT_FALSE(p.all[i].is_truncated());
            const std::size_t of = p.all[i].segment != 0 ? p.all[i].segment : p.all[i].bytes;
            EXPECT_TRUE(of == segment || got.size() + p.all[i].bytes == bytes)
                << of << " of " << p.all[i].bytes;
            got += p.text(i);
        }
    }
    return got;
}

// The receiver stays in step with the sender, as its queue is not long.
void segments_come(udp_socket& a, udp_socket& b, std::size_t bytes, bool cut_here) {
    const endpoint to = b.local_endpoint();
    const std::string text = bytes_unlike(bytes);
    const outgoing_datagram one = {.bytes = bytes_of(text), .to = &to, .segment = 1200};
    const weft::send_many_result sent = a.send_many({&one, 1});
    EXPECT_TRUE(sent) << sent.error().message();
    EXPECT_EQ(sent.count(), 1u);
    EXPECT_EQ(sent.cut_here(), cut_here);
    EXPECT_EQ(gather(b, bytes, 1200), text);
}

TEST_P(datagram_batch, sends_a_buffer_as_segments) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        ASSERT_TRUE(a.can_cut()) << "no UDP_SEGMENT (Linux 4.18)";
        for (const std::size_t bytes : {1u, 1200u, 1201u, 12'000u, 70'001u})
            segments_come(a, b, bytes, false);
    });
}

TEST_P(datagram_batch, receives_coalesced_segments_with_their_size) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches({.coalesce = true});
        ASSERT_TRUE(b.coalesces()) << "no UDP_GRO (Linux 5.0)";
        EXPECT_FALSE(a.coalesces());
        segments_come(a, b, 20'000, false);
        const endpoint to = b.local_endpoint();
        const std::string text = bytes_unlike(3000);
        const outgoing_datagram one = {.bytes = bytes_of(text), .to = &to, .segment = 1200};
        ASSERT_TRUE(a.send_many({&one, 1}));
        ASSERT_TRUE(a.send_to(bytes_of("single"), to));
        places p(4, 65'536);
        ASSERT_EQ(b.recv_many(p.all).value(), 2u);
        EXPECT_EQ(p.all[0].bytes, 3000u);
        EXPECT_EQ(p.all[0].segment, 1200u);
        EXPECT_EQ(p.text(0), text);
        EXPECT_EQ(p.text(1), "single");
        EXPECT_EQ(p.all[1].segment, 0u);
    });
}

// The system does not segment datagrams without a checksum.
TEST_P(datagram_batch, sends_segments_one_by_one_where_the_kernel_refuses_them) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        const int on = 1;
        ASSERT_EQ(::setsockopt(a.native_handle(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
        for (const std::size_t bytes : {1201u, 12'000u, 70'001u}) segments_come(a, b, bytes, true);
        segments_come(a, b, 1200, false);
    });
}

TEST_P(datagram_batch, can_mix_segmented_and_plain_datagrams) {
    run([] {
        udp_socket a = socket_of_batches();
        udp_socket b = socket_of_batches();
        const endpoint to = b.local_endpoint();
        const std::string text = bytes_unlike(25);
        for (const bool refused : {false, true}) {
            const int on = refused;
            ASSERT_EQ(::setsockopt(a.native_handle(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
            const std::array<outgoing_datagram, 3> all = {
                {{.bytes = bytes_of("first"), .to = &to},
                 {.bytes = bytes_of(text), .to = &to, .segment = 10},
                 {.bytes = bytes_of("last"), .to = &to}}};
            EXPECT_EQ(a.send_many(all).count(), 3u);
            std::vector<std::size_t> lengths;
            places p(8);
            while (lengths.size() != 5) {
                const std::size_t n = b.recv_many(p.all).value();
                for (std::size_t i = 0; i != n; ++i) lengths.push_back(p.all[i].bytes);
            }
            EXPECT_EQ(lengths, (std::vector<std::size_t>{5, 10, 10, 5, 4}));
        }
    });
}

// Details.

TEST_P(datagram_batch, reports_where_each_datagram_arrived) {
    run([] {
        udp_socket a = udp_socket::bind("0.0.0.0:0").value();
        udp_socket b = udp_socket::bind("0.0.0.0:0", {.details = true}).value();
        const endpoint to(ip_address::v4(127, 0, 0, 7), b.local_endpoint().port());
        const std::array<outgoing_datagram, 2> all = {
            {{.bytes = bytes_of("x"), .to = &to, .traffic_class = 0x2a},
             {.bytes = bytes_of("y"),
              .to = &to,
              .from = {.address = ip_address::v4(127, 0, 0, 9), .interface_index = 0}}}};
        ASSERT_TRUE(a.send_many(all));
        places p(4);
        ASSERT_EQ(b.recv_many(p.all).value(), 2u);
        EXPECT_EQ(p.all[0].to.address, to.address());
        EXPECT_NE(p.all[0].to.interface_index, 0u);
        EXPECT_EQ(p.all[0].hops, 64);
        EXPECT_EQ(p.all[0].traffic_class, 0x2a);
        EXPECT_EQ(p.all[1].traffic_class, 0);
        EXPECT_EQ(p.all[1].from.address(), ip_address::v4(127, 0, 0, 9));
        // Back, from where it came to.
        const outgoing_datagram back = {
            .bytes = bytes_of("z"), .to = &p.all[0].from, .from = p.all[0].to};
        const endpoint here(ip_address::loopback(), a.local_endpoint().port());
        const outgoing_datagram to_loopback = {
            .bytes = bytes_of("z"), .to = &here, .from = p.all[0].to};
        EXPECT_TRUE(b.send_many({&back, 1}));
        EXPECT_TRUE(b.send_many({&to_loopback, 1}));
        places q(1);
        ASSERT_EQ(a.recv_many(q.all).value(), 1u);
        EXPECT_EQ(q.all[0].from.address(), to.address());
        EXPECT_EQ(q.all[0].hops, -1) << "it did not ask";
        // From where this machine is not.
        const outgoing_datagram strange = {
            .bytes = bytes_of("z"), .to = &here, .from = {.address = ip_address::v4(192, 0, 2, 1)}};
        EXPECT_FALSE(b.send_many({&strange, 1}));
    });
}

TEST_P(datagram_batch, reports_where_each_datagram_arrived_over_ipv6) {
    run([] {
        auto b = udp_socket::bind("[::]:0", {.only_v6 = true, .details = true});
        if (!b) return;  // a machine without IPv6
        udp_socket a = udp_socket::bind("[::]:0").value();
        const endpoint to(ip_address::loopback_v6(), b->local_endpoint().port());
        const outgoing_datagram one = {.bytes = bytes_of("x"),
                                       .to = &to,
                                       .from = {.address = ip_address::loopback_v6()},
                                       .traffic_class = 1};
        ASSERT_TRUE(a.send_many({&one, 1}));
        places p(1);
        ASSERT_EQ(b->recv_many(p.all).value(), 1u);
        EXPECT_EQ(p.all[0].to.address, ip_address::loopback_v6());
        EXPECT_EQ(p.all[0].hops, 64);
        EXPECT_EQ(p.all[0].traffic_class, 1);
    });
}

}  // namespace
