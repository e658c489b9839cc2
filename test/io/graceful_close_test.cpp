// stream::close_gracefully: the answer is read by a peer that still sends.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include "test/io/names.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::steady_now;

class graceful_close : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(graceful_close);

weft::time_point in(weft::duration d) { return weft::after(steady_now(), d); }

std::string answer_of(std::size_t bytes) {
    std::string s(bytes, 0);
    for (std::size_t i = 0; i < bytes; ++i) s[i] = static_cast<char>(i * 13 + i / 4096);
    return s;
}

template <class Stream>
std::string read_to_the_end(Stream& s) {
    std::string got;
    std::string b(65536, 0);
    while (const auto n = s.read(room(b)).value_or(0)) got.append(b, 0, n);
    return got;
}

// Responds when it has read no more than the beginning of a request of so many bytes.
template <class Stream>
void answer_early(Stream& s, const std::string& text, std::size_t request) {
    std::string first(100, 0);
    EXPECT_TRUE(s.read_exact(room(first)));
    EXPECT_TRUE(s.write_all(bytes_of(text)));
    const weft::transfer_result t = s.close_gracefully(in(10s));
    EXPECT_FALSE(t.error()) << t.error().message();
    EXPECT_EQ(t.bytes(), request - first.size());
    EXPECT_EQ(s.write(bytes_of("x")).error(), weft::errc::closed);
}

// More than the buffers of the system hold, both ways.
TEST_P(graceful_close, lets_a_peer_that_still_sends_read_all_of_the_answer) {
    run([] {
        connection c = connected();
        const std::string text = answer_of(1 << 20);
        const std::string request(8 << 20, 'q');
        fiber server([&] { answer_early(c.server, text, request.size()); });
        fiber sender([&] { EXPECT_TRUE(c.client.write_all(bytes_of(request))); });
        const std::string got = read_to_the_end(c.client);
        EXPECT_TRUE(got == text) << got.size();
        sender.join();
        c.client.close();
        server.join();
    });
}

// It reads only when it has sent all.
template <class Stream>
void ask_and_then_read(Stream& client, Stream& at) {
    const std::string text = answer_of(100'000);
    const std::string request(4 << 20, 'q');
    fiber server([&] { answer_early(at, text, request.size()); });
    EXPECT_TRUE(client.write_all(bytes_of(request)));
    const std::string got = read_to_the_end(client);
    EXPECT_TRUE(got == text) << got.size();
    client.close();
    server.join();
}

TEST_P(graceful_close, lets_a_peer_send_all_before_it_reads) {
    run([] {
        connection c = connected();
        ask_and_then_read(c.client, c.server);
        auto [near, far] = weft::unix_stream::pair().value();
        ask_and_then_read(near, far);
    });
}

TEST_P(graceful_close, is_the_same_for_tasks) {
    run([] {
        connection c = connected();
        auto serve = [](weft::tcp_stream& s) -> weft::task<weft::transfer_result> {
            EXPECT_TRUE(co_await s.async_write_all(bytes_of("answer")));
            co_return co_await s.async_close_gracefully(in(10s));
        };
        fiber client([&] {
            EXPECT_TRUE(c.client.write_all(bytes_of("request")));
            EXPECT_EQ(read_to_the_end(c.client), "answer");
            c.client.close();
        });
        const weft::transfer_result t = weft::await(serve(c.server));
        EXPECT_FALSE(t.error()) << t.error().message();
        EXPECT_EQ(t.bytes(), 7u);
        client.join();
    });
}

TEST_P(graceful_close, waits_no_longer_than_its_deadline) {
    run([] {
        connection c = connected();
        EXPECT_TRUE(c.client.write_all(bytes_of("abc")));
        const auto until = in(5ms);
        const weft::transfer_result t = c.server.close_gracefully(until);
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_EQ(t.bytes(), 3u);
        EXPECT_GE(steady_now(), until);
        EXPECT_EQ(c.server.write(bytes_of("x")).error(), weft::errc::closed);
        EXPECT_EQ(read_to_the_end(c.client), "");
    });
}

TEST_P(graceful_close, drops_no_more_bytes_than_its_limit) {
    for (const std::size_t most : {std::size_t{0}, std::size_t{5}, std::size_t{50'000}})
        run([most] {
            connection c = connected();
            fiber sender([&] {
                const std::string piece(100'000, 'q');
                while (c.client.write_all(bytes_of(piece))) {
                }
            });
            weft::this_fiber::yield();
            const weft::transfer_result t = c.server.close_gracefully(in(10s), most);
            EXPECT_EQ(t.error(), std::errc::message_size);
            EXPECT_EQ(t.bytes(), most);
            EXPECT_EQ(c.server.write(bytes_of("x")).error(), weft::errc::closed);
            sender.join();
        });
}

TEST_P(graceful_close, is_quick_when_the_peer_has_ended) {
    run([] {
        connection c = connected();
        EXPECT_TRUE(c.client.shutdown(weft::direction::write));
        const weft::transfer_result t = c.server.close_gracefully(in(10s));
        EXPECT_FALSE(t.error()) << t.error().message();
        EXPECT_EQ(t.bytes(), 0u);
        EXPECT_EQ(c.server.close_gracefully(in(10s)).error(), weft::errc::closed);
        connection gone = connected();
        gone.client.abort();
        EXPECT_EQ(gone.server.close_gracefully(in(10s)).error(), std::errc::connection_reset);
        EXPECT_EQ(gone.server.write(bytes_of("x")).error(), weft::errc::closed);
    });
}

TEST_P(graceful_close, ends_at_a_stop) {
    run([] {
        connection c = connected();
        std::error_code how;
        fiber server([&] { how = c.server.close_gracefully(in(1h)).error(); });
        weft::this_fiber::sleep_for(2ms);
        server.request_stop();
        server.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        EXPECT_EQ(c.server.write(bytes_of("x")).error(), weft::errc::closed);
    });
}

TEST_P(graceful_close, is_refused_while_a_read_is_pending) {
    run([] {
        connection c = connected();
        fiber reader([&] {
            std::string s(1, 0);
            EXPECT_EQ(c.server.read(room(s)).value_or(9), 1u);
        });
        weft::this_fiber::sleep_for(2ms);
        EXPECT_EQ(c.server.close_gracefully(in(10s)).error(), std::errc::operation_in_progress);
        EXPECT_TRUE(c.server.write_all(bytes_of("open")));
        EXPECT_TRUE(c.client.write_all(bytes_of("x")));
        reader.join();
    });
}

}  // namespace
