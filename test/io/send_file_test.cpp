// stream::send_file: a file to a socket, without copying it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "test/io/names.hpp"
#include "weft/io/file.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::file;
using weft::testing::bytes_unlike;
using weft::testing::file_of;

class sent_file : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(sent_file);

file file_with(const std::string& text) { return file::adopt(file_of(text)).value(); }

TEST_P(sent_file, arrives_whole_from_the_given_offset) {
    run([] {
        const std::string text = bytes_unlike(20 << 20);
        file f = file_with(text);
        auto c = weft::testing::connected();
        const std::uint64_t position = f.position();
        fiber sender([&] {
            const weft::transfer_result t = c.client.send_file(f, 5, text.size() - 5);
            EXPECT_TRUE(t) << t.error().message();
            EXPECT_EQ(t.bytes(), text.size() - 5);
            EXPECT_TRUE(c.client.write_all(bytes_of("rest")));
        });
        std::string got(text.size() - 1, 0);
        EXPECT_TRUE(c.server.read_exact(room(got)));
        EXPECT_TRUE(got == text.substr(5) + "rest");
        sender.join();
        EXPECT_EQ(f.position(), position);
        // The stream is as it was: the other direction waits as before.
        fiber reader([&] {
            std::string s(4, 0);
            EXPECT_TRUE(c.client.read_exact(room(s)));
        });
        weft::this_fiber::sleep_for(1ms);
        EXPECT_TRUE(c.server.write_all(bytes_of("back")));
        reader.join();
    });
}

TEST_P(sent_file, lets_others_run_meanwhile) {
    run([] {
        const std::string text(16 << 20, 'x');
        file f = file_with(text);
        auto c = weft::testing::connected();
        // It reads on another thread, so that the socket may always have room.
        std::thread far([&] {
            std::string got(text.size(), 0);
            EXPECT_TRUE(c.server.read_exact(room(got)));
        });
        std::atomic<bool> over = false;
        int turns = 0;
        fiber other([&] {
            for (; !over.load(); ++turns) weft::this_fiber::yield();
        });
        EXPECT_TRUE(c.client.send_file(f, 0, text.size()));
        over = true;
        other.join();
        far.join();
        EXPECT_GE(turns, 14);
    });
}

TEST_P(sent_file, that_is_shorter_reports_how_much_was_sent) {
    run([] {
        file f = file_with("short");
        auto c = weft::testing::connected();
        const weft::transfer_result t = c.client.send_file(f, 1, 100);
        EXPECT_EQ(t.error(), weft::errc::unexpected_eof);
        EXPECT_EQ(t.bytes(), 4u);
        std::string got(4, 0);
        EXPECT_TRUE(c.server.read_exact(room(got)));
        EXPECT_EQ(got, "hort");
        EXPECT_EQ(c.client.send_file(f, 9, 1).error(), weft::errc::unexpected_eof);
        EXPECT_TRUE(c.client.send_file(f, 0, 0));
    });
}

TEST_P(sent_file, that_is_truncated_meanwhile_reports_how_much_was_sent) {
    run([] {
        file f = file_with(std::string(32 << 20, 'x'));
        auto c = weft::testing::connected();
        weft::transfer_result t;
        fiber sender([&] {
            t = c.client.send_file(f, 0, 32 << 20);
            c.client.close();
        });
        std::string some(1 << 20, 0);
        EXPECT_TRUE(c.server.read_exact(room(some)));
        EXPECT_TRUE(f.resize(0));
        std::size_t got = some.size();
        while (const std::size_t n = c.server.read(room(some)).value()) got += n;
        sender.join();
        EXPECT_EQ(t.error(), weft::errc::unexpected_eof);
        EXPECT_LT(t.bytes(), 32u << 20);
        EXPECT_EQ(got, t.bytes());
    });
}

TEST_P(sent_file, that_is_closed_meanwhile_reports_it_and_how_much_was_sent) {
    run([] {
        file f = file_with(std::string(32 << 20, 'x'));
        auto c = weft::testing::connected();
        weft::transfer_result t;
        fiber sender([&] {
            t = c.client.send_file(f, 0, 32 << 20);
            c.client.close();
        });
        std::string some(1 << 20, 0);
        EXPECT_TRUE(c.server.read_exact(room(some)));
        f.close();
        std::size_t got = some.size();
        while (const std::size_t n = c.server.read(room(some)).value()) got += n;
        sender.join();
        EXPECT_EQ(t.error(), weft::errc::closed);
        EXPECT_LT(t.bytes(), 32u << 20);
        EXPECT_EQ(got, t.bytes());
    });
}

TEST_P(sent_file, that_is_no_regular_file_is_refused) {
    run([] {
        auto c = weft::testing::connected();
        file folder = file::open("/proc").value();
        EXPECT_EQ(c.client.send_file(folder, 0, 1).error(), std::errc::is_a_directory);
        file zeroes = file::open("/dev/zero").value();
        EXPECT_EQ(c.client.send_file(zeroes, 0, 1).error(), std::errc::invalid_argument);
        file closed = file_with("x");
        closed.close();
        EXPECT_EQ(c.client.send_file(closed, 0, 1).error(), weft::errc::closed);
        EXPECT_EQ(c.client.send_file(file(), 0, 1).error(), std::errc::bad_file_descriptor);
        file f = file_with("x");
        EXPECT_EQ(weft::tcp_stream().send_file(f, 0, 1).error(), std::errc::bad_file_descriptor);
    });
}

// SIGPIPE would end the test: its default is in force.
TEST_P(sent_file, to_a_closed_peer_is_an_error_and_no_signal) {
    run([] {
        file f = file_with(std::string(32 << 20, 'x'));
        auto c = weft::testing::connected();
        c.server.close();
        weft::transfer_result t;
        for (int i = 0; i < 3; ++i) t = c.client.send_file(f, 0, 32 << 20);
        EXPECT_TRUE(t.error() == std::errc::broken_pipe ||
                    t.error() == std::errc::connection_reset);
    });
}

TEST_P(sent_file, ends_at_a_timeout_and_reports_what_was_sent) {
    run([] {
        file f = file_with(std::string(32 << 20, 'x'));
        auto c = weft::testing::connected();
        c.client.set_options({.write_timeout = 5ms});
        const weft::transfer_result t = c.client.send_file(f, 0, 32 << 20);
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_GT(t.bytes(), 0u);
        c.client.close();
        std::string some(1 << 20, 0);
        std::size_t got = 0;
        while (const std::size_t n = c.server.read(room(some)).value()) got += n;
        EXPECT_EQ(got, t.bytes());
    });
}

TEST_P(sent_file, serves_tasks) {
    run([] {
        const std::string text = bytes_unlike(8 << 20);
        file f = file_with(text);
        auto c = weft::testing::connected();
        fiber reader([&] {
            std::string got(text.size(), 0);
            EXPECT_TRUE(c.server.read_exact(room(got)));
            EXPECT_TRUE(got == text);
        });
        auto send = [&]() -> weft::task<> {
            EXPECT_TRUE(co_await c.client.async_send_file(f, 0, text.size()));
        };
        weft::await(send());
        reader.join();
    });
}

}  // namespace
