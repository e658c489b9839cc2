#include "weft/io/tcp_stream.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "test/io/names.hpp"
#include "test/support/allocation_fails.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"
#include "weft/task/when_all.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::tcp_stream;

class tcp : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(tcp);

TEST_P(tcp, carries_bytes_both_ways) {
    run([] {
        connection c = connected();
        ASSERT_TRUE(c.client.write_all(bytes_of("ping")));
        std::string s(4, 0);
        ASSERT_TRUE(c.server.read_exact(room(s)));
        EXPECT_EQ(s, "ping");
        ASSERT_TRUE(c.server.write_all(bytes_of("pong")));
        ASSERT_TRUE(c.client.read_exact(room(s)));
        EXPECT_EQ(s, "pong");
    });
}

TEST_P(tcp, that_is_closed_leaves_the_next_user_of_its_fd_alone) {
    run([] {
        connection first = connected();
        const int number = first.server.native_handle();
        first.server.close();
        connection second = connected();
        ASSERT_TRUE(second.client.native_handle() == number ||
                    second.server.native_handle() == number);
        EXPECT_EQ(first.server.native_handle(), -1);
        EXPECT_EQ(first.server.local_endpoint().family(), AF_UNSPEC);
        EXPECT_EQ(first.server.remote_endpoint().family(), AF_UNSPEC);
        EXPECT_EQ(first.server.set_no_delay(false).error(), weft::errc::closed);
        EXPECT_EQ(first.server.set_keep_alive(5s).error(), weft::errc::closed);
        first.server.abort();
        EXPECT_EQ(first.server.shutdown(weft::direction::both).error(), weft::errc::closed);
        std::string s(5, 0);
        ASSERT_TRUE(second.client.write_all(bytes_of("hello")));
        EXPECT_TRUE(second.server.read_exact(room(s)));
        ASSERT_TRUE(second.server.write_all(bytes_of("hello")));
        EXPECT_TRUE(second.client.read_exact(room(s)));
    });
}

TEST_P(tcp, refuses_use_when_moved_from_or_empty) {
    run([] {
        connection c = connected();
        const tcp_stream there = std::move(c.client);
        tcp_stream never;
        for (tcp_stream* none : {&c.client, &never}) {
            std::string s(4, 0);
            EXPECT_FALSE(*none);
            EXPECT_EQ(none->read(room(s)).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_borrowed().error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_exact(room(s)).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_until(s, "\n").error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->write(bytes_of("x")).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->write_all(bytes_of("x")).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->close_gracefully(weft::never).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->shutdown(weft::direction::both).error(),
                      std::errc::bad_file_descriptor);
            EXPECT_EQ(none->set_no_delay(true).error(), std::errc::bad_file_descriptor);
            none->set_options({.read_timeout = 1ms});
            EXPECT_EQ(none->options().read_timeout, weft::no_timeout);
            none->abort();
            none->close();
            EXPECT_EQ(none->native_handle(), -1);
        }
        EXPECT_TRUE(there);
    });
}

TEST_P(tcp, read_returns_what_is_available) {
    run([] {
        connection c = connected();
        ASSERT_TRUE(c.client.write_all(bytes_of("abc")));
        std::string s(100, 0);
        EXPECT_EQ(c.server.read(room(s)).value(), 3u);
        EXPECT_EQ(s.substr(0, 3), "abc");
    });
}

TEST_P(tcp, read_waits_for_the_first_byte) {
    run([&] {
        connection c = connected();
        std::string order;
        fiber reader([&] {
            std::string s(1, 0);
            EXPECT_EQ(c.server.read(room(s)).value(), 1u);
            order += s;
        });
        weft::this_fiber::sleep_for(5ms);
        order += "w";
        ASSERT_TRUE(c.client.write_all(bytes_of("r")));
        reader.join();
        EXPECT_EQ(order, "wr");
    });
}

TEST_P(tcp, serves_tasks_as_it_serves_fibers) {
    run([] {
        connection c = connected();
        auto ask = [](tcp_stream& s) -> weft::task<std::string> {
            EXPECT_TRUE(co_await s.async_write_all(bytes_of("question")));
            std::string answer(6, 0);
            EXPECT_TRUE(co_await s.async_read_exact(room(answer)));
            co_return answer;
        };
        auto answer = [](tcp_stream& s) -> weft::task<std::string> {
            std::string question(8, 0);
            EXPECT_TRUE(co_await s.async_read_exact(room(question)));
            EXPECT_TRUE(co_await s.async_write_all(bytes_of("answer")));
            co_return question;
        };
        auto [a, q] = weft::await(weft::when_all(ask(c.client), answer(c.server)));
        EXPECT_EQ(a, "answer");
        EXPECT_EQ(q, "question");
    });
}

TEST_P(tcp, serves_plain_threads) {
    connection c;
    run([&] { c = connected(); });
    std::thread far([&] {
        std::string s(4, 0);
        EXPECT_TRUE(c.server.read_exact(room(s)));
        EXPECT_TRUE(c.server.write_all(bytes_of(s)));
    });
    std::this_thread::sleep_for(5ms);  // so that the read waits, mostly
    EXPECT_TRUE(c.client.write_all(bytes_of("near")));
    std::string s(4, 0);
    EXPECT_TRUE(c.client.read_exact(room(s)));
    EXPECT_EQ(s, "near");
    far.join();
}

TEST_P(tcp, two_loops_share_a_connection) {
    connection c;
    run([&] { c = connected(); });
    std::thread other([&] {
        weft::loop l(weft::make_io_driver(GetParam()));
        fiber f(
            [&] {
                for (int i = 0; i < 1000; ++i) {
                    std::string s(1, 0);
                    EXPECT_TRUE(c.server.read_exact(room(s)));
                    EXPECT_TRUE(c.server.write_all(bytes_of(s)));
                }
            },
            {.on = l});
        l.run();
    });
    run([&] {
        for (int i = 0; i < 1000; ++i) {
            std::string s(1, static_cast<char>(i));
            EXPECT_TRUE(c.client.write_all(bytes_of(s)));
            std::string back(1, 0);
            EXPECT_TRUE(c.client.read_exact(room(back)));
            EXPECT_EQ(s, back);
        }
    });
    other.join();
}

// More than the buffers of the system hold, both ways at once.
TEST_P(tcp, a_slow_reader_suspends_the_writer) {
    run([] {
        connection c = connected();
        std::string sent(8 << 20, 0);
        for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 4096);
        fiber writer([&] {
            const weft::transfer_result t = c.client.write_all(bytes_of(sent));
            EXPECT_TRUE(t);
            EXPECT_EQ(t.bytes(), sent.size());
        });
        weft::this_fiber::sleep_for(5ms);
        EXPECT_FALSE(writer.done());
        std::string got(sent.size(), 0);
        ASSERT_TRUE(c.server.read_exact(room(got)));
        EXPECT_TRUE(got == sent);
        writer.join();
    });
}

TEST_P(tcp, read_finds_the_end) {
    run([] {
        connection c = connected();
        ASSERT_TRUE(c.client.write_all(bytes_of("last")));
        ASSERT_TRUE(c.client.shutdown(weft::direction::write));
        std::string s(10, 0);
        EXPECT_EQ(c.server.read(room(s)).value(), 4u);
        EXPECT_EQ(c.server.read(room(s)).value(), 0u);
        EXPECT_EQ(c.server.read(room(s)).value(), 0u);
        // Only one half is closed.
        ASSERT_TRUE(c.server.write_all(bytes_of("answer")));
        EXPECT_EQ(c.client.read(room(s)).value(), 6u);
    });
}

TEST_P(tcp, read_exact_reports_how_far_it_got) {
    run([] {
        connection c = connected();
        ASSERT_TRUE(c.client.write_all(bytes_of("abc")));
        c.client.close();
        std::string s(10, 0);
        const weft::transfer_result t = c.server.read_exact(room(s));
        EXPECT_EQ(t.error(), weft::errc::unexpected_eof);
        EXPECT_EQ(t.bytes(), 3u);
    });
}

TEST_P(tcp, reads_until_a_delimiter) {
    run([] {
        connection c = connected();
        ASSERT_TRUE(c.client.write_all(bytes_of("GET /\r\nHost: x\r\n\r\nrest")));
        std::string text;
        EXPECT_EQ(c.server.read_until(text, "\r\n").value(), 7u);
        EXPECT_EQ(text.substr(0, 7), "GET /\r\n");
        text.erase(0, 7);
        EXPECT_EQ(c.server.read_until(text, "\r\n\r\n").value(), 11u);
        text.erase(0, 11);
        EXPECT_EQ(text, "rest") << "what has come after the mark";
        // A mark that comes in two parts.
        fiber later([&] {
            ASSERT_TRUE(c.client.write_all(bytes_of(" and\r")));
            weft::this_fiber::sleep_for(2ms);
            ASSERT_TRUE(c.client.write_all(bytes_of("\nmore")));
        });
        EXPECT_EQ(c.server.read_until(text, "\r\n").value(), 10u);
        later.join();
        text.erase(0, 10);
        EXPECT_EQ(text, "more");
        EXPECT_EQ(c.server.read_until(text, "e").value(), 4u) << "it is there already";
        c.client.close();
        EXPECT_EQ(c.server.read_until(text, "\n").error(), weft::errc::unexpected_eof);
        EXPECT_EQ(text, "more");
    });
}

TEST_P(tcp, finds_an_empty_delimiter_at_once) {
    run([] {
        connection c = connected();
        std::string text;
        EXPECT_EQ(c.server.read_until(text, "").value(), 0u);
        text = "more";
        EXPECT_EQ(c.server.read_until(text, "").value(), 0u);
        EXPECT_EQ(text, "more");
    });
}

TEST_P(tcp, limits_how_far_it_reads_for_a_delimiter) {
    run([] {
        connection c = connected();
        ASSERT_TRUE(c.client.write_all(bytes_of(std::string(10000, 'x') + "\n")));
        std::string text;
        EXPECT_EQ(c.server.read_until(text, "\n", 5000).error(), std::errc::message_size);
        EXPECT_EQ(text.size(), 5000u);
        EXPECT_EQ(c.server.read_until(text, "\n", 20000).value(), 10001u);
    });
}

TEST_P(tcp, reports_lack_of_memory_for_a_read_until_a_delimiter) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "allocations do not fail under it";
    if (!WEFT_EXCEPTIONS) GTEST_SKIP() << "without memory the program ends";
    run([] {
        connection c = connected();
        const std::string sent = std::string(6000, 'x') + "\n";
        ASSERT_TRUE(c.client.write_all(bytes_of(sent)));
        std::string text;
        std::error_code error;
        {
            const weft::testing::allocation_fails no_memory(2);
            error = c.server.read_until(text, "\n").error();
        }
        EXPECT_EQ(error, std::errc::not_enough_memory);
        EXPECT_FALSE(text.empty());
        EXPECT_EQ(c.server.read_until(text, "\n").value(), sent.size());
        EXPECT_TRUE(text == sent);
    });
}

TEST_P(tcp, reports_a_reset_by_its_peer) {
    run([] {
        connection c = connected();
        c.client.abort();
        std::string s(1, 0);
        EXPECT_EQ(c.server.read(room(s)).error(), std::errc::connection_reset);
        EXPECT_EQ(c.server.write(bytes_of("x")).error(), std::errc::broken_pipe);  // no SIGPIPE
    });
}

TEST_P(tcp, read_ends_at_its_timeout_and_the_stream_stays_usable) {
    run([] {
        connection c = connected();
        c.server.set_options({.read_timeout = 5ms});
        std::string s(4, 0);
        const auto before = weft::steady_now();
        EXPECT_EQ(c.server.read(room(s)).error(), std::errc::timed_out);
        EXPECT_GE(weft::steady_now() - before, 5ms);
        ASSERT_TRUE(c.client.write_all(bytes_of("ab")));
        const weft::transfer_result t = c.server.read_exact(room(s));
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_EQ(t.bytes(), 2u);
        ASSERT_TRUE(c.client.write_all(bytes_of("c")));
        EXPECT_EQ(c.server.read(room(s)).value(), 1u);
        EXPECT_EQ(s[0], 'c');
    });
}

TEST_P(tcp, a_stop_ends_a_read) {
    run([] {
        connection c = connected();
        std::error_code how;
        fiber reader([&] {
            std::string s(1, 0);
            how = c.server.read(room(s)).error();
        });
        weft::this_fiber::sleep_for(2ms);
        reader.request_stop();
        reader.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        // Nothing was lost, and no leftover waiter blocks the next operation.
        ASSERT_TRUE(c.client.write_all(bytes_of("x")));
        std::string s(1, 0);
        EXPECT_EQ(c.server.read(room(s)).value(), 1u);
    });
}

TEST_P(tcp, a_stop_before_a_read_ends_it_unless_there_are_bytes) {
    run([] {
        connection c = connected();
        std::error_code how;
        fiber reader([&] {
            while (!weft::this_fiber::get_stop_token().stop_requested()) weft::this_fiber::yield();
            std::string s(1, 0);
            how = c.server.read(room(s)).error();
        });
        weft::this_fiber::yield();
        reader.request_stop();
        reader.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
    });
}

TEST_P(tcp, a_close_ends_a_waiting_read) {
    run([] {
        connection c = connected();
        std::error_code how;
        fiber reader([&] {
            std::string s(1, 0);
            how = c.server.read(room(s)).error();
        });
        weft::this_fiber::sleep_for(2ms);
        c.server.close();
        reader.join();
        EXPECT_EQ(how, weft::errc::closed);
        std::string s(1, 0);
        EXPECT_EQ(c.server.read(room(s)).error(), weft::errc::closed);
        EXPECT_EQ(c.server.write(bytes_of("x")).error(), weft::errc::closed);
        EXPECT_EQ(c.client.read(room(s)).value(), 0u);
    });
}

TEST_P(tcp, a_second_reader_is_refused_at_once) {
    run([] {
        connection c = connected();
        fiber reader([&] {
            std::string s(1, 0);
            EXPECT_EQ(c.server.read(room(s)).value(), 1u);
        });
        weft::this_fiber::sleep_for(2ms);
        std::string s(1, 0);
        EXPECT_EQ(c.server.read(room(s)).error(), std::errc::operation_in_progress);
        EXPECT_TRUE(c.server.write_all(bytes_of("x")));  // a writer beside it is none
        EXPECT_TRUE(c.client.write_all(bytes_of("x")));
        reader.join();
    });
}

// The descriptor of a connection is soon that of another connection, and a late event of the first
// must not be delivered to the second.
TEST_P(tcp, a_reused_fd_gets_no_event_of_its_former_connection) {
    run([] {
        for (int i = 0; i < 200; ++i) {
            connection a = connected();
            fiber reader([&] {
                std::string s(1, 0);
                const auto n = a.server.read(room(s));  // what comes first
                EXPECT_TRUE(n ? s == "o" : n.error() == weft::errc::closed);
            });
            weft::this_fiber::yield();
            EXPECT_TRUE(a.client.write_all(bytes_of("old")));
            a.server.close();
            connection b = connected();
            b.server.set_options({.read_timeout = 1ms});
            std::string s(3, 0);
            EXPECT_EQ(b.server.read(room(s)).error(), std::errc::timed_out);
            reader.join();
        }
    });
}

TEST_P(tcp, a_kill_during_a_read_leaves_the_buffer_alone) {
    connection c;
    run([&] { c = connected(); });
    {
        fiber stuck(
            [&] {
                const weft::shield held;  // so that asking is not enough
                std::array<std::byte, 64> mine;
                static_cast<void>(c.server.read(mine));
                ADD_FAILURE() << "went on";
            },
            {.on = loop()});
        loop().run_once(weft::steady_now());
        stuck.detach();
    }
    end_loop();  // unwinds it
    EXPECT_TRUE(c.client.write_all(bytes_of("too late")));
}

TEST_P(tcp, connecting_to_a_closed_port_is_refused) {
    run([] {
        weft::endpoint nobody;
        {
            const weft::tcp_listener l = weft::testing::any_listener();
            nobody = l.local_endpoint();
        }
        EXPECT_EQ(tcp_stream::connect(nobody).error(), std::errc::connection_refused);
        EXPECT_FALSE(tcp_stream::connect(weft::endpoint()));
    });
}

TEST_P(tcp, connects_by_name) {
    run([] {
        weft::tcp_listener l = weft::testing::any_listener();
        const std::string port = std::to_string(l.local_endpoint().port());
        // The name may resolve to ::1 first, where no socket listens.
        EXPECT_TRUE(tcp_stream::connect("localhost:" + port));
        EXPECT_TRUE(tcp_stream::connect("127.0.0.1:" + port));
        auto by_task = [&]() -> weft::task<bool> {
            co_return (co_await tcp_stream::async_connect("localhost:" + port)).has_value();
        };
        EXPECT_TRUE(weft::await(by_task()));
        l.close();
        EXPECT_EQ(tcp_stream::connect("localhost:" + port).error(), std::errc::connection_refused);
        EXPECT_EQ(tcp_stream::connect("localhost").error(), std::errc::invalid_argument);
        EXPECT_EQ(tcp_stream::connect("bad name:1").error().category(), weft::resolver_category());
    });
}

// The system accepts for a listener until its queue is full, and then does not answer at all.
TEST_P(tcp, connecting_ends_at_its_timeout) {
    run([] {
        weft::tcp_listener l = weft::tcp_listener::bind("127.0.0.1:0", {.backlog = 0}).value();
        std::vector<tcp_stream> waiting;
        for (int i = 0; i < 16; ++i) {
            auto s = tcp_stream::connect(l.local_endpoint(), 20ms);
            if (s) {
                waiting.push_back(*std::move(s));
                continue;
            }
            EXPECT_EQ(s.error(), std::errc::timed_out);
            const weft::time_point deadline = weft::now() + 20ms;
            EXPECT_EQ(tcp_stream::connect(l.local_endpoint(), deadline).error(),
                      std::errc::timed_out);
            EXPECT_GE(weft::now(), deadline);
            return;
        }
        ADD_FAILURE() << "sixteen connections in a queue of one";
    });
}

TEST_P(tcp, knows_both_ends) {
    run([] {
        const connection c = connected();
        EXPECT_EQ(c.client.local_endpoint(), c.server.remote_endpoint());
        EXPECT_EQ(c.client.remote_endpoint(), c.server.local_endpoint());
    });
}

TEST_P(tcp, takes_options) {
    run([] {
        connection c = connected();
        EXPECT_TRUE(c.client.set_no_delay(false));
        EXPECT_TRUE(c.client.set_keep_alive(30s));
        EXPECT_TRUE(c.client.set_keep_alive(24h)) << "the system's longest, where that is less";
        EXPECT_TRUE(c.client.set_keep_alive(0s));
        int ms = 0;
        ::socklen_t size = sizeof ms;
        EXPECT_TRUE(c.client.set_user_timeout(1500ms));
        ::getsockopt(c.client.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &size);
        EXPECT_EQ(ms, 1500);
        c.client.close();
        EXPECT_FALSE(c.client.set_no_delay(true));
    });
}

// A peer whose window stays closed is probed again and again, and acknowledges nothing new.
TEST_P(tcp, unread_bytes_end_the_connection_at_the_user_timeout) {
    run([] {
        connection c = connected();
        ASSERT_TRUE(c.client.set_user_timeout(50ms));
        const std::string much(16 << 20, 'x');
        const weft::transfer_result sent = c.client.write_all(bytes_of(much));
        EXPECT_EQ(sent.error(), std::errc::timed_out);
        EXPECT_LT(sent.bytes(), much.size());
    });
}

TEST_P(tcp, connects_with_its_first_bytes) {
    run([] {
        auto l = weft::tcp_listener::bind("127.0.0.1:0", {.fast_open = 16}).value();
        for (int i = 0; i != 3; ++i) {  // the first one gets the cookie
            tcp_stream c = tcp_stream::connect_fast(l.local_endpoint()).value();
            int on = 0;
            ::socklen_t size = sizeof on;
            ::getsockopt(c.native_handle(), IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, &size);
            EXPECT_EQ(on, 1);
            ASSERT_TRUE(c.write_all(bytes_of("hello")));
            tcp_stream s = l.accept().value();
            std::string b(5, 0);
            ASSERT_TRUE(s.read_exact(room(b)));
            EXPECT_EQ(b, "hello");
            ASSERT_TRUE(s.write_all(bytes_of("there")));
            ASSERT_TRUE(c.read_exact(room(b)));
            EXPECT_EQ(b, "there");
        }
        const weft::endpoint gone = l.local_endpoint();
        l.close();
        auto c = tcp_stream::connect_fast(gone);
        EXPECT_FALSE(c && c->write_all(bytes_of("x")) && c->read_exact({}));
    });
}

TEST_P(tcp, many_connections_keep_their_bytes_apart) {
    run([&] {
        weft::tcp_listener l = weft::testing::any_listener();
        constexpr int clients = 300;
        fiber server([&] {
            for (int i = 0; i < clients; ++i)
                fiber([s = l.accept().value()]() mutable {
                    std::array<std::byte, 256> b;
                    while (const auto n = s.read(b).value_or(0))
                        if (!s.write_all(std::span(b).first(n))) return;
                }).detach();
        });
        std::vector<fiber> all;
        int well = 0;
        for (int i = 0; i < clients; ++i)
            all.emplace_back([&, i] {
                tcp_stream s = tcp_stream::connect(l.local_endpoint()).value();
                for (int round = 0; round < 10; ++round) {
                    std::string sent = std::to_string(i) + ":" + std::to_string(round);
                    std::string got(sent.size(), 0);
                    if (!s.write_all(bytes_of(sent)) || !s.read_exact(room(got))) return;
                    if (got != sent) return;
                }
                ++well;
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(well, clients);
        server.join();
    });
}

}  // namespace
