// The laws of connections: what a peer may do with one, step by step, over each driver and by each
// kind of agent.

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "test/io/plain_peer.hpp"
#include "weft/io/unix_datagram.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class socket_law : public on_each_way {};
INSTANTIATE_ON_WAYS(socket_law);

TEST_P(socket_law, a_wait_for_urgent_data_reports_it) {
    auto [s, far] = half_of_tcp();
    std::optional<fd_events> come;
    crew waiting(way(), [&s = s, &come](auto wait) -> task<> {
        const fd_watch w(s.native_handle());
        const auto r = co_await wait(w.async_wait(fd_events::urgent));
        if (r) come = *r;
    });
    waiting.asleep();
    send_plainly(far, "!", MSG_OOB);
    waiting.join();
    ASSERT_TRUE(come);
    EXPECT_TRUE(has(*come, fd_events::urgent));
}

TEST_P(socket_law, either_direction_may_end_before_the_other) {
    for (const bool ours_first : {true, false}) {
        auto [s, far] = half_of_tcp();
        std::string got(4, 0);
        transfer_result sent;
        std::optional<std::size_t> end;
        crew both(way(), [&, &s = s](auto wait) -> task<> {
            std::string b(8, 0);
            if (ours_first) {
                EXPECT_TRUE(s.shutdown(direction::write));
                EXPECT_TRUE(co_await wait(s.async_read_exact(room(got))));
                const auto n = co_await wait(s.async_read(room(b)));
                if (n) end = *n;
                sent = co_await wait(s.async_write_all(bytes_of("x")));
            } else {
                const auto n = co_await wait(s.async_read(room(b)));
                if (n) end = *n;
                sent = co_await wait(s.async_write_all(bytes_of("last")));
            }
        });
        both.asleep();
        if (ours_first) {
            EXPECT_TRUE(is_told(far));
            EXPECT_EQ(read_plainly(far, 1), "");
            send_plainly(far, "last");
            EXPECT_EQ(::shutdown(far, SHUT_WR), 0);
            both.join();
            EXPECT_EQ(got, "last");
            EXPECT_EQ(sent.error(), std::errc::broken_pipe);
        } else {
            EXPECT_EQ(::shutdown(far, SHUT_WR), 0);
            both.join();
            EXPECT_TRUE(sent);
            EXPECT_EQ(read_plainly(far, 4), "last");
        }
        EXPECT_EQ(end, std::optional<std::size_t>(0));
    }
}

TEST_P(socket_law, a_reset_before_the_first_read_is_reported) {
    auto [s, far] = half_of_tcp();
    reset(far);
    std::error_code error;
    crew reader(way(), [&, &s = s](auto wait) -> task<> {
        std::string b(8, 0);
        const auto n = co_await wait(s.async_read(room(b)));
        error = n.error();
    });
    reader.join();
    EXPECT_EQ(error, std::errc::connection_reset);
}

TEST_P(socket_law, a_reset_between_two_reads_is_reported) {
    auto [s, far] = half_of_tcp();
    std::atomic<bool> first{false};
    std::error_code error;
    crew reader(way(), [&, &s = s](auto wait) -> task<> {
        std::string b(8, 0);
        const auto n = co_await wait(s.async_read(room(b)));
        first = n.value_or(0) == 1;
        const auto more = co_await wait(s.async_read(room(b)));
        error = more.error();
    });
    reader.asleep();
    send_plainly(far, "1");
    while (!first && !reader.has_ended()) std::this_thread::yield();
    reader.asleep();
    reset(far);
    reader.join();
    EXPECT_EQ(error, std::errc::connection_reset);
}

TEST_P(socket_law, a_reset_after_a_partial_read_is_reported_with_the_part) {
    auto [s, far] = half_of_tcp();
    transfer_result t;
    std::string got(8, 0);
    crew reader(way(), [&, &s = s](auto wait) -> task<> {
        t = co_await wait(s.async_read_exact(room(got)));
    });
    reader.asleep();
    send_plainly(far, "123");
    // Until it has taken them: a reset drops the bytes in the socket.
    int left = 1;
    while (left != 0 && !reader.has_ended()) ::ioctl(s.native_handle(), FIONREAD, &left);
    reader.asleep();
    reset(far);
    reader.join();
    EXPECT_EQ(t.bytes(), 3u);
    EXPECT_EQ(got.substr(0, 3), "123");
    EXPECT_EQ(t.error(), std::errc::connection_reset);
}

TEST_P(socket_law, a_reset_during_a_write_is_reported) {
    auto [s, far] = half_of_tcp();
    transfer_result t;
    const std::string much(16 << 20, 'x');
    crew writer(way(), [&, &s = s](auto wait) -> task<> {
        t = co_await wait(s.async_write_all(bytes_of(much)));
    });
    writer.asleep();
    reset(far);
    writer.join();
    EXPECT_LT(t.bytes(), much.size());
    EXPECT_TRUE(t.error() == std::errc::connection_reset || t.error() == std::errc::broken_pipe)
        << t.error().message();
}

// What a full socket did not take is sent when there is room, in order.
template <class Stream>
void expect_all_is_written(const way& w, Stream& s, int far) {
    // Not what the system thinks best, which can be more than is written here.
    constexpr int room_bytes = 1 << 16;
    ::setsockopt(s.native_handle(), SOL_SOCKET, SO_SNDBUF, &room_bytes, sizeof room_bytes);
    ::setsockopt(far, SOL_SOCKET, SO_RCVBUF, &room_bytes, sizeof room_bytes);
    const std::string much = bytes_unlike(3 << 20);
    transfer_result t;
    crew writer(w,
                [&](auto wait) -> task<> { t = co_await wait(s.async_write_all(bytes_of(much))); });
    writer.asleep();
    EXPECT_FALSE(writer.has_ended());
    std::string got;
    std::string piece(100'000, 0);
    while (got.size() < much.size()) {
        if (!is_told(far)) break;
        const ::ssize_t n = ::read(far, piece.data(), piece.size());
        if (n <= 0) break;
        got.append(piece, 0, static_cast<std::size_t>(n));
    }
    writer.join();
    EXPECT_TRUE(t) << t.error().message();
    EXPECT_EQ(t.bytes(), much.size());
    EXPECT_TRUE(got == much);
}

TEST_P(socket_law, bytes_a_full_socket_did_not_take_are_sent_later) {
    auto [s, far] = half_of_tcp();
    expect_all_is_written(way(), s, far);
    auto [u, other] = half_of_unix();
    expect_all_is_written(way(), u, other);
    pipe p = pipe::open().value();
    expect_all_is_written(way(), p.writer, p.reader.native_handle());
}

// One agent waits to read when another starts to wait for room, and the other way round: each is
// notified.
template <class Stream>
void expect_reader_and_writer_are_told(const way& w, Stream& s, int far) {
    const std::string much = bytes_unlike(3 << 20);
    for (const bool reads_first : {true, false}) {
        transfer_result t;
        std::string b(1, 0);
        std::size_t n = 0;
        std::atomic<int> begun{0};
        const auto body = [&](auto wait) -> task<> {
            const bool is_first = begun++ == 0;
            if (is_first == reads_first) {
                const result<std::size_t> r = co_await wait(s.async_read(room(b)));
                n = r.value_or(0);
            } else {
                t = co_await wait(s.async_write_all(bytes_of(much)));
            }
        };
        crew reader_and_writer(w, 2, body);
        reader_and_writer.asleep();
        std::string got;
        std::string piece(100'000, 0);
        while (got.size() < much.size() && is_told(far)) {
            const ::ssize_t m = ::read(far, piece.data(), piece.size());
            if (m <= 0) break;
            got.append(piece, 0, static_cast<std::size_t>(m));
        }
        send_plainly(far, "1");
        reader_and_writer.join();
        EXPECT_TRUE(t) << t.error().message();
        EXPECT_TRUE(got == much);
        EXPECT_EQ(n, 1u);
    }
}

TEST_P(socket_law, a_reader_and_a_writer_are_each_woken) {
    auto [s, far] = half_of_tcp();
    expect_reader_and_writer_are_told(way(), s, far);
    auto [u, other] = half_of_unix();
    expect_reader_and_writer_are_told(way(), u, other);
}

// The same of messages, each way of which is waited for by readiness with every driver.
TEST_P(socket_law, a_batch_receiver_and_a_batch_sender_are_each_woken) {
    auto [s, far] = unix_datagram::pair().value();
    const std::string b(1000, 'd');
    const std::vector<outgoing_datagram> many(2000, outgoing_datagram{.bytes = bytes_of(b)});
    for (const bool receives_first : {true, false}) {
        std::string one(10, 0);
        incoming_datagram in{.into = room(one)};
        send_many_result sent;
        std::size_t came = 0;
        std::atomic<int> begun{0};
        const auto body = [&, &s = s](auto wait) -> task<> {
            const bool is_first = begun++ == 0;
            if (is_first == receives_first) {
                const result<std::size_t> r = co_await wait(s.async_recv_many(std::span(&in, 1)));
                came = r.value_or(0);
            } else {
                sent = co_await wait(s.async_send_many(many));
            }
        };
        crew both_ways(way(), 2, body);
        both_ways.asleep();
        std::size_t arrived = 0;
        std::string piece(2000, 0);
        for (; arrived != many.size() && is_told(far.native_handle()); ++arrived)
            if (::recv(far.native_handle(), piece.data(), piece.size(), MSG_DONTWAIT) < 0) break;
        send_plainly(far.native_handle(), "1");
        both_ways.join();
        EXPECT_TRUE(sent) << sent.error().message();
        EXPECT_EQ(arrived, many.size());
        EXPECT_EQ(came, 1u);
    }
}

// Whatever its peer did before it was accepted.
TEST_P(socket_law, a_connection_reset_before_accept_causes_no_accept_error) {
    tcp_listener l = any_listener();
    plain_fd gone = dialled(l.local_endpoint());
    reset(gone);
    plain_fd stays = dialled(l.local_endpoint());
    send_plainly(stays, "x");
    int served = 0;
    crew server(way(), [&](auto wait) -> task<> {
        while (served == 0) {
            auto s = co_await wait(l.async_accept());
            if (!s) {
                ADD_FAILURE() << s.error().message();
                break;
            }
            std::string b(1, 0);
            const auto n = co_await wait(s->async_read(room(b)));
            if (n)
                ++served;
            else
                EXPECT_EQ(n.error(), std::errc::connection_reset);
        }
    });
    server.join();
    EXPECT_EQ(served, 1);
}

template <class Listener>
void expect_close_ends_accept(const way& w, Listener& l) {
    std::error_code error;
    crew server(w, [&](auto wait) -> task<> {
        auto s = co_await wait(l.async_accept());
        error = s.error();
    });
    server.asleep();
    l.close();
    server.join();
    EXPECT_EQ(error, errc::closed) << error.message();
}

TEST_P(socket_law, a_close_ends_an_accept) {
    tcp_listener l = any_listener();
    expect_close_ends_accept(way(), l);
    unix_listener u = unix_listener::bind(local_name()).value();
    expect_close_ends_accept(way(), u);
}

TEST_P(socket_law, a_close_ends_a_write) {
    for (const bool beside : {false, true}) {
        auto [s, far] = half_of_unix();
        const std::string much(4 << 20, 'x');
        transfer_result t;
        crew writer(way(), [&, &s = s](auto wait) -> task<> {
            t = co_await wait(s.async_write_all(bytes_of(much)));
        });
        writer.asleep();
        if (beside)
            writer.do_beside([&s = s] { s.close(); });
        else
            s.close();
        writer.join();
        EXPECT_EQ(t.error(), errc::closed) << t.error().message();
        // No byte was sent that was not reported, and none reported that was not sent.
        std::string got(t.bytes() + 1, 0);
        EXPECT_EQ(read_plainly(far, got.size()).size(), t.bytes());
    }
}

TEST_P(socket_law, a_connect_to_a_full_tcp_backlog_ends_at_its_deadline) {
    tcp_listener l = tcp_listener::bind("127.0.0.1:0", {.backlog = 1}).value();
    const endpoint to = l.local_endpoint();
    std::vector<plain_fd> fill;
    for (int i = 0; i < 4; ++i) {
        fill.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        static_cast<void>(::connect(fill.back(), to.data(), to.size()));
    }
    std::error_code error;
    crew client(way(), [&](auto wait) -> task<> {
        const auto s = co_await wait(tcp_stream::async_connect(to, 20ms));
        error = s.error();
    });
    client.join();
    EXPECT_EQ(error, std::errc::timed_out) << error.message();
}

TEST_P(socket_law, a_wait_that_times_out_leaves_the_others_waiting) {
    auto [s, far] = half_of_unix();
    std::atomic<int> notified{0};
    std::atomic<int> late{0};
    std::atomic<int> next{0};
    constexpr int count = 16;
    crew all(way(), count, [&, &s = s](auto wait) -> task<> {
        const fd_watch w(s.native_handle());
        const bool hurried = next++ % 2 == 0;
        const auto until = hurried ? after(now(), 2ms) : never;
        const auto r = co_await wait(w.async_wait(fd_events::read, until));
        if (r)
            ++notified;
        else
            late += r.error() == std::errc::timed_out;
    });
    while (late != count / 2 && !all.has_ended()) std::this_thread::yield();
    send_plainly(far, "x");
    all.join();
    EXPECT_EQ(notified, count / 2);
    EXPECT_EQ(late, count / 2);
}

}  // namespace
}  // namespace weft::testing
