#include "weft/io/fd_watch.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "test/io/drivers.hpp"

namespace {

using namespace std::chrono_literals;
using weft::fd_events;
using weft::fd_watch;
using weft::fiber;
using weft::wait_fd;

class watch : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(watch);

struct pipe_ends {
    int read_end;
    int write_end;
    pipe_ends() {
        int n[2];
        EXPECT_EQ(::pipe2(n, O_CLOEXEC), 0);
        read_end = n[0];
        write_end = n[1];
    }
    ~pipe_ends() {
        ::close(read_end);
        if (write_end >= 0) ::close(write_end);
    }
    void write() const { EXPECT_EQ(::write(write_end, "x", 1), 1); }
    void read() const {
        char c;
        EXPECT_EQ(::read(read_end, &c, 1), 1);
    }
};

TEST_P(watch, reports_when_a_descriptor_is_ready) {
    run([] {
        const pipe_ends p;
        const fd_watch w(p.read_end);
        for (int i = 0; i < 5; ++i) {
            fiber writer([&] {
                weft::this_fiber::sleep_for(1ms);
                p.write();
            });
            EXPECT_EQ(w.wait(fd_events::read).value(), fd_events::read);
            p.read();
            writer.join();
        }
    });
}

TEST_P(watch, reports_a_descriptor_that_is_not_open) {
    run([] {
        const int number = ::fcntl(0, F_DUPFD_CLOEXEC, 900);
        ASSERT_GE(number, 900);
        ::close(number);
        for (const fd_events events : {fd_events::read, fd_events::write}) {
            EXPECT_EQ(wait_fd(number, events).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(fd_watch(number).wait(events).error(), std::errc::bad_file_descriptor);
        }
    });
}

TEST_P(watch, a_regular_file_is_ready_at_all_times) {
    run([] {
        const int number = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        ASSERT_GE(number, 0);
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(wait_fd(number, fd_events::read).value(), fd_events::read);
        ::close(number);
    });
}

// It has no events, so that no driver can watch it, and none may look again and again.
TEST_P(watch, a_wait_for_urgent_data_of_a_regular_file_does_not_spin) {
    run([] {
        const int number = ::memfd_create("weft", MFD_CLOEXEC);
        const double before = weft::testing::cpu_seconds();
        const auto found = wait_fd(number, fd_events::urgent, 200ms);
        EXPECT_FALSE(found);
        EXPECT_LT(weft::testing::cpu_seconds() - before, 0.1);
        ::close(number);
    });
}

std::vector<int> rings_of_this_process() {
    std::vector<int> rings;
    for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        if (std::filesystem::read_symlink(fd.path(), gone) == "anon_inode:[io_uring]")
            rings.push_back(std::stoi(fd.path().filename()));
    }
    return rings;
}

// The system ends a multishot poll when its result finds no room in the ring: it is started again.
TEST_P(watch, survives_an_overflow_of_its_drivers_ring) {
    run([] {
        const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        const fd_watch w(event);
        fiber writer([&] { EXPECT_EQ(::eventfd_write(event, 1), 0); });
        EXPECT_TRUE(w.wait(fd_events::read));  // from now on the driver watches it
        writer.join();
        const std::vector<int> rings = rings_of_this_process();
        for (int i = 0; i < 10'000; ++i) {
            EXPECT_EQ(::eventfd_write(event, 1), 0);
            // As the loop would, but without taking the results.
            for (const int ring : rings)
                ::syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_GETEVENTS, nullptr, 0);
        }
        ::eventfd_t value = 0;
        EXPECT_EQ(::eventfd_read(event, &value), 0);
        EXPECT_EQ(w.wait(fd_events::read, 20ms).error(), std::errc::timed_out);
        fiber again([&] { EXPECT_EQ(::eventfd_write(event, 1), 0); });
        EXPECT_TRUE(w.wait(fd_events::read));
        again.join();
        ::close(event);
    });
}

TEST_P(watch, reports_at_once_what_is_ready_already) {
    run([] {
        const pipe_ends p;
        EXPECT_EQ(wait_fd(p.write_end, fd_events::write).value(), fd_events::write);
        p.write();
        EXPECT_EQ(wait_fd(p.read_end, fd_events::read).value(), fd_events::read);
    });
}

TEST_P(watch, is_not_misled_by_reads_that_bypass_it) {
    run([] {
        const pipe_ends p;
        const fd_watch w(p.read_end);
        p.write();
        EXPECT_TRUE(w.wait(fd_events::read));
        p.read();
        EXPECT_EQ(w.wait(fd_events::read, 2ms).error(), std::errc::timed_out);
        p.write();
        EXPECT_TRUE(w.wait(fd_events::read));
    });
}

TEST_P(watch, takes_a_limit_of_each_kind) {
    run([] {
        const pipe_ends p;
        const fd_watch w(p.read_end);
        auto later = w.async_wait(fd_events::read, 20ms);
        weft::this_fiber::sleep_for(30ms);
        const weft::time_point begin = weft::now();
        EXPECT_EQ(weft::await(later).error(), std::errc::timed_out);
        EXPECT_GE(weft::now(), begin + 20ms) << "a duration begins when the wait begins";
        const auto passed = std::chrono::system_clock::now() - 1s;
        EXPECT_EQ(w.wait(fd_events::read, passed).error(), std::errc::timed_out);
        EXPECT_EQ(w.wait(fd_events::read, begin).error(), std::errc::timed_out);
        p.write();
        EXPECT_TRUE(w.wait(fd_events::read, std::chrono::system_clock::now() + 1h));
    });
}

TEST_P(watch, reports_a_hang_up) {
    run([] {
        pipe_ends p;
        const fd_watch w(p.read_end);
        fiber closer([&] {
            weft::this_fiber::sleep_for(1ms);
            ::close(std::exchange(p.write_end, -1));
        });
        EXPECT_TRUE(has(w.wait(fd_events::read).value(), fd_events::hang_up));
        closer.join();
    });
}

TEST_P(watch, serves_several_waiters) {
    run([] {
        const pipe_ends p;
        const fd_watch w(p.read_end);
        int notified = 0;
        fiber a([&] { notified += w.wait(fd_events::read).has_value(); });
        fiber b([&] { notified += w.wait(fd_events::read).has_value(); });
        weft::this_fiber::sleep_for(1ms);
        p.write();
        a.join();
        b.join();
        EXPECT_EQ(notified, 2);
    });
}

TEST_P(watch, serves_the_same_fd_again_and_again) {
    run([] {
        for (int i = 0; i < 50; ++i) {
            const pipe_ends p;
            p.write();
            EXPECT_TRUE(wait_fd(p.read_end, fd_events::read));
            p.read();
            EXPECT_EQ(wait_fd(p.read_end, fd_events::read, weft::now()).error(),
                      std::errc::timed_out);
        }
    });
}

TEST_P(watch, waits_for_a_timerfd) {
    run([] {
        const int t = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        const ::itimerspec in_2ms = {{0, 0}, {0, 2'000'000}};
        ASSERT_EQ(::timerfd_settime(t, 0, &in_2ms, nullptr), 0);
        EXPECT_TRUE(wait_fd(t, fd_events::read));
        ::close(t);
    });
}

TEST_P(watch, can_be_moved) {
    run([] {
        const pipe_ends p;
        p.write();
        fd_watch first(p.read_end);
        fd_watch second;
        second = std::move(first);
        EXPECT_EQ(second.wait(fd_events::read).value(), fd_events::read);
    });
}

TEST_P(watch, refuses_what_cannot_be_waited_for) {
    run([] {
        EXPECT_EQ(wait_fd(-1, fd_events::read).error(), std::errc::bad_file_descriptor);
        const fd_watch of_nothing;
        EXPECT_EQ(of_nothing.wait(fd_events::read).error(), std::errc::bad_file_descriptor);
        const pipe_ends p;
        EXPECT_EQ(wait_fd(p.read_end, fd_events::none).error(), std::errc::invalid_argument);
        EXPECT_EQ(wait_fd(p.read_end, fd_events::read | fd_events::write).error(),
                  std::errc::invalid_argument);
    });
}

TEST_P(watch, a_stop_ends_a_wait) {
    run([] {
        const pipe_ends p;
        std::error_code how;
        fiber f([&] { how = wait_fd(p.read_end, fd_events::read).error(); });
        weft::this_fiber::sleep_for(1ms);
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
    });
}

}  // namespace
