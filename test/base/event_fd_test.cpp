// event_fd: readable after notify_event_fd(), until clear_event_fd().
#include "weft/base/detail/event_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "test/support/readable.hpp"

namespace {

using weft::detail::clear_event_fd;
using weft::detail::drain_event_fd;
using weft::detail::notify_event_fd;
using weft::detail::open_event_fd;
using weft::testing::readable;

TEST(event_fd, is_readable_once_notified_until_reset) {
    const int n = open_event_fd(false);
    EXPECT_EQ(::fcntl(n, F_GETFD), FD_CLOEXEC);
    EXPECT_FALSE(readable(n));
    for (int i = 0; i < 2; ++i) {
        notify_event_fd(n);
        notify_event_fd(n);
        EXPECT_TRUE(readable(n));
        i == 0 ? drain_event_fd(n) : clear_event_fd(n);
        EXPECT_FALSE(readable(n));
    }
    clear_event_fd(n);
    ::close(n);
}

TEST(event_fd, can_be_readable_from_the_start) {
    const int n = open_event_fd(true);
    EXPECT_TRUE(readable(n));
    ::close(n);
}

using event_fd_death = ::testing::Test;

// EBADF: as any other that does not pass.
TEST(event_fd_death, exits_with_a_message_when_a_write_or_read_fails) {
    EXPECT_EXIT(notify_event_fd(-1), ::testing::ExitedWithCode(2),
                "weft: write to an eventfd is refused: Bad file descriptor");
    EXPECT_EXIT(drain_event_fd(-1), ::testing::ExitedWithCode(2),
                "weft: read of an eventfd is refused: Bad file descriptor");
    EXPECT_EXIT(clear_event_fd(-1), ::testing::ExitedWithCode(2),
                "weft: read of an eventfd is refused: Bad file descriptor");
}

}  // namespace
