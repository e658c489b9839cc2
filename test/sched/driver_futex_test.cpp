#include "weft/sched/driver_futex.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <thread>

#include "test/support/readable.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

using testing::readable;

TEST(driver_futex, remembers_a_wake_that_came_before_the_wait) {
    driver_futex d;
    d.wake();
    d.wake();
    EXPECT_TRUE(d.wait(never));
    const time_point until = d.now() + 1ms;
    EXPECT_TRUE(d.wait(until));
    EXPECT_GE(d.now(), until) << "two wakes that nobody saw are one";
}

TEST(driver_futex, never_returns_early) {
    driver_futex d;
    for (const duration step : {duration(-1h), duration(0), duration(1), duration(300us)}) {
        const time_point until = d.now() + step;
        EXPECT_TRUE(d.wait(until));
        EXPECT_GE(d.now(), until);
    }
}

TEST(driver_futex, is_woken_by_another_thread) {
    driver_futex d;
    for (int i = 0; i < 100; ++i) {
        std::thread other([&] { d.wake(); });
        EXPECT_TRUE(d.wait(i % 2 != 0 ? never : d.now() + 1h));
        other.join();
    }
}

TEST(driver_futex, can_be_destroyed_as_soon_as_its_loop_is_woken) {
    for (int i = 0; i < 100; ++i) {
        auto d = std::make_unique<driver_futex>();
        std::thread other([&d = *d] { d.wake(); });
        EXPECT_TRUE(d->wait(never));
        other.join();
    }
}

TEST(driver_futex, has_a_handle_that_is_readable_from_a_wake_to_the_next_wait) {
    driver_futex d;
    const int fd = d.native_handle();
    ASSERT_GE(fd, 0);
    EXPECT_EQ(d.native_handle(), fd);
    EXPECT_FALSE(readable(fd));
    for (int i = 0; i < 3; ++i) {
        d.wake();
        EXPECT_TRUE(readable(fd));
        EXPECT_TRUE(readable(fd));
        EXPECT_TRUE(d.wait(d.now()));
        EXPECT_FALSE(readable(fd));
    }
}

TEST(driver_futex, has_a_handle_that_is_nonblocking_and_close_on_exec) {
    driver_futex d;
    const int fd = d.native_handle();
    EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(driver_futex, makes_its_handle_readable_again_after_a_forgotten_wake) {
    driver_futex d;
    const int fd = d.native_handle();
    for (int i = 0; i < 3; ++i) {
        d.wake();
        EXPECT_TRUE(readable(fd));
        d.clear_wake();
        EXPECT_FALSE(readable(fd));
    }
    const time_point until = d.now() + 1ms;
    EXPECT_TRUE(d.wait(until));
    EXPECT_GE(d.now(), until) << "what is forgotten ends no wait";
}

TEST(driver_futex, has_a_handle_that_is_readable_if_the_wake_came_first) {
    driver_futex d;
    d.wake();
    EXPECT_TRUE(readable(d.native_handle()));
    EXPECT_TRUE(d.wait(never));
    EXPECT_FALSE(readable(d.native_handle()));
}

}  // namespace
}  // namespace weft
