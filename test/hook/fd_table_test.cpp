#include "weft/hook/detail/fd_table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace {

using namespace weft::hook;

TEST(fd_table, caches_the_type_of_an_fd) {
    int p[2];
    int s[2];
    int d[2];
    ASSERT_EQ(::pipe(p), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, d), 0);
    const int e = ::eventfd(0, 0);
    const int f = ::open("/proc/self/exe", O_RDONLY);
    EXPECT_EQ(known_sort(p[0]).sort(), fd_sort::unknown);
    EXPECT_EQ(sort_of(p[0]).sort(), fd_sort::pipe);
    EXPECT_EQ(known_sort(p[0]).sort(), fd_sort::pipe);
    EXPECT_EQ(sort_of(s[0]).sort(), fd_sort::stream);
    EXPECT_EQ(sort_of(d[0]).sort(), fd_sort::message);
    EXPECT_TRUE(sort_of(d[0]).is_socket());
    EXPECT_EQ(sort_of(e).sort(), fd_sort::counter);
    EXPECT_EQ(sort_of(f).sort(), fd_sort::file);
    EXPECT_EQ(sort_of(-1).sort(), fd_sort::unknown);
    EXPECT_EQ(sort_of(1 << 30).sort(), fd_sort::unknown);
    for (const int fd : {p[0], p[1], s[0], s[1], d[0], d[1], e, f}) {
        ::close(fd);
        EXPECT_EQ(known_sort(fd).sort(), fd_sort::unknown);
    }
}

TEST(fd_table, queries_nonblocking_mode_each_time) {
    int p[2];
    ASSERT_EQ(::pipe2(p, O_NONBLOCK), 0);
    EXPECT_TRUE(is_nonblocking(p[0]));
    ASSERT_EQ(::fcntl(p[1], F_SETFL, 0), 0);
    EXPECT_TRUE(is_nonblocking(p[0]));  // of another file
    EXPECT_FALSE(is_nonblocking(p[1]));
    const pid_t child = ::fork();
    if (child == 0) {
        int off = 0;
        std::_Exit(
            ::ioctl(p[0], FIONBIO, &off) == 0 && ::fcntl(p[1], F_SETFL, O_NONBLOCK) == 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    EXPECT_FALSE(is_nonblocking(p[0]));
    EXPECT_TRUE(is_nonblocking(p[1]));
    EXPECT_FALSE(is_nonblocking(-1));
    ::close(p[0]);
    ::close(p[1]);
}

// In a process of its own, because the table's places are set up once per process.
TEST(fd_table, can_be_read_while_another_thread_creates_it) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto body = [] {
        int p[2];
        if (::pipe(p) != 0) std::_Exit(2);
        std::thread reader([&] {
            while (known_sort(p[0]).sort() == fd_sort::unknown) std::this_thread::yield();
        });
        static_cast<void>(learn_sort(p[0]));
        reader.join();
        std::_Exit(known_sort(p[0]).sort() == fd_sort::pipe ? 0 : 1);
    };
    EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
