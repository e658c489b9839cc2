#include "weft/io/standard_streams.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <optional>
#include <span>
#include <string>

#include "test/io/names.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::testing::file_of;
using weft::testing::in_place_of;

class a_standard_stream : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_standard_stream);

std::string text_to_end_of(weft::pipe_reader& in) {
    std::string all;
    std::string some(700, 0);
    for (;;) {
        const auto n = in.read(room(some));
        EXPECT_TRUE(n) << n.error().message();
        if (n.value_or(0) == 0) return all;
        all.append(some, 0, *n);
    }
}

bool is_blocking(int number) { return (::fcntl(number, F_GETFL) & O_NONBLOCK) == 0; }

TEST_P(a_standard_stream, a_file_is_read_to_its_end) {
    run([] {
        const std::string text(5000, 'x');
        const in_place_of zero(0, file_of(text));
        auto in = weft::standard_input().value();
        EXPECT_EQ(text_to_end_of(in), text);
        EXPECT_EQ(in.read_exact({}).bytes(), 0u);
        std::string one(1, 0);
        EXPECT_EQ(in.read_exact(room(one)).error(), weft::errc::unexpected_eof);
        EXPECT_TRUE(in.read_borrowed().value().empty());
        EXPECT_TRUE(is_blocking(0));
    });
}

// As a shell's `read` does, what is read here is not there for the next program.
TEST_P(a_standard_stream, a_file_is_read_at_its_shared_offset) {
    run([] {
        const in_place_of zero(0, file_of("some bytes"));
        auto in = weft::standard_input().value();
        std::string s(4, 0);
        EXPECT_TRUE(in.read_exact(room(s)));
        EXPECT_EQ(s, "some");
        EXPECT_EQ(::lseek(0, 0, SEEK_CUR), 4);
        EXPECT_EQ(::lseek(0, 5, SEEK_SET), 5);
        EXPECT_EQ(in.read_borrowed().value().size(), 5u);
    });
}

TEST_P(a_standard_stream, a_file_is_written_whole) {
    run([] {
        const int number = file_of("");
        const int mine = ::fcntl(number, F_DUPFD_CLOEXEC, 3);
        const std::string much(5 << 20, 'y');
        {
            const in_place_of two(2, number);
            auto out = weft::standard_error().value();
            EXPECT_TRUE(out.write_all(bytes_of("first ")));
            EXPECT_TRUE(out.write_all(bytes_of(much)));
            const std::span<const std::byte> two_parts[] = {bytes_of(" and"), bytes_of(much)};
            EXPECT_TRUE(out.write_all(two_parts));
        }
        EXPECT_EQ(::lseek(mine, 0, SEEK_END), 10 + (10 << 20));
        ::close(mine);
    });
}

TEST_P(a_standard_stream, a_pipe_stays_blocking_for_other_users) {
    run([] {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        const in_place_of zero(0, ends[0]);
        auto in = weft::standard_input().value();
        std::string s(4, 0);
        fiber f([&] { EXPECT_TRUE(in.read_exact(room(s))); });
        weft::this_fiber::sleep_for(1ms);
        EXPECT_EQ(::write(ends[1], "pipe", 4), 4);
        f.join();
        EXPECT_EQ(s, "pipe");
        EXPECT_TRUE(is_blocking(0));
        ::close(ends[1]);
        EXPECT_EQ(in.read(room(s)).value(), 0u);
    });
}

TEST_P(a_standard_stream, a_terminal_stays_blocking_for_other_users) {
    run([] {
        const int far = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(far, 0);
        ASSERT_EQ(::grantpt(far), 0);
        ASSERT_EQ(::unlockpt(far), 0);
        const int near = ::open(::ptsname(far), O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(near, 0);
        const int same = ::fcntl(near, F_DUPFD_CLOEXEC, 3);
        const in_place_of zero(0, near);
        const in_place_of two(2, same);
        auto in = weft::standard_input().value();
        auto out = weft::standard_error().value();
        EXPECT_TRUE(is_blocking(0));
        std::string line(100, 0);
        std::size_t count = 0;
        fiber f([&] { count = in.read(room(line)).value(); });
        weft::this_fiber::sleep_for(1ms);
        EXPECT_EQ(::write(far, "typed\n", 6), 6);
        f.join();
        EXPECT_EQ(line.substr(0, count), "typed\n");
        EXPECT_TRUE(out.write_all(bytes_of("shown")));
        EXPECT_TRUE(is_blocking(0));
        EXPECT_TRUE(is_blocking(2));
        ::close(far);
    });
}

// A second open of a master would make another pty.
TEST_P(a_standard_stream, a_pty_master_is_not_opened_again) {
    run([] {
        const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(master, 0);
        ASSERT_EQ(::unlockpt(master), 0);
        const int near = ::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(near, 0);
        const in_place_of zero(0, master);
        auto in = weft::standard_input().value();
        EXPECT_EQ(::write(near, "told", 4), 4);
        std::string s(4, 0);
        EXPECT_TRUE(in.read_exact(room(s)));
        EXPECT_EQ(s, "told");
        ::close(near);
    });
}

TEST_P(a_standard_stream, a_socket_stays_blocking_for_other_users) {
    run([] {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        const int same = ::fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
        const in_place_of zero(0, ends[0]);
        const in_place_of two(2, same);
        auto in = weft::standard_input().value();
        auto out = weft::standard_error().value();
        std::string s(4, 0);
        fiber f([&] { EXPECT_TRUE(in.read_exact(room(s))); });
        weft::this_fiber::sleep_for(1ms);
        EXPECT_EQ(::write(ends[1], "sock", 4), 4);
        f.join();
        EXPECT_TRUE(out.write_all(bytes_of("back")));
        EXPECT_EQ(::read(ends[1], s.data(), 4), 4);
        EXPECT_EQ(s, "back");
        EXPECT_TRUE(is_blocking(0));
        ::close(ends[1]);
        EXPECT_EQ(out.write(bytes_of("x")).error(), std::errc::broken_pipe);
    });
}

TEST_P(a_standard_stream, the_null_device_is_empty_and_accepts_all_writes) {
    run([] {
        const in_place_of zero(0, ::open("/dev/null", O_RDONLY | O_CLOEXEC));
        const in_place_of two(2, ::open("/dev/null", O_WRONLY | O_CLOEXEC));
        auto in = weft::standard_input().value();
        auto out = weft::standard_error().value();
        EXPECT_EQ(text_to_end_of(in), "");
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(out.write_all(bytes_of("nothing")));
    });
}

// What cannot be opened a second time, as a pipe of another user.
TEST_P(a_standard_stream, that_is_shared_is_nonblocking_while_in_use) {
    run([] {
        const in_place_of zero(0, ::eventfd(0, EFD_CLOEXEC));
        {
            std::optional<weft::pipe_reader> first = weft::standard_input().value();
            std::optional<weft::pipe_reader> second = weft::standard_input().value();
            EXPECT_FALSE(is_blocking(0));
            first.reset();
            EXPECT_FALSE(is_blocking(0)) << "a read of the other would wait";
            second->set_options({.read_timeout = 1ms});
            std::string number(8, 0);
            EXPECT_EQ(second->read(room(number)).error(), std::errc::timed_out);
        }
        EXPECT_TRUE(is_blocking(0)) << "as it was";
    });
}

TEST_P(a_standard_stream, that_is_not_open_is_an_error) {
    run([] {
        const in_place_of zero(0, file_of(""));
        ::close(0);
        EXPECT_EQ(weft::standard_input().error(), std::errc::bad_file_descriptor);
    });
}

}  // namespace
