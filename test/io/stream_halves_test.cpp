#include "weft/io/stream_halves.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "test/io/drivers.hpp"
#include "test/io/way.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/io/file.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace std::chrono_literals;
using weft::bytes_of;
using weft::fiber;
using weft::stream_halves;
using weft::stream_reader;
using weft::stream_writer;
using weft::tcp_stream;
using weft::unix_stream;
using weft::testing::connected;
using weft::testing::connection;
using weft::testing::room;

template <class S>
concept can_read = requires(S& s, std::string& b) { s.read(room(b)); };
template <class S>
concept can_write = requires(S& s) { s.write_all(bytes_of("x")); };
static_assert(can_read<stream_reader> && !can_write<stream_reader>);
static_assert(can_write<stream_writer> && !can_read<stream_writer>);
static_assert(!std::is_convertible_v<stream_writer&, weft::stream&>);
static_assert(!std::is_copy_constructible_v<stream_reader>);

class halves : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(halves);

TEST_P(halves, read_and_write_at_once) {
    run([] {
        connection c = connected();
        auto [reader, writer] = std::move(c.client).split();
        EXPECT_FALSE(c.client);
        constexpr int count = 500;
        fiber echo([&] {
            std::string s(100, 0);
            while (const auto n = c.server.read(room(s)).value_or(0))
                if (!c.server.write_all(bytes_of(s).first(n))) break;
        });
        fiber writes([w = std::move(writer)]() mutable {
            for (int i = 0; i < count; ++i) ASSERT_TRUE(w.write_all(bytes_of("line\r\n")));
        });
        std::string text;
        for (int i = 0; i < count; ++i) {
            const auto length = reader.read_until(text, "\r\n");
            ASSERT_EQ(length.value(), 6u);
            EXPECT_EQ(text.substr(0, 6), "line\r\n");
            text.erase(0, 6);
        }
        writes.join();
        c.server.close();
        echo.join();
    });
}

TEST_P(halves, of_a_local_connection_have_every_operation) {
    run([] {
        auto [a, b] = unix_stream::pair().value();
        auto [reader, writer] = std::move(a).split();
        std::string s(4, 0);
        const std::span<const std::byte> parts[] = {bytes_of("ab"), bytes_of("cd")};
        ASSERT_TRUE(writer.write_all(parts));
        ASSERT_TRUE(b.read_exact(room(s)));
        EXPECT_EQ(s, "abcd");
        EXPECT_EQ(writer.write(bytes_of("e")).value(), 1u);
        EXPECT_TRUE(weft::await(writer.async_write_all(bytes_of("fgh"))));
        ASSERT_TRUE(b.read_exact(room(s)));
        EXPECT_EQ(s, "efgh");
        const auto f = weft::file::adopt(weft::testing::file_of("file")).value();
        EXPECT_TRUE(writer.send_file(f, 0, 4));
        ASSERT_TRUE(b.read_exact(room(s)));
        EXPECT_EQ(s, "file");

        ASSERT_TRUE(b.write_all(bytes_of("12345678")));
        ASSERT_TRUE(reader.read_exact(room(s)));
        EXPECT_EQ(s, "1234");
        const auto lent = reader.read_borrowed().value();
        EXPECT_EQ(lent.size(), 4u);
        EXPECT_EQ(reader.native_handle(), writer.native_handle());
        EXPECT_TRUE(reader.local_endpoint().is_local() && writer.remote_endpoint().is_local());
    });
}

TEST_P(halves, the_end_of_the_writer_is_the_end_for_the_peer_only) {
    for (const bool by_finish : {true, false})
        run([by_finish] {
            connection c = connected();
            auto [reader, writer] = std::move(c.client).split();
            std::string s(8, 0);
            {
                stream_writer moved = std::move(writer);
                ASSERT_TRUE(moved.write_all(bytes_of("question")));
                if (by_finish) {
                    EXPECT_TRUE(moved.finish());
                    EXPECT_EQ(moved.write_all(bytes_of("x")).error(), std::errc::broken_pipe);
                }
            }
            ASSERT_TRUE(c.server.read_exact(room(s)));
            EXPECT_EQ(c.server.read(room(s)).value(), 0u);
            ASSERT_TRUE(c.server.write_all(bytes_of("answered")));
            ASSERT_TRUE(reader.read_exact(room(s)));
            EXPECT_EQ(s, "answered");
        });
}

TEST_P(halves, an_assigned_writer_ends_its_former_direction) {
    run([] {
        connection c = connected(), d = connected();
        stream_halves first = std::move(c.client).split();
        stream_halves second = std::move(d.client).split();
        first.writer = std::move(second.writer);
        std::string s(1, 0);
        EXPECT_EQ(c.server.read(room(s)).value(), 0u);
        ASSERT_TRUE(first.writer.write_all(bytes_of("d")));
        ASSERT_TRUE(d.server.read_exact(room(s)));
    });
}

TEST_P(halves, the_last_half_closes_the_connection) {
    run([] {
        const long before = weft::testing::descriptor_count();
        for (const bool reader_first : {true, false}) {
            connection c = connected();
            auto [reader, writer] = std::move(c.client).split();
            if (reader_first) {
                reader = stream_reader();
                ASSERT_TRUE(writer.write_all(bytes_of("x"))) << "it is still open";
                writer = stream_writer();
            } else {
                writer = stream_writer();
                reader = stream_reader();
            }
            std::string s(1, 0);
            if (reader_first) {
                ASSERT_TRUE(c.server.read_exact(room(s)));
            }
            EXPECT_EQ(c.server.read(room(s)).value(), 0u);
        }
        EXPECT_EQ(weft::testing::descriptor_count(), before);
    });
}

TEST_P(halves, refuse_use_when_empty) {
    run([] {
        stream_halves none = tcp_stream().split();
        std::string s(4, 0);
        EXPECT_FALSE(none.reader);
        EXPECT_FALSE(none.writer);
        EXPECT_EQ(none.reader.read(room(s)).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(none.reader.read_until(s, "\n").error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(none.writer.write_all(bytes_of("x")).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(none.writer.finish().error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(none.writer.native_handle(), -1);
        none.reader.close();
        none.writer.abort();

        connection c = connected();
        stream_halves all = std::move(c.client).split();
        const stream_reader reader = std::move(all.reader);
        const stream_writer writer = std::move(all.writer);
        EXPECT_FALSE(all.reader);
        EXPECT_FALSE(all.writer);
        EXPECT_TRUE(reader && writer);
    });
}

TEST_P(halves, have_one_user_each_at_a_time) {
    run([] {
        connection c = connected();
        auto [reader, writer] = std::move(c.client).split();
        std::string a(1, 0), b(1, 0);
        fiber first([&, &r = reader] { EXPECT_EQ(r.read(room(a)).value(), 1u); });
        weft::this_fiber::sleep_for(2ms);
        EXPECT_EQ(reader.read(room(b)).error(), std::errc::operation_in_progress);
        ASSERT_TRUE(writer.write_all(bytes_of("beside a reader")));
        ASSERT_TRUE(c.server.write_all(bytes_of("x")));
        first.join();
    });
}

TEST_P(halves, keep_the_limits_of_their_stream) {
    run([] {
        connection c = connected();
        c.client.set_options({.read_timeout = 2ms});
        auto [reader, writer] = std::move(c.client).split();
        EXPECT_EQ(reader.options().read_timeout, 2ms);
        std::string s(1, 0);
        EXPECT_EQ(reader.read(room(s)).error(), std::errc::timed_out);
        EXPECT_TRUE(writer.write_all(bytes_of("x")));
    });
}

TEST_P(halves, a_stop_ends_a_read_and_leaves_the_writer_alone) {
    run([] {
        connection c = connected();
        auto [reader, writer] = std::move(c.client).split();
        std::error_code how;
        fiber reads([&, &r = reader] {
            std::string s(1, 0);
            how = r.read(room(s)).error();
        });
        weft::this_fiber::sleep_for(2ms);
        reads.request_stop();
        reads.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        EXPECT_TRUE(writer.write_all(bytes_of("x")));
    });
}

TEST_P(halves, abort_resets_the_connection) {
    run([] {
        connection c = connected();
        auto [reader, writer] = std::move(c.client).split();
        writer.abort();
        std::string s(1, 0);
        EXPECT_EQ(reader.read(room(s)).error(), weft::errc::closed);
        EXPECT_EQ(c.server.read(room(s)).error(), std::errc::connection_reset);
    });
}

TEST_P(halves, close_their_connection_when_their_owners_are_killed) {
    connection c;
    {
        bool waits = false;
        weft::loop l(weft::make_io_driver(GetParam()));
        fiber main(
            [&] {
                connection ours = connected();
                c.server = std::move(ours.server);
                auto [reader, writer] = std::move(ours.client).split();
                fiber reads([r = std::move(reader)]() mutable {
                    const weft::shield from_stops;
                    std::string s(1, 0);
                    static_cast<void>(r.read(room(s)));
                    ADD_FAILURE() << "it was killed";
                });
                reads.detach();
                fiber writes([w = std::move(writer)]() mutable {
                    const weft::shield from_stops;
                    weft::this_fiber::sleep_for(1h);
                });
                writes.detach();
                weft::this_fiber::sleep_for(1ms);
                waits = true;
            },
            {.on = l});
        while (!waits) l.run_once(weft::after(l.now(), 1s));
        main.join();
    }  // ends both
    std::string s(1, 0);
    EXPECT_EQ(c.server.read(room(s)).value(), 0u) << "on a plain thread";
}

class halves_by_way : public weft::testing::on_each_way {};
INSTANTIATE_ON_WAYS(halves_by_way);

TEST_P(halves_by_way, are_used_by_two_threads) {
    auto [a, b] = unix_stream::pair().value();
    auto [reader, writer] = std::move(a).split();
    constexpr int count = 200;
    {
        weft::testing::crew reads(way(), [&, &r = reader](auto wait) -> weft::task<> {
            std::string s(4, 0);
            for (int i = 0; i < count; ++i) {
                const auto t = co_await wait(r.async_read_exact(room(s)));
                EXPECT_TRUE(t);
                EXPECT_EQ(s, "pong");
            }
        });
        weft::testing::crew writes(way(), [&, &w = writer](auto wait) -> weft::task<> {
            for (int i = 0; i < count; ++i) {
                const auto t = co_await wait(w.async_write_all(bytes_of("ping")));
                EXPECT_TRUE(t);
            }
            EXPECT_TRUE(w.finish());
        });
        std::string s(4, 0);
        for (int i = 0; i < count; ++i) {
            ASSERT_TRUE(b.read_exact(room(s)));
            ASSERT_TRUE(b.write_all(bytes_of("pong")));
        }
        EXPECT_EQ(b.read(room(s)).value(), 0u);
    }
}

TEST_P(halves_by_way, a_close_of_one_ends_the_wait_of_the_other) {
    auto [a, b] = unix_stream::pair().value();
    auto [reader, writer] = std::move(a).split();
    std::error_code how;
    weft::testing::crew reads(way(), [&, &r = reader](auto wait) -> weft::task<> {
        std::string s(1, 0);
        const auto n = co_await wait(r.async_read(room(s)));
        how = n.error();
    });
    reads.asleep();
    writer.close();
    reads.join();
    EXPECT_EQ(how, weft::errc::closed);
    EXPECT_EQ(writer.write_all(bytes_of("x")).error(), weft::errc::closed);
    EXPECT_EQ(writer.finish().error(), weft::errc::closed);
}

}  // namespace
