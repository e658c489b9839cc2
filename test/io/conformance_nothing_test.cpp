// The laws of a transfer of nothing: it is done at once, whatever there is to wait for.

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <thread>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class nothing_to_move : public on_each_way {};
INSTANTIATE_ON_WAYS(nothing_to_move);

// From an empty end, and to a full one.
template <class Reads, class Writes>
void expect_nothing_is_moved(const way& w, Reads& reads, Writes& writes) {
    crew agent(w, [&](auto wait) -> task<> {
        const timeout_scope soon(500ms);
        const auto some = co_await wait(reads.async_read({}));
        EXPECT_TRUE(some) << "read: " << some.error().message();
        const transfer_result all = co_await wait(reads.async_read_exact({}));
        EXPECT_TRUE(all) << "read_exact: " << all.error().message();
        const transfer_result to_a_full_one = co_await wait(writes.async_write_all({}));
        EXPECT_TRUE(to_a_full_one) << "write_all: " << to_a_full_one.error().message();
        const auto some_more = co_await wait(writes.async_write({}));
        EXPECT_TRUE(some_more) << "write: " << some_more.error().message();
    });
    agent.join();
}
void fill_it(int number) {
    const std::string b(4096, 'x');
    while (::send(number, b.data(), b.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
}

TEST_P(nothing_to_move, an_empty_stream_transfer_completes_at_once) {
    auto [s, far] = half_of_unix();
    fill_it(s.native_handle());
    expect_nothing_is_moved(way(), s, s);
    auto [t, other] = half_of_tcp();
    fill_it(t.native_handle());
    expect_nothing_is_moved(way(), t, t);
}

TEST_P(nothing_to_move, an_empty_pipe_transfer_completes_at_once) {
    pipe p = pipe::open().value();
    pipe full = pipe::open().value();
    const std::string b(4096, 'x');
    while (::write(full.writer.native_handle(), b.data(), b.size()) > 0) {
    }
    expect_nothing_is_moved(way(), p.reader, full.writer);
}

// Each empty message is one of its own, with a sender and without bytes, and the messages around it
// are as they were; a receive without room takes a message, and reports what was lost.
template <class Socket>
void expect_empty_ones_come_and_go(const way& w, Socket& s, int far) {
    std::atomic<int> taken{0};
    crew agent(w, [&](auto wait) -> task<> {
        std::string b(16, '?');
        const auto first = co_await wait(s.async_recv(room(b)));
        EXPECT_EQ(first.value_or(recv_result{1, 1}).bytes, 0u) << first.error().message();
        ++taken;
        const auto from = co_await wait(s.async_recv_from(room(b)));
        EXPECT_TRUE(from) << from.error().message();
        if (from) {
            EXPECT_EQ(from->bytes, 0u);
            // One of a pair has no name.
            EXPECT_EQ(from->from.is_ip(), endpoint::of_socket(far).is_ip());
        }
        ++taken;
        std::array<incoming_datagram, 3> batch{incoming_datagram{room(b)}, incoming_datagram{},
                                               incoming_datagram{}};
        const auto many = co_await wait(s.async_recv_many(std::span(batch).first(1)));
        EXPECT_EQ(many.value_or(0), 1u) << many.error().message();
        EXPECT_EQ(batch[0].bytes + batch[0].truncated_bytes, 0u);
        ++taken;
        const auto no_room = co_await wait(s.async_recv({}));
        EXPECT_TRUE(no_room) << no_room.error().message();
        if (no_room) {
            EXPECT_EQ(no_room->bytes, 0u);
            EXPECT_EQ(no_room->truncated_bytes, 3u);
        }
        ++taken;
        const auto last = co_await wait(s.async_recv(room(b)));
        EXPECT_EQ(last.value_or(recv_result{}).bytes, 4u);
        EXPECT_EQ(b.substr(0, 4), "last");

        // And of none there is nothing to wait for.
        const auto no_places = co_await wait(s.async_recv_many({}));
        EXPECT_EQ(no_places.value_or(1), 0u) << no_places.error().message();
        const send_many_result no_texts = co_await wait(s.async_send_many({}));
        EXPECT_TRUE(no_texts) << no_texts.error().message();
        EXPECT_EQ(no_texts.count(), 0u);
        const auto sent = co_await wait(s.async_send({}));
        EXPECT_TRUE(sent) << sent.error().message();
        const std::array<outgoing_datagram, 3> all{outgoing_datagram{bytes_of("a")},
                                                   outgoing_datagram{},
                                                   outgoing_datagram{bytes_of("bc")}};
        const send_many_result went = co_await wait(s.async_send_many(all));
        EXPECT_TRUE(went) << went.error().message();
        EXPECT_EQ(went.count(), 3u);
    });
    int sent = 0;
    for (const char* const text : {"", "", "", "abc", "last"}) {
        while (taken != sent && !agent.has_ended()) std::this_thread::yield();
        agent.asleep();
        send_plainly(far, text);
        ++sent;
    }
    agent.join();
    for (const long bytes : {0, 1, 0, 2}) {
        until_readable(far);
        char b[16];
        EXPECT_EQ(::recv(far, b, sizeof b, MSG_DONTWAIT), bytes);
    }
}

TEST_P(nothing_to_move, an_empty_datagram_is_sent_and_received) {
    udp_socket s = udp_socket::bind("127.0.0.1:0").value();
    const plain_fd far = dialled(s.local_endpoint(), 0, SOCK_DGRAM);
    ASSERT_TRUE(s.set_peer(endpoint::of_socket(far)));
    expect_empty_ones_come_and_go(way(), s, far);
    int n[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, n), 0);
    const plain_fd other(n[1]);
    unix_datagram local = unix_datagram::adopt(n[0]).value();
    expect_empty_ones_come_and_go(way(), local, other);
}

// The system treats it as the end.
TEST_P(nothing_to_move, an_empty_seqpacket_message_is_refused_and_read_as_the_end) {
    int n[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, n), 0);
    const plain_fd far(n[1]);
    unix_seqpacket s = unix_seqpacket::adopt(n[0]).value();
    std::atomic<int> taken{0};
    crew agent(way(), [&](auto wait) -> task<> {
        std::string b(16, '?');
        const auto end = co_await wait(s.async_recv(room(b)));
        EXPECT_EQ(end.error(), errc::unexpected_eof) << end.error().message();
        ++taken;
        const auto no_room = co_await wait(s.async_recv({}));
        EXPECT_EQ(no_room.value_or(recv_result{}).truncated_bytes, 3u) << no_room.error().message();
        const auto sent = co_await wait(s.async_send({}));
        EXPECT_EQ(sent.error(), std::errc::invalid_argument) << sent.error().message();
        std::array<owned_number, 1> numbers;
        const auto none = co_await wait(s.async_recv_numbers({}, numbers));
        EXPECT_EQ(none.error(), std::errc::invalid_argument) << none.error().message();
    });
    agent.asleep();
    EXPECT_EQ(::send(far, "", 0, 0), 0);
    while (taken == 0 && !agent.has_ended()) std::this_thread::yield();
    agent.asleep();
    send_plainly(far, "abc");
    agent.join();
    char c;
    EXPECT_EQ(::recv(far, &c, 1, MSG_DONTWAIT), -1) << "nothing was sent";
}

TEST_P(nothing_to_move, an_empty_delimiter_is_found_at_once) {
    auto [s, far] = half_of_unix();
    crew agent(way(), [&, &s = s](auto wait) -> task<> {
        const timeout_scope soon(500ms);
        std::string text;
        const auto n = co_await wait(s.async_read_until(text, ""));
        EXPECT_TRUE(n) << n.error().message();
        EXPECT_EQ(n.value_or(1), 0u);
    });
    agent.join();
}

}  // namespace
}  // namespace weft::testing
