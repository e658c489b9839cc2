// Cases of what is neither a socket nor a file: terminals with their modes, eventfds, pipes that
// have a name, and what has no attempt that does not wait.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/fiber/fiber.hpp"

namespace {

using namespace weft::testing;

// Both ends of a terminal; `mine` is what a program has.
struct terminal {
    int far = -1;
    int mine = -1;

    explicit terminal(bool raw, unsigned char least = 1, unsigned char time = 0) {
        HOOKED(openpty)(&far, &mine, nullptr, nullptr, nullptr);
        termios modes;
        ::tcgetattr(mine, &modes);
        if (raw)
            ::cfmakeraw(&modes);
        else
            modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        if (raw) {
            modes.c_cc[VMIN] = least;
            modes.c_cc[VTIME] = time;
        }
        ::tcsetattr(mine, TCSANOW, &modes);
    }
    terminal(const terminal&) = delete;
    ~terminal() {
        if (far >= 0) HOOKED(close)(far);
        if (mine >= 0) HOOKED(close)(mine);
    }
};

std::string text(const char* bytes, ssize_t n) {
    return {bytes, n > 0 ? static_cast<std::size_t>(n) : 0};
}

POSIX_CASE(more_is_written_to_a_terminal_than_it_holds) {
    for (const bool by_the_program : {true, false}) {
        terminal p(true);
        const int from = by_the_program ? p.mine : p.far;
        const int to = by_the_program ? p.far : p.mine;
        constexpr std::size_t all = 100'000;
        std::size_t come = 0;
        t.beside([&] {
            char bytes[4096];
            after_ms(3);
            while (come < all) {
                const ssize_t n = HOOKED(read)(to, bytes, sizeof bytes);
                if (n <= 0) break;
                come += static_cast<std::size_t>(n);
            }
        });
        const std::vector<char> much(all, 'x');
        t.told("write", HOOKED(write)(from, much.data(), much.size()));
        t.join();
        t.told("come", static_cast<long>(come));
    }
}

POSIX_CASE(a_terminal_gives_lines) {
    terminal p(false);
    t.beside([&] {
        after_ms(3);
        HOOKED(write)(p.far, "ab", 2);
        after_ms(5);
        HOOKED(write)(p.far, "c\nde\n\x04", 7);
    });
    char bytes[16];
    for (int i = 0; i < 3; ++i) {
        const ssize_t n = HOOKED(read)(p.mine, bytes, sizeof bytes);
        t.told("read", n);
        t.said("line", text(bytes, n));
    }
    t.join();
    HOOKED(fcntl)(p.mine, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    t.told("nothing", HOOKED(read)(p.mine, bytes, sizeof bytes));
    HOOKED(close)(p.far);
    p.far = -1;
    HOOKED(fcntl)(p.mine, F_SETFL, nullptr);
    t.told("hung up", HOOKED(read)(p.mine, bytes, sizeof bytes));
    t.told("hung up", HOOKED(write)(p.mine, bytes, 1));
}

POSIX_CASE(a_splice_that_waits_for_a_terminal_hears_of_the_close) {
    for (const bool reads : {true, false}) {
        terminal p(true);
        const auto ends = fd_pair::pipe();
        if (!reads) {
            HOOKED(write)(ends.b, "some", 4);
            HOOKED(fcntl)(p.mine, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
            // What it has taken reaches the other side a little later, and then there is room
            // again.
            const std::vector<char> much(100, 'x');
            for (unsigned refused = 0; refused != 20; ++refused) {
                while (HOOKED(write)(p.mine, much.data(), much.size()) > 0) refused = 0;
                after_ms(2);
            }
            HOOKED(fcntl)(p.mine, F_SETFL, nullptr);
        }
        t.beside([&] {
            after_ms(20);
            HOOKED(close)(p.far);
            p.far = -1;
        });
        const auto splice = [&] {
            return reads ? HOOKED(splice)(p.mine, nullptr, ends.b, nullptr, 10, 0)
                         : HOOKED(splice)(ends.a, nullptr, p.mine, nullptr, 10, 0);
        };
        t.told("splice that waits", splice());
        t.join();
        t.told("splice afterwards", splice());
    }
}

POSIX_CASE(a_terminal_collects_as_it_was_told) {
    struct {
        unsigned char least, time;
        std::size_t wanted;
    } const modes[] = {{1, 0, 8}, {3, 0, 8}, {5, 0, 2}, {0, 0, 8}, {0, 3, 8}, {3, 3, 8}, {9, 3, 4}};
    for (const auto& m : modes) {
        terminal p(true, m.least, m.time);
        t.beside([&] {
            after_ms(30);
            HOOKED(write)(p.far, "ab", 2);
            after_ms(100);
            HOOKED(write)(p.far, "cd", 2);
            if (m.time == 0) return;
            after_ms(500);
            HOOKED(write)(p.far, "ef", 2);
        });
        char bytes[8];
        const ssize_t n = HOOKED(read)(p.mine, bytes, m.wanted);
        t.told("read", n);
        t.said("bytes", text(bytes, n));
        t.join();
        HOOKED(fcntl)(p.mine, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
        long rest = 0;
        for (ssize_t left; (left = HOOKED(read)(p.mine, bytes, sizeof bytes)) > 0;) rest += left;
        t.told("rest", rest);
    }
}

POSIX_CASE(a_read_that_waits_is_told_that_the_other_side_is_closed) {
    struct {
        unsigned char least, time;
        std::size_t wanted;
    } const modes[] = {{1, 0, 8}, {4, 0, 8}, {4, 0, 2}, {4, 1, 8}};
    for (const auto& m : modes)
        for (const bool has_part : {false, true}) {
            terminal p(true, m.least, m.time);
            if (has_part) HOOKED(write)(p.far, "a", 1);
            t.beside([&] {
                after_ms(10);
                HOOKED(close)(p.far);
                p.far = -1;
            });
            char bytes[8];
            // A part that was collected is delivered or lost, depending on when the reader runs.
            const ssize_t n = HOOKED(read)(p.mine, bytes, m.wanted);
            if (!has_part) t.told("read", n);
            t.join();
            t.told("and then", HOOKED(read)(p.mine, bytes, m.wanted));
        }
    terminal lines(false);
    t.beside([&] {
        after_ms(10);
        HOOKED(close)(lines.far);
        lines.far = -1;
    });
    char bytes[8];
    t.told("a line", HOOKED(read)(lines.mine, bytes, sizeof bytes));
    t.join();
}

POSIX_CASE(the_steering_side_waits_for_room_though_the_other_is_closed) {
    terminal p(true);
    char name[64];
    ::ptsname_r(p.far, name, sizeof name);
    HOOKED(close)(p.mine);
    p.mine = -1;
    constexpr std::size_t all = 300'000;
    std::size_t come = 0;
    t.beside([&] {
        after_ms(20);
        p.mine = HOOKED(open)(name, O_RDWR | O_NOCTTY, 0);
        char bytes[4096];
        while (come < all) {
            const ssize_t n = HOOKED(read)(p.mine, bytes, sizeof bytes);
            if (n <= 0) break;
            come += static_cast<std::size_t>(n);
        }
    });
    const std::vector<char> much(all, 'x');
    t.told("write", HOOKED(write)(p.far, much.data(), much.size()));
    t.join();
}

// Some of them wait until there is something that has no room.
POSIX_CASE(a_read_of_no_bytes_waits_where_the_system_does) {
    const auto p = fd_pair::pipe();
    const one_fd event(HOOKED(eventfd)(0, 0));
    const one_fd timer(HOOKED(timerfd_create)(CLOCK_MONOTONIC, 0));
    sigset_t some;
    ::sigemptyset(&some);
    ::sigaddset(&some, SIGUSR1);
    const one_fd signals(HOOKED(signalfd)(-1, &some, 0));
    int main = -1;
    int side = -1;
    HOOKED(openpty)(&main, &side, nullptr, nullptr, nullptr);
    const one_fd steers(main);
    const one_fd terminal(side);
    const one_fd null(HOOKED(open)("/dev/null", O_RDONLY));
    char c;
    const iovec none = {&c, 0};
    for (const int fd : {p.a, p.b, event.n, timer.n, signals.n, steers.n, terminal.n, null.n}) {
        t.told("read", HOOKED(read)(fd, &c, 0));
        t.told("readv", HOOKED(readv)(fd, &none, 1));
    }
    char folder[] = "/tmp/weft-watched-XXXXXX";
    if (::mkdtemp(folder) == nullptr) return;
    const std::string file = std::string(folder) + "/file";
    const one_fd watch(HOOKED(inotify_init1)(0));
    ::inotify_add_watch(watch.n, folder, IN_CREATE);
    t.told("readv", HOOKED(readv)(watch.n, &none, 1));
    std::atomic<bool> is_over{false};
    std::atomic<bool> is_late{false};
    const auto create = [&] { const one_fd made(HOOKED(creat)(file.c_str(), 0600)); };
    std::thread helper([&] {
        for (int i = 0; i < 200 && !is_over; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        if (is_over) return;
        is_late = true;
        create();
    });
    t.beside([&] {
        after_ms(5);
        create();
    });
    t.told("nothing fits", HOOKED(read)(watch.n, &c, 0));
    is_over = true;
    t.told("by what stands beside it", !is_late);
    t.told("it is there still", HOOKED(read)(watch.n, &c, 0));
    helper.join();
    t.join();
    HOOKED(fcntl)(watch.n, F_SETFL, reinterpret_cast<void*>(long{O_NONBLOCK}));
    char all[4096];
    t.told("taken", HOOKED(read)(watch.n, all, sizeof all) > 0);
    t.told("not to wait", HOOKED(read)(watch.n, &c, 0));
    ::unlink(file.c_str());
    ::rmdir(folder);
}

POSIX_CASE(a_counter_that_has_no_room_is_waited_for) {
    const one_fd e(HOOKED(eventfd)(5u, 0));
    t.beside([&] {
        std::uint64_t v = 0;
        after_ms(5);
        HOOKED(read)(e.n, &v, sizeof v);
        after_ms(5);
        HOOKED(read)(e.n, &v, sizeof v);
    });
    std::uint64_t v = UINT64_MAX - 1;
    t.told("write", HOOKED(write)(e.n, &v, sizeof v));
    v = 1;
    t.told("write", HOOKED(write)(e.n, &v, sizeof v));
    t.join();
    t.told("read", HOOKED(read)(e.n, &v, sizeof v));
    t.told("count", static_cast<long>(v));
    v = UINT64_MAX;
    t.told("too much", HOOKED(write)(e.n, &v, sizeof v));
    t.told("too short", HOOKED(write)(e.n, &v, 4));
    v = 0;
    t.told("nothing", HOOKED(write)(e.n, &v, sizeof v));
    v = UINT64_MAX - 1;
    t.told("all", HOOKED(write)(e.n, &v, sizeof v));
    HOOKED(fcntl)(e.n, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    v = 7;
    t.told("is not to wait", HOOKED(write)(e.n, &v, sizeof v));
}

// A directory that the destructor removes, and the name of a pipe in it.
struct named_pipe {
    char folder[32] = "/tmp/weft-devices-XXXXXX";
    std::string name;

    named_pipe() {
        if (::mkdtemp(folder) != nullptr) name = std::string(folder) + "/fifo";
        ::mkfifo(name.c_str(), 0600);
    }
    ~named_pipe() { std::filesystem::remove_all(folder); }
};

POSIX_CASE(each_end_of_a_named_pipe_waits_for_the_other) {
    for (const bool reader_first : {true, false}) {
        const named_pipe p;
        int other = -1;
        t.beside([&] {
            after_ms(5);
            other = HOOKED(open)(p.name.c_str(), reader_first ? O_WRONLY : O_RDONLY, 0);
        });
        const int fd = HOOKED(open)(p.name.c_str(), reader_first ? O_RDONLY : O_WRONLY, 0);
        t.told("opened", fd >= 0);
        t.told("flags", HOOKED(fcntl)(fd, F_GETFL, nullptr) & (O_NONBLOCK | O_ACCMODE));
        t.join();
        t.told("the other", other >= 0);
        const int in = reader_first ? fd : other;
        const int out = reader_first ? other : fd;
        t.beside([&] {
            after_ms(3);
            const std::vector<char> much(200'000, 'x');
            t.told("write", HOOKED(write)(out, much.data(), much.size()));
            HOOKED(close)(out);
        });
        std::size_t all = 0;
        char bytes[4096];
        for (ssize_t n; (n = HOOKED(read)(in, bytes, sizeof bytes)) > 0;)
            all += static_cast<std::size_t>(n);
        t.told("read", static_cast<long>(all));
        t.join();
        HOOKED(close)(in);
    }
}

POSIX_CASE(a_named_pipe_that_is_not_to_wait_does_not) {
    const named_pipe p;
    const char* const name = p.name.c_str();
    t.told("nobody reads", HOOKED(open)(name, O_WRONLY | O_NONBLOCK, 0));
    const one_fd in(HOOKED(open)(name, O_RDONLY | O_NONBLOCK, 0));
    t.told("nobody writes", in.n >= 0);
    char byte = 'x';
    t.told("end", HOOKED(read)(in.n, &byte, 1));
    const one_fd both(HOOKED(openat)(AT_FDCWD, name, O_RDWR, 0));
    t.told("both", both.n >= 0);
    t.told("empty", HOOKED(read)(in.n, &byte, 1));
    t.told("write", HOOKED(write)(both.n, "y", 1));
    t.told("read", HOOKED(read)(in.n, &byte, 1));
    FILE* const f = HOOKED(fopen)(name, "w");  // there are readers
    t.told("fopen", f != nullptr);
    if (f != nullptr) HOOKED(fclose)(f);
    t.told("a folder of none", HOOKED(openat)(-1, "fifo", O_RDONLY, 0));
}

class devices : public on_each_driver {};
INSTANTIATE_ON_DRIVERS(devices);

TEST_P(devices, stop_ends_the_open_of_a_named_pipe) {
    run([] {
        const named_pipe p;
        for (const int way : {O_RDONLY, O_WRONLY}) {
            int before = ::dup(0);
            ::close(before);
            weft::fiber waiting([&] {
                EXPECT_EQ(::open(p.name.c_str(), way), -1);
                EXPECT_EQ(errno, ECANCELED);
            });
            weft::this_fiber::sleep_for(std::chrono::milliseconds(3));
            waiting.request_stop();
            waiting.join();
            const int after = ::dup(0);
            EXPECT_EQ(after, before);
            ::close(after);
            EXPECT_EQ(::open(p.name.c_str(), O_WRONLY | O_NONBLOCK), -1);
            EXPECT_EQ(errno, ENXIO);  // no reader was left
        }
    });
}

// It has no events, so that no driver can watch it: it is asked now and then.
TEST_P(devices, poll_for_urgent_data_of_a_regular_file_does_not_spin) {
    run([] {
        const int number = ::memfd_create("weft", MFD_CLOEXEC);
        const double before = weft::testing::cpu_seconds();
        pollfd p = {number, POLLPRI, 0};
        EXPECT_EQ(::poll(&p, 1, 300), 0);
        EXPECT_LT(weft::testing::cpu_seconds() - before, 0.15);
        ::close(number);
    });
}

TEST_P(devices, terminal_reports_the_close_of_its_peer) {
    run([] {
        int far = -1;
        int mine = -1;
        ASSERT_EQ(::openpty(&far, &mine, nullptr, nullptr, nullptr), 0);
        EXPECT_EQ(::write(far, "a\n", 2), 2);
        char bytes[16];
        EXPECT_EQ(::read(mine, bytes, sizeof bytes), 2);
        EXPECT_EQ(::write(mine, "b", 1), 1);
        EXPECT_GT(::read(far, bytes, sizeof bytes), 0);
        ::close(mine);
        ssize_t n;
        while ((n = ::read(far, bytes, sizeof bytes)) > 0) {
        }
        EXPECT_EQ(n, -1);
        EXPECT_EQ(errno, EIO);
        ::close(far);
    });
}

}  // namespace
