#include "weft/posix/detail/poll_many.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/sched/loop.hpp"

namespace {

using namespace std::chrono_literals;
using weft::detail::poll_many;

class descriptor_pair {
public:
    descriptor_pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
    descriptor_pair(const descriptor_pair&) = delete;
    ~descriptor_pair() {
        ::close(ends[0]);
        if (ends[1] >= 0) ::close(ends[1]);
    }
    void send() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
    void hang_up() { ::close(std::exchange(ends[1], -1)); }
    void fill() const {
        const std::vector<char> much(1 << 16);
        while (::send(ends[0], much.data(), much.size(), MSG_DONTWAIT) > 0) {
        }
    }
    void drain() const {
        std::vector<char> much(1 << 16);
        while (::recv(ends[1], much.data(), much.size(), MSG_DONTWAIT) > 0) {
        }
    }
    int ends[2];
};

class poll_many_with : public ::testing::TestWithParam<weft::io_kind> {
protected:
    // Two fibers, the second when the first waits.
    template <class F, class G>
    void run(F first, G second) {
        weft::loop l(weft::make_io_driver(GetParam()));
        weft::fiber a(first, {.on = l});
        weft::fiber b(second, {.on = l});
        l.run();
        a.join();
        b.join();
    }
};
INSTANTIATE_TEST_SUITE_P(all, poll_many_with,
                         ::testing::Values(weft::io_kind::epoll, weft::io_kind::io_uring,
                                           weft::io_kind::poll),
                         [](const auto& info) {
                             return info.param == weft::io_kind::epoll      ? "epoll"
                                    : info.param == weft::io_kind::io_uring ? "io_uring"
                                                                            : "poll";
                         });

TEST_P(poll_many_with, waits_until_one_is_readable) {
    descriptor_pair p;
    run(
        [&] {
            pollfd f{p.ends[0], POLLIN, -1};
            EXPECT_EQ(poll_many(&f, 1, weft::never), 1);
            EXPECT_EQ(f.revents, POLLIN);
        },
        [&] { p.send(); });
}

TEST_P(poll_many_with, waits_until_one_is_writable) {
    descriptor_pair p;
    p.fill();
    run(
        [&] {
            pollfd f{p.ends[0], POLLOUT, 0};
            EXPECT_EQ(poll_many(&f, 1, weft::never), 1);
            EXPECT_EQ(f.revents, POLLOUT);
        },
        [&] { p.drain(); });
}

TEST_P(poll_many_with, waits_for_both_directions_of_one) {
    descriptor_pair p;
    p.fill();
    run(
        [&] {
            pollfd f{p.ends[0], POLLIN | POLLOUT, 0};
            EXPECT_EQ(poll_many(&f, 1, weft::never), 1);
            EXPECT_EQ(f.revents, POLLIN);
        },
        [&] { p.send(); });
}

TEST_P(poll_many_with, waits_for_any_of_several_and_counts_the_ready) {
    descriptor_pair p[3];
    run(
        [&] {
            // One of them twice, and two values that are no descriptors.
            pollfd f[6] = {{p[0].ends[0], POLLIN, 0}, {-1, POLLIN, 5},
                           {p[1].ends[0], POLLIN, 0}, {p[1].ends[0], POLLIN | POLLPRI, 0},
                           {p[2].ends[0], POLLIN, 0}, {-7, POLLIN, 5}};
            EXPECT_EQ(poll_many(f, 6, weft::never), 2);
            EXPECT_EQ(f[0].revents, 0);
            EXPECT_EQ(f[1].revents, 0);
            EXPECT_EQ(f[2].revents, POLLIN);
            EXPECT_EQ(f[3].revents, POLLIN);
        },
        [&] { p[1].send(); });
}

TEST_P(poll_many_with, reports_an_unrequested_hang_up) {
    descriptor_pair p, q;
    run(
        [&] {
            pollfd f[2] = {{p.ends[0], 0, 0}, {q.ends[0], POLLIN, 0}};
            EXPECT_EQ(poll_many(f, 2, weft::never), 1);
            EXPECT_EQ(f[0].revents, POLLHUP);
        },
        [&] { p.hang_up(); });
}

TEST_P(poll_many_with, leaves_no_fd_open) {
    descriptor_pair p, q;
    run(
        [&] {
            int lowest[2];  // that is free, after a wait
            for (int& n : lowest) {
                pollfd f[2] = {{p.ends[0], POLLIN, 0}, {q.ends[0], POLLIN, 0}};
                EXPECT_EQ(poll_many(f, 2, weft::after(weft::now(), 1ms)), 0);
                n = ::dup(p.ends[0]);
                ::close(n);
            }
            EXPECT_EQ(lowest[0], lowest[1]);
        },
        [] {});
}

TEST_P(poll_many_with, returns_at_the_deadline) {
    descriptor_pair p, q;
    run(
        [&] {
            const auto until = weft::after(weft::now(), 3ms);
            pollfd f[2] = {{p.ends[0], POLLIN, 5}, {q.ends[0], POLLIN, 5}};
            EXPECT_EQ(poll_many(f, 1, until), 0);
            EXPECT_EQ(f[0].revents, 0);
            EXPECT_GE(weft::now(), until);
            const auto later = weft::after(weft::now(), 3ms);
            EXPECT_EQ(poll_many(f, 2, later), 0);
            EXPECT_EQ(f[1].revents, 0);
            EXPECT_GE(weft::now(), later);
        },
        [] {});
}

TEST_P(poll_many_with, sleeps_without_fds) {
    bool ran = false;
    run(
        [&] {
            const auto until = weft::after(weft::now(), 2ms);
            EXPECT_EQ(poll_many(nullptr, 0, until), 0);
            pollfd none{-1, POLLIN, 5};
            EXPECT_EQ(poll_many(&none, 1, until), 0);
            EXPECT_EQ(none.revents, 0);
            EXPECT_GE(weft::now(), until);
            EXPECT_TRUE(ran);
        },
        [&] { ran = true; });
}

TEST_P(poll_many_with, reports_a_closed_fd_as_poll_does) {
    int fd = -1;
    {
        descriptor_pair p;
        fd = ::fcntl(p.ends[0], F_DUPFD, 900);
        ::close(fd);
    }
    run(
        [&] {
            pollfd f{fd, POLLIN, 0};
            EXPECT_EQ(poll_many(&f, 1, weft::never), 1);
            EXPECT_EQ(f.revents, POLLNVAL);
        },
        [] {});
}

TEST_P(poll_many_with, does_not_wait_for_an_always_ready_fd) {
    const int fd = ::open("/dev/null", O_RDWR);
    ASSERT_GE(fd, 0);
    run(
        [&] {
            pollfd f{fd, POLLIN | POLLOUT, 0};
            EXPECT_EQ(poll_many(&f, 1, weft::never), 1);
        },
        [] {});
    ::close(fd);
}

TEST_P(poll_many_with, wakes_two_waiters_of_one_fd) {
    descriptor_pair p;
    int woken = 0;
    const auto waits = [&] {
        pollfd f{p.ends[0], POLLIN, 0};
        EXPECT_EQ(poll_many(&f, 1, weft::never), 1);
        ++woken;
    };
    weft::loop l(weft::make_io_driver(GetParam()));
    weft::fiber a(waits, {.on = l});
    weft::fiber b(waits, {.on = l});
    weft::fiber c([&] { p.send(); }, {.on = l});
    l.run();
    a.join(), b.join(), c.join();
    EXPECT_EQ(woken, 2);
}

TEST(poll_deadline, is_never_for_a_negative_timeout) {
    EXPECT_EQ(weft::detail::poll_deadline(-1), weft::never);
    const weft::time_point at_once = weft::detail::poll_deadline(0);
    EXPECT_LE(at_once, weft::now());
    EXPECT_GT(weft::detail::poll_deadline(1000), weft::now());
}

}  // namespace
