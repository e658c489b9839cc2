// Sessions on shared stacks, with their buffers there: while one waits, its buffer holds the bytes
// of another.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "examples/echo/random.hpp"
#include "test/io/names.hpp"
#include "test/support/on_stack.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/io/fd_watch.hpp"
#include "weft/io/file.hpp"
#include "weft/io/pipe.hpp"
#include "weft/io/resolver.hpp"
#include "weft/io/udp_socket.hpp"
#include "weft/io/unix_stream.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::tcp_listener;
using weft::tcp_stream;

class on_a_shared_stack : public weft::testing::on_each_driver {
protected:
    template <class F>
    fiber begin(F f) {
        return fiber(std::move(f), {.shared = &group_});
    }

    static void serve(tcp_stream& s) {
        std::array<std::byte, 512> buffer;
        for (;;) {
            const auto n = s.read(buffer);
            if (!n || *n == 0) return;
            ASSERT_TRUE(s.write_all(std::span(buffer).first(*n)));
        }
    }

    weft::shared_stack_group group_;
};
INSTANTIATE_ON_DRIVERS(on_a_shared_stack);

TEST_P(on_a_shared_stack, servers_and_clients_keep_their_bytes) {
    run([&] {
        tcp_listener l = weft::testing::any_listener();
        fiber server = begin([&] {
            for (;;) {
                auto s = l.accept();
                if (!s) return;
                begin([s = *std::move(s)]() mutable { serve(s); }).detach();
            }
        });
        std::vector<fiber> clients;
        for (std::uint64_t i = 0; i != 20; ++i)
            clients.push_back(begin([&, i] {
                tcp_stream s = tcp_stream::connect(l.local_endpoint()).value();
                echo::byte_stream said(i);
                echo::byte_stream heard(i);
                for (std::size_t n = 1; n < 2000; n = 2 * n + i) {
                    std::array<char, 4000> text;
                    said.peek(text.data(), n);
                    said.skip(n);
                    ASSERT_TRUE(s.write_all(bytes_of({text.data(), n})));
                    text.fill(0);
                    ASSERT_TRUE(s.read_exact(std::as_writable_bytes(std::span(text)).first(n)));
                    std::array<char, 4000> expected;
                    heard.peek(expected.data(), n);
                    heard.skip(n);
                    ASSERT_EQ(std::string_view(text.data(), n),
                              std::string_view(expected.data(), n));
                }
            }));
        for (fiber& c : clients) c.join();
        l.close();
        server.join();
    });
    EXPECT_GT(group_.stats().copy_count, 100u);
}

TEST_P(on_a_shared_stack, lines_are_read_into_a_string_on_the_stack) {
    run([&] {
        auto c = weft::testing::connected();
        fiber reader = begin([&] {
            std::string line;  // its first bytes are stored within it
            EXPECT_EQ(c.server.read_until(line, "\n", 100).value_or(0), 6u);
            EXPECT_EQ(line, "hello\n");
        });
        fiber other = begin([&] {
            std::array<char, 2000> noise;
            noise.fill('x');
            weft::this_fiber::yield();
            for (const std::string_view part : {"he", "llo", "\n"}) {
                ASSERT_TRUE(c.client.write_all(bytes_of(part)));
                weft::this_fiber::sleep_for(1ms);
            }
        });
        reader.join();
        other.join();
    });
}

TEST_P(on_a_shared_stack, datagrams_pipes_and_name_look_ups_work) {
    run([&] {
        weft::udp_socket a = weft::udp_socket::bind("127.0.0.1:0").value();
        weft::udp_socket b = weft::udp_socket::bind("127.0.0.1:0").value();
        weft::pipe p = weft::pipe::open().value();
        fiber receiver = begin([&] {
            std::array<std::byte, 16> buffer;
            const auto got = b.recv_from(buffer);
            ASSERT_TRUE(got);
            EXPECT_EQ(got->from, a.local_endpoint());
            EXPECT_EQ(got->bytes, 3u);
            ASSERT_TRUE(p.reader.read_exact(std::span(buffer).first(2)));
            EXPECT_EQ(buffer[1], std::byte{'d'});
        });
        fiber sender = begin([&] {
            weft::this_fiber::sleep_for(2ms);
            EXPECT_TRUE(a.send_to(bytes_of("abc"), b.local_endpoint()));
            weft::this_fiber::sleep_for(2ms);
            EXPECT_TRUE(p.writer.write_all(bytes_of("cd")));
        });
        receiver.join();
        sender.join();
    });
}

TEST_P(on_a_shared_stack, a_file_works_with_a_buffer_off_the_stack) {
    const std::string path =
        (std::filesystem::temp_directory_path() / "weft-shared-stack-test").string();
    run([&] {
        begin([&] {
            weft::file f =
                weft::file::open(path, {.read = true, .write = true, .create = true}).value();
            EXPECT_TRUE(f.write_all(bytes_of("on disk")));
            std::vector<std::byte> back(7);
            EXPECT_TRUE(f.read_exact_at(back, 0));
            EXPECT_EQ(back[3], std::byte{'d'});
        }).join();
    });
    std::filesystem::remove(path);
}

TEST_P(on_a_shared_stack, a_stopped_session_ends) {
    run([&] {
        auto c = weft::testing::connected();
        fiber session = begin([&] { serve(c.server); });
        weft::this_fiber::sleep_for(2ms);
        session.request_stop();
        session.join();
    });
    EXPECT_EQ(group_.stats().coroutine_count, 0u);
}

// A loop of its own, in the process that dies.
void writes_a_file_from_a_shared_stack() {
    weft::shared_stack_group group;
    weft::loop l;
    fiber f(
        [] {
            weft::file null = weft::file::open("/dev/null", {.write = true}).value();
            const std::array<std::byte, 100> buffer{};
            static_cast<void>(null.write_all(buffer));
        },
        {.on = l, .shared = &group});
    l.run();
}

TEST(on_a_shared_stack_death, a_file_operation_refuses_a_buffer_on_the_stack) {
    if (!weft::testing::locals_lie_on_the_stack) GTEST_SKIP() << "locals are kept elsewhere";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a file is opened by a thread
    EXPECT_DEATH(writes_a_file_from_a_shared_stack(),
                 "the buffer of a file's operation is on a shared stack: fiber");
}

}  // namespace
