#include "weft/io/detail/write_nosignal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "test/support/without_call.hpp"

namespace {

// A pipe that no thread reads, and SIGPIPE, counted.
class write_nosignal
    : public ::testing::TestWithParam<std::int64_t (*)(int, const void*, std::size_t)> {
protected:
    void SetUp() override {
        ASSERT_EQ(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
        raised_ = 0;
        struct ::sigaction a{};
        a.sa_handler = [](int) { raised_ = raised_ + 1; };
        ASSERT_EQ(::sigaction(SIGPIPE, &a, &before_), 0);
    }
    void TearDown() override {
        ::sigaction(SIGPIPE, &before_, nullptr);
        ::close(ends_[1]);
        close_reader();
    }

    std::int64_t write(std::size_t bytes) { return GetParam()(ends_[1], data_, bytes); }
    void close_reader() {
        if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
    }
    static bool is_pending() {
        ::sigset_t s;
        ::sigpending(&s);
        return ::sigismember(&s, SIGPIPE) == 1;
    }
    static void mask(int how) {
        ::sigset_t s;
        ::sigemptyset(&s);
        ::sigaddset(&s, SIGPIPE);
        ::pthread_sigmask(how, &s, nullptr);
    }

    static inline volatile ::sig_atomic_t raised_ = 0;

private:
    int ends_[2] = {-1, -1};
    struct ::sigaction before_{};
    char data_[1 << 17] = {};
};

TEST_P(write_nosignal, writes_as_write_does) {
    EXPECT_EQ(write(10), 10);
    const std::int64_t some = write(1 << 17);
    EXPECT_GT(some, 0);
    EXPECT_LT(some, 1 << 17);
    EXPECT_EQ(write(4096), -EAGAIN);
    EXPECT_EQ(raised_, 0);
}

TEST_P(write_nosignal, raises_no_signal) {
    close_reader();
    EXPECT_EQ(write(1), -EPIPE);
    EXPECT_EQ(raised_, 0);
    // A signal by other code does arrive: the mask is as it was.
    ::raise(SIGPIPE);
    EXPECT_EQ(raised_, 1);
}

TEST_P(write_nosignal, leaves_no_signal_pending) {
    close_reader();
    mask(SIG_BLOCK);
    EXPECT_EQ(write(1), -EPIPE);
    EXPECT_FALSE(is_pending());
    mask(SIG_UNBLOCK);
    EXPECT_EQ(raised_, 0);
}

TEST_P(write_nosignal, leaves_an_earlier_signal_pending) {
    close_reader();
    mask(SIG_BLOCK);
    ::raise(SIGPIPE);
    EXPECT_EQ(write(1), -EPIPE);
    EXPECT_TRUE(is_pending());
    mask(SIG_UNBLOCK);
    EXPECT_EQ(raised_, 1);
}

// In a process of its own, which believes that from then on.
TEST(write_nosignal_death, works_without_pwritev2) {
    const auto body = [] {
        if (!weft::testing::without_call(SYS_pwritev2)) ::_exit(0);  // that may be refused
        int ends[2];
        bool well = ::pipe(ends) == 0;
        well = well && weft::detail::write_nosignal(ends[1], "ab", 2) == 2;
        ::close(ends[0]);
        well = well && weft::detail::write_nosignal(ends[1], "c", 1) == -EPIPE;
        ::_exit(well ? 0 : 1);
    };
    EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

constexpr std::int64_t (*as_can_be)(int, const void*, std::size_t) = weft::detail::write_nosignal;
INSTANTIATE_TEST_SUITE_P(write, write_nosignal,
                         ::testing::Values(as_can_be, weft::detail::write_with_sigpipe_blocked),
                         [](const auto& i) {
                             return i.param == as_can_be ? "as_can_be" : "signal_blocked";
                         });

}  // namespace
