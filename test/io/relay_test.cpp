#include "weft/io/relay.hpp"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <utility>

#include "test/io/names.hpp"
#include "test/io/way.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::relay_result;

class a_relay : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_relay);

// No two positions near each other are alike.
std::string relay_text(std::size_t bytes) {
    std::string s(bytes, 0);
    for (std::size_t i = 0; i < bytes; ++i) s[i] = static_cast<char>(i * 31 + i / 4093);
    return s;
}

std::string as_text(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string all_of(weft::stream& s) {
    std::string all;
    std::string some(1 << 16, 0);
    while (const std::size_t n = s.read(room(some)).value_or(0)) all.append(some, 0, n);
    return all;
}

// left.client -> left.server ==relay==> right.client -> right.server
template <class Left, class Right>
void passes_all(Left& first, Left& from, Right& to, Right& last) {
    const std::string text = relay_text((5 << 20) + 7);
    fiber writer([&] {
        EXPECT_TRUE(first.write_all(bytes_of(text)));
        EXPECT_TRUE(first.shutdown(weft::direction::write));
    });
    fiber passer([&] {
        const relay_result r = weft::relay(from, to);
        EXPECT_TRUE(r) << r.error().message();
        EXPECT_EQ(r.bytes(), text.size());
        EXPECT_TRUE(r.rest().empty());
        EXPECT_TRUE(to.shutdown(weft::direction::write));
    });
    EXPECT_TRUE(all_of(last) == text);
}

TEST_P(a_relay, forwards_all_until_the_end) {
    run([] {
        connection left = connected();
        connection right = connected();
        passes_all(left.client, left.server, right.client, right.server);
        auto [a, b] = weft::unix_stream::pair().value();
        auto [c, d] = weft::unix_stream::pair().value();
        passes_all(a, b, c, d);
        auto [e, f] = weft::unix_stream::pair().value();
        connection wide = connected();
        passes_all(e, f, wide.client, wide.server);
    });
}

// As a read does. splice(2) finds nothing before an urgent byte, or an end.
TEST_P(a_relay, forwards_bytes_after_urgent_data) {
    run([] {
        for (const bool waits : {true, false}) {
            connection left = connected();
            connection right = connected();
            const int n = left.client.native_handle();
            const auto send = [&] {
                ASSERT_EQ(::send(n, "abc", 3, 0), 3);
                ASSERT_EQ(::send(n, "!", 1, MSG_OOB), 1);
                if (waits) weft::this_fiber::sleep_for(2ms);
                ASSERT_EQ(::send(n, "def", 3, 0), 3);
                EXPECT_TRUE(left.client.shutdown(weft::direction::write));
            };
            if (!waits) send();
            relay_result r;
            fiber passer([&] {
                r = weft::relay(left.server, right.client);
                EXPECT_TRUE(right.client.shutdown(weft::direction::write));
            });
            weft::this_fiber::yield();
            if (waits) send();
            EXPECT_EQ(all_of(right.server), "abcdef");
            passer.join();
            EXPECT_TRUE(r) << r.error().message();
            EXPECT_EQ(r.bytes(), 6u);
        }
    });
}

TEST_P(a_relay, forwards_no_more_than_its_limit) {
    run([] {
        connection left = connected();
        connection right = connected();
        ASSERT_TRUE(left.client.write_all(bytes_of("head|body")));
        EXPECT_EQ(weft::relay(left.server, right.client, 0).bytes(), 0u);
        const relay_result r = weft::relay(left.server, right.client, 5);
        EXPECT_TRUE(r);
        EXPECT_EQ(r.bytes(), 5u);
        std::string s(9, 0);
        EXPECT_EQ(right.server.read(room(s)).value(), 5u);
        EXPECT_EQ(s.substr(0, 5), "head|");
        EXPECT_EQ(left.server.read(room(s)).value(), 4u);
        EXPECT_EQ(s.substr(0, 4), "body");
    });
}

// Bytes that are not delivered are in `rest`, in order, or still in the stream.
// In a fiber: waits until the number of bytes there has not changed for a while.
void until_nothing_comes(int number) {
    int before = -1;
    for (int same = 0; same != 5;) {
        weft::this_fiber::sleep_for(10ms);
        int now = 0;
        ::ioctl(number, FIONREAD, &now);
        same = now == std::exchange(before, now) && now != 0 ? same + 1 : 0;
    }
}

void holds_little(const weft::tcp_stream& s) {
    const int bytes = 256 << 10;
    for (const int which : {SO_SNDBUF, SO_RCVBUF})
        EXPECT_EQ(::setsockopt(s.native_handle(), SOL_SOCKET, which, &bytes, sizeof bytes), 0);
}

TEST_P(a_relay, loses_nothing_when_it_ends_early) {
    run([] {
        for (const bool stops : {true, false}) {
            connection left = connected();
            connection right = connected();
            for (const weft::tcp_stream* of :
                 {&left.client, &left.server, &right.client, &right.server})
                holds_little(*of);
            const std::string text = relay_text(16 << 20);  // more than they hold
            fiber writer([&] { static_cast<void>(left.client.write_all(bytes_of(text))); });
            if (!stops) left.server.set_options({.read_timeout = 500ms});
            relay_result r;
            fiber passer([&] { r = weft::relay(left.server, right.client); });
            if (stops) {
                until_nothing_comes(right.server.native_handle());
                passer.request_stop();
            }
            passer.join();
            EXPECT_EQ(r.error(), stops ? std::errc::operation_canceled : std::errc::timed_out);
            EXPECT_GT(r.bytes(), 0u);
            EXPECT_FALSE(r.rest().empty());
            right.client.close();
            const std::string arrived = all_of(right.server);
            EXPECT_EQ(arrived.size(), r.bytes());
            left.server.set_options({});
            std::string next(1000, 0);
            EXPECT_TRUE(left.server.read_exact(room(next)));
            const std::string all = arrived + as_text(r.rest()) + next;
            EXPECT_TRUE(all == text.substr(0, all.size()));
            left.server.close();
        }
    });
}

TEST_P(a_relay, reports_why_it_ended) {
    run([] {
        {
            connection left = connected();
            connection right = connected();
            fiber passer([&] {
                EXPECT_EQ(weft::relay(left.server, right.client).error(), weft::errc::closed);
            });
            weft::this_fiber::yield();
            left.server.close();
        }
        {
            connection left = connected();
            connection right = connected();
            left.client.abort();
            EXPECT_EQ(weft::relay(left.server, right.client).error(), std::errc::connection_reset);
        }
        {
            // To a peer that is closed: an error with the bytes that were not delivered, and no
            // SIGPIPE.
            connection left = connected();
            connection right = connected();
            right.server.abort();
            relay_result r;
            for (int i = 0; i < 3 && !r.error(); ++i) {
                ASSERT_TRUE(left.client.write_all(bytes_of("lost")));
                r = weft::relay(left.server, right.client, 4);
            }
            EXPECT_TRUE(r.error() == std::errc::broken_pipe ||
                        r.error() == std::errc::connection_reset);
            EXPECT_EQ(as_text(r.rest()), "lost");
        }
        connection c = connected();
        weft::tcp_stream none;
        EXPECT_EQ(weft::relay(none, c.client).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(weft::relay(c.client, none).error(), std::errc::bad_file_descriptor);
    });
}

TEST_P(a_relay, excludes_other_operations_in_its_two_directions) {
    run([] {
        connection left = connected();
        connection right = connected();
        fiber passer([&] { EXPECT_TRUE(weft::relay(left.server, right.client)); });
        weft::this_fiber::yield();
        std::string s(1, 0);
        const auto busy = std::errc::operation_in_progress;
        EXPECT_EQ(left.server.read(room(s)).error(), busy);
        EXPECT_EQ(right.client.write_all(bytes_of("x")).error(), busy);
        EXPECT_EQ(weft::relay(right.server, right.client).error(), busy);
        EXPECT_EQ(weft::relay(left.server, left.client).error(), busy);
        EXPECT_TRUE(left.server.write_all(bytes_of("x")));  // the other directions are free
        EXPECT_TRUE(right.server.write_all(bytes_of("x")));
        EXPECT_TRUE(right.client.read_exact(room(s)));
        EXPECT_TRUE(left.client.shutdown(weft::direction::write));
        passer.join();
        EXPECT_TRUE(right.client.write_all(bytes_of("x")));
    });
}

TEST_P(a_relay, lets_others_run_and_leaves_no_descriptor) {
    run([] {
        connection left = connected();
        connection right = connected();
        const auto before = weft::testing::descriptor_count();
        const std::string text = relay_text(16 << 20);
        fiber writer([&] {
            EXPECT_TRUE(left.client.write_all(bytes_of(text)));
            EXPECT_TRUE(left.client.shutdown(weft::direction::write));
        });
        std::atomic<bool> over = false;
        fiber reader([&] { EXPECT_TRUE(all_of(right.server) == text); });
        auto pass = [&]() -> weft::task<relay_result> {
            co_return co_await weft::async_relay(left.server, right.client);
        };
        fiber passer([&] {
            EXPECT_EQ(weft::await(pass()).bytes(), text.size());
            EXPECT_TRUE(right.client.shutdown(weft::direction::write));
            over = true;
        });
        int turns = 0;
        for (; !over.load(); ++turns) weft::this_fiber::yield();
        EXPECT_GE(turns, 14);
        reader.join();
        EXPECT_EQ(weft::testing::descriptor_count(), before);
    });
}

TEST(relay_result, moves_its_rest_out_where_it_is_not_needed_any_more) {
    relay_result r(2, std::vector<std::byte>(100), std::make_error_code(std::errc::broken_pipe));
    const std::byte* const at = r.rest().data();
    const std::vector<std::byte> rest = std::move(r).rest();
    EXPECT_EQ(rest.size(), 100u);
    EXPECT_EQ(rest.data(), at);
}

}  // namespace
