#include "weft/io/pipe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "test/io/names.hpp"
#include "weft/task/task.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::pipe_reader;
using weft::pipe_writer;

// SIGPIPE would end the test: its default is in force.
class a_pipe : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_pipe);

weft::pipe open_pipe() { return weft::pipe::open().value(); }

TEST_P(a_pipe, carries_bytes) {
    run([] {
        auto [reader, writer] = open_pipe();
        ASSERT_TRUE(writer.write_all(bytes_of("some bytes")));
        std::string s(4, 0);
        ASSERT_TRUE(reader.read_exact(room(s)));
        EXPECT_EQ(s, "some");
        s.assign(100, 0);
        EXPECT_EQ(reader.read(room(s)).value(), 6u);
        EXPECT_EQ(s.substr(0, 6), " bytes");
    });
}

TEST_P(a_pipe, read_waits_for_the_first_byte) {
    run([] {
        auto [reader, writer] = open_pipe();
        std::string order;
        for (int i = 0; i < 5; ++i) {
            fiber f([&] {
                std::string s(10, 0);
                EXPECT_EQ(reader.read(room(s)).value(), 1u);
                order += s[0];
            });
            weft::this_fiber::sleep_for(1ms);
            order += "w";
            ASSERT_TRUE(writer.write_all(bytes_of("r")));
            f.join();
        }
        EXPECT_EQ(order, "wrwrwrwrwr");
    });
}

// More than a pipe holds.
TEST_P(a_pipe, a_slow_reader_suspends_the_writer) {
    run([] {
        auto [reader, writer] = open_pipe();
        std::string sent(4 << 20, 0);
        for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 4096);
        fiber f([&] {
            const weft::transfer_result t = writer.write_all(bytes_of(sent));
            EXPECT_TRUE(t);
            EXPECT_EQ(t.bytes(), sent.size());
        });
        weft::this_fiber::sleep_for(2ms);
        EXPECT_FALSE(f.done());
        std::string got(sent.size(), 0);
        ASSERT_TRUE(reader.read_exact(room(got)));
        EXPECT_TRUE(got == sent);
        f.join();
    });
}

TEST_P(a_pipe, read_finds_the_end) {
    run([] {
        auto [reader, writer] = open_pipe();
        ASSERT_TRUE(writer.write_all(bytes_of("last")));
        writer.close();
        std::string s(4, 0);
        EXPECT_EQ(reader.read(room(s)).value(), 4u);
        EXPECT_EQ(s, "last");
        EXPECT_EQ(reader.read(room(s)).value(), 0u);
        EXPECT_EQ(reader.read_exact(room(s)).error(), weft::errc::unexpected_eof);
    });
}

TEST_P(a_pipe, a_waiting_read_is_woken_by_the_end) {
    run([] {
        auto [reader, writer] = open_pipe();
        fiber closer([&] {
            weft::this_fiber::sleep_for(1ms);
            writer.close();
        });
        std::string s(4, 0);
        EXPECT_EQ(reader.read(room(s)).value(), 0u);
        closer.join();
    });
}

TEST_P(a_pipe, a_write_without_a_reader_is_an_error_and_no_signal) {
    run([] {
        auto [reader, writer] = open_pipe();
        reader.close();
        EXPECT_EQ(writer.write(bytes_of("x")).error(), std::errc::broken_pipe);
        EXPECT_EQ(writer.write_all(bytes_of("x")).error(), std::errc::broken_pipe);
    });
}

TEST_P(a_pipe, a_waiting_write_fails_when_the_reader_closes) {
    run([] {
        auto [reader, writer] = open_pipe();
        const std::string much(1 << 20, 'x');
        fiber closer([&] {
            weft::this_fiber::sleep_for(1ms);
            reader.close();
        });
        const weft::transfer_result t = writer.write_all(bytes_of(much));
        EXPECT_EQ(t.error(), std::errc::broken_pipe);
        EXPECT_GT(t.bytes(), 0u);
        EXPECT_LT(t.bytes(), much.size());
        closer.join();
    });
}

TEST_P(a_pipe, serves_tasks_as_it_serves_fibers) {
    run([] {
        auto [reader, writer] = open_pipe();
        auto write = [&]() -> weft::task<> {
            EXPECT_TRUE(co_await writer.async_write_all(bytes_of("from a task")));
            EXPECT_EQ((co_await writer.async_write(bytes_of("!"))).value(), 1u);
        };
        auto read = [&]() -> weft::task<std::string> {
            std::string s(11, 0);
            EXPECT_TRUE(co_await reader.async_read_exact(room(s)));
            std::string one(1, 0);
            EXPECT_EQ((co_await reader.async_read(room(one))).value(), 1u);
            co_return s + one;
        };
        EXPECT_EQ(std::get<0>(weft::await(weft::when_all(read(), write()))), "from a task!");
    });
}

TEST_P(a_pipe, serves_plain_threads) {
    weft::pipe there = open_pipe();
    weft::pipe back = open_pipe();
    std::thread far([&] {
        std::string s(4, 0);
        EXPECT_TRUE(there.reader.read_exact(room(s)));
        EXPECT_TRUE(back.writer.write_all(bytes_of(s)));
    });
    run([&] {
        std::string s(4, 0);
        EXPECT_TRUE(there.writer.write_all(bytes_of("near")));
        EXPECT_TRUE(back.reader.read_exact(room(s)));
        EXPECT_EQ(s, "near");
    });
    far.join();
}

TEST_P(a_pipe, refuses_use_when_moved_from_or_empty) {
    run([] {
        auto [reader, writer] = open_pipe();
        const auto there = std::pair(std::move(reader), std::move(writer));
        weft::pipe_reader never_read;
        for (weft::pipe_reader* none : {&reader, &never_read}) {
            std::string s(1, 0);
            EXPECT_EQ(none->read(room(s)).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_borrowed().error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_exact(room(s)).error(), std::errc::bad_file_descriptor);
            none->set_options({});
            none->close();
        }
        weft::pipe_writer never_written;
        for (weft::pipe_writer* none : {&writer, &never_written}) {
            EXPECT_EQ(none->write(bytes_of("x")).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->write_all(bytes_of("x")).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->options().write_timeout, weft::no_timeout);
        }
    });
}

TEST_P(a_pipe, a_second_reader_is_refused) {
    run([] {
        auto [reader, writer] = open_pipe();
        fiber first([&] {
            std::string s(1, 0);
            EXPECT_EQ(reader.read(room(s)).value(), 1u);
        });
        weft::this_fiber::sleep_for(1ms);
        std::string s(1, 0);
        EXPECT_EQ(reader.read(room(s)).error(), std::errc::operation_in_progress);
        ASSERT_TRUE(writer.write_all(bytes_of("x")));
        first.join();
    });
}

TEST_P(a_pipe, honours_its_timeouts) {
    run([] {
        auto [reader, writer] = open_pipe();
        reader.set_options({.read_timeout = 1ms});
        std::string s(4, 0);
        EXPECT_EQ(reader.read(room(s)).error(), std::errc::timed_out);
        writer.set_options({.write_timeout = 1ms});
        const std::string much(1 << 20, 'x');
        const weft::transfer_result t = writer.write_all(bytes_of(much));
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_GT(t.bytes(), 0u);
    });
}

TEST_P(a_pipe, a_stop_ends_a_read) {
    run([] {
        auto [reader, writer] = open_pipe();
        std::error_code how;
        std::string s(4, 0);
        fiber f([&] { how = reader.read(room(s)).error(); });
        weft::this_fiber::sleep_for(1ms);
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        ASSERT_TRUE(writer.write_all(bytes_of("kept")));
        EXPECT_TRUE(reader.read_exact(room(s)));
        EXPECT_EQ(s, "kept");
    });
}

TEST_P(a_pipe, close_ends_a_read_of_the_same_end) {
    run([] {
        auto [reader, writer] = open_pipe();
        std::error_code how;
        std::string s(4, 0);
        fiber f([&] { how = reader.read(room(s)).error(); });
        weft::this_fiber::sleep_for(1ms);
        reader.close();
        f.join();
        EXPECT_EQ(how, weft::errc::closed);
        EXPECT_EQ(reader.read(room(s)).error(), weft::errc::closed);
        weft::this_fiber::sleep_for(1ms);  // until the driver has released it
        EXPECT_EQ(writer.write(bytes_of("x")).error(), std::errc::broken_pipe);
    });
}

TEST_P(a_pipe, can_be_adopted_from_a_fifo) {
    run([] {
        const std::string path = ::testing::TempDir() + "weft.fifo." + std::to_string(::getpid());
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
        const int both = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        pipe_writer writer = pipe_writer::adopt(::open(path.c_str(), O_WRONLY | O_CLOEXEC)).value();
        pipe_reader reader = pipe_reader::adopt(both).value();
        ::unlink(path.c_str());
        std::string s(4, 0);
        fiber f([&] { EXPECT_TRUE(reader.read_exact(room(s))); });
        weft::this_fiber::sleep_for(1ms);
        ASSERT_TRUE(writer.write_all(bytes_of("fifo")));
        f.join();
        EXPECT_EQ(s, "fifo");
        EXPECT_EQ(pipe_reader::adopt(-1).error(), std::errc::bad_file_descriptor);
    });
}

TEST_P(a_pipe, a_regular_file_is_read_to_its_end) {
    run([] {
        const int file = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
        auto reader = pipe_reader::adopt(file).value();
        std::string s(64, 0);
        std::size_t all = 0;
        for (;;) {
            const auto n = reader.read(room(s));
            ASSERT_TRUE(n) << n.error().message();
            if (*n == 0) break;
            all += *n;
        }
        EXPECT_GT(all, 64u);
        EXPECT_EQ(reader.read(room(s)).value(), 0u);
    });
}

}  // namespace
