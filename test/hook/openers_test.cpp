// Cases of calls that open and close descriptors within libc; and of descriptors that are opened
// and closed without any hook.

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/hook/hook.hpp"

extern "C" {
int __open_2(const char*, int);
int __open64_2(const char*, int);
int __openat_2(int, const char*, int);
int __openat64_2(int, const char*, int);
// The header of glibc 2.36 declares them as functions of C++.
int pidfd_open(pid_t, unsigned) noexcept;
int pidfd_getfd(int, int, unsigned) noexcept;
}

namespace {

using namespace weft::testing;

// A wait for the descriptor must have come before, so that much is known of it. Then the program
// opens and closes it as `open` and `close` do, and reads what `write` has put in, in a while.
template <class Open, class Write, class Close>
void read_again_and_again(posix_side& t, Open open, Write write, Close close) {
    for (int i = 0; i < 3; ++i) {
        const int fd = open();
        t.told("opened", fd >= 0);
        t.beside([&] {
            after_ms(3);
            write(fd);
        });
        std::uint64_t bytes = 0;
        const ssize_t n = HOOKED(read)(fd, &bytes, sizeof bytes);
        t.told("read", n);
        t.join();
        close(fd);
    }
}

POSIX_CASE(programs_are_read_and_waited_for) {
    for (int i = 0; i < 3; ++i) {
        FILE* const f = HOOKED(popen)("sleep 0.01; echo hi; exit 3", "r");
        char bytes[8];
        t.told("read", HOOKED(read)(::fileno(f), bytes, sizeof bytes));
        t.told("read", HOOKED(read)(::fileno(f), bytes, sizeof bytes));
        t.told("status", HOOKED(pclose)(f));
    }
    t.told("no mode", HOOKED(popen)("true", "x") == nullptr ? -1 : 0);
}

POSIX_CASE(the_end_of_a_program_is_waited_for_while_others_run) {
    auto said = fd_pair::pipe();
    auto told = fd_pair::pipe();
    // By path: a shell need not accept descriptors of more than one digit.
    const std::string command = "read line; echo got $line >/dev/fd/" + std::to_string(said.b) +
                                "; read line </dev/fd/" + std::to_string(told.a);
    FILE* const f = HOOKED(popen)(command.c_str(), "w");
    ::fputs("it\n", f);
    std::string order;
    t.beside([&] {
        char bytes[16];
        after_ms(10);
        const ssize_t n = HOOKED(read)(said.a, bytes, sizeof bytes);
        t.said("it said", std::string_view(bytes, n > 0 ? static_cast<std::size_t>(n) : 0));
        order += "beside ";
        HOOKED(write)(told.b, "x\n", 2);
    });
    t.told("status", HOOKED(pclose)(f));
    order += "after";
    t.join();
    t.said("order", order);
}

POSIX_CASE(a_timer_has_the_number_of_a_program) {
    FILE* const f = HOOKED(popen)("sleep 0.01; echo hi", "r");
    char bytes[8];
    t.told("read", HOOKED(read)(::fileno(f), bytes, sizeof bytes));
    t.told("status", HOOKED(pclose)(f));
    const one_fd timer(HOOKED(timerfd_create)(CLOCK_MONOTONIC, 0));
    const itimerspec soon = {{}, {0, 3'000'000}};
    ::timerfd_settime(timer.n, 0, &soon, nullptr);
    std::uint64_t times = 0;
    t.told("read", HOOKED(read)(timer.n, &times, sizeof times));
    t.told("times", static_cast<long>(times));
}

POSIX_CASE(streams_are_opened_anew) {
    for (const bool large : {false, true}) {
        int p[2];
        HOOKED(socketpair)(AF_UNIX, SOCK_STREAM, 0, p);
        const one_fd far(p[1]);
        FILE* f = ::fdopen(p[0], "w");
        t.told("write to a socket", HOOKED(write)(p[0], "x", 1));
        t.beside([&] {
            after_ms(3);
            HOOKED(write)(far.n, "y", 1);
        });
        char byte;
        t.told("read", HOOKED(read)(p[0], &byte, 1));
        t.join();
        f = large ? HOOKED(freopen64)("/dev/null", "w", f) : HOOKED(freopen)("/dev/null", "w", f);
        t.told("the same number", ::fileno(f) == p[0]);
        t.told("write to a device", HOOKED(write)(p[0], "x", 1));
        t.told("fclose", HOOKED(fclose)(f));
    }
}

POSIX_CASE(names_are_opened_in_every_way) {
    char folder[] = "/tmp/weft-openers-XXXXXX";
    if (::mkdtemp(folder) == nullptr) return t.said("mkdtemp", "failed");
    const std::string at = folder;
    const std::string name = at + "/file";
    const char* const path = name.c_str();
    const auto use = [&](std::string_view what, int fd) {
        t.said("by", what);
        t.told("opened", fd >= 0 ? 0 : -1);
        t.told("write", HOOKED(write)(fd, "abc", 3));
        t.told("close", HOOKED(close)(fd));
    };
    const auto close_stream = [&](std::string_view what, FILE* f) {
        t.said("by", what);
        t.told("opened", f != nullptr ? 0 : -1);
        if (f == nullptr) return;
        t.told("write", HOOKED(write)(::fileno(f), "abc", 3));
        t.told("fclose", HOOKED(fclose)(f));
    };
    use("creat", HOOKED(creat)(path, 0600));
    use("creat64", HOOKED(creat64)(path, 0600));
    use("open_2", HOOKED(__open_2)(path, O_RDWR));
    use("open64_2", HOOKED(__open64_2)(path, O_RDWR));
    use("openat_2", HOOKED(__openat_2)(AT_FDCWD, path, O_RDWR));
    use("openat64_2", HOOKED(__openat64_2)(AT_FDCWD, path, O_RDWR));
    std::string made = at + "/aXXXXXX";
    use("mkstemp", HOOKED(mkstemp)(made.data()));
    made = at + "/aXXXXXX";
    use("mkstemp64", HOOKED(mkstemp64)(made.data()));
    made = at + "/aXXXXXX";
    use("mkostemp", HOOKED(mkostemp)(made.data(), O_CLOEXEC));
    made = at + "/aXXXXXX";
    use("mkostemp64", HOOKED(mkostemp64)(made.data(), O_CLOEXEC));
    made = at + "/aXXXXXX.b";
    use("mkstemps", HOOKED(mkstemps)(made.data(), 2));
    made = at + "/aXXXXXX.b";
    use("mkstemps64", HOOKED(mkstemps64)(made.data(), 2));
    made = at + "/aXXXXXX.b";
    use("mkostemps", HOOKED(mkostemps)(made.data(), 2, O_CLOEXEC));
    made = at + "/aXXXXXX.b";
    use("mkostemps64", HOOKED(mkostemps64)(made.data(), 2, O_CLOEXEC));
    use("memfd_create", HOOKED(memfd_create)("weft", 0u));
    close_stream("fopen", HOOKED(fopen)(path, "r+"));
    close_stream("fopen64", HOOKED(fopen64)(path, "a"));
    close_stream("tmpfile", HOOKED(tmpfile)());
    close_stream("tmpfile64", HOOKED(tmpfile64)());
    t.told("no such", HOOKED(fopen)((at + "/none").c_str(), "r") == nullptr ? -1 : 0);
    DIR* const d = HOOKED(opendir)(folder);
    t.told("opendir", d != nullptr ? 0 : -1);
    if (d != nullptr) t.told("closedir", HOOKED(closedir)(d));
    t.told("no folder", HOOKED(opendir)(path) == nullptr ? -1 : 0);
    alignas(file_handle) char handle[sizeof(file_handle) + 8] = {};
    t.told("no handle",
           HOOKED(open_by_handle_at)(-1, reinterpret_cast<file_handle*>(handle), O_RDONLY) >= 0);
    std::filesystem::remove_all(at);
}

POSIX_CASE(what_counts_is_read_and_written_as_a_number) {
    read_again_and_again(
        t, [] { return HOOKED(eventfd)(0u, 0); }, [](int fd) { HOOKED(eventfd_write)(fd, 7); },
        [](int fd) { HOOKED(close)(fd); });
    const one_fd e(HOOKED(eventfd)(0u, 0));
    t.beside([&] {
        after_ms(3);
        HOOKED(eventfd_write)(e.n, 5);
    });
    eventfd_t count = 0;
    t.told("read", HOOKED(eventfd_read)(e.n, &count));
    t.told("count", static_cast<long>(count));
    t.join();
    t.told("of no number", HOOKED(eventfd_read)(-1, &count));
    t.told("to no number", HOOKED(eventfd_write)(-1, count));
}

POSIX_CASE(descriptors_of_every_make_are_new_when_they_are_opened) {
    const one_fd set(HOOKED(epoll_create)(1));
    const one_fd other(HOOKED(epoll_create1)(EPOLL_CLOEXEC));
    t.told("sets", set.n >= 0 && other.n >= 0);
    const one_fd in(HOOKED(inotify_init)());
    const one_fd in1(HOOKED(inotify_init1)(IN_CLOEXEC));
    t.told("inotify", in.n >= 0 && in1.n >= 0);
    const one_fd fan(HOOKED(fanotify_init)(~0u, 0u));
    t.told("no fanotify", fan.n >= 0);
    sigset_t none;
    sigemptyset(&none);
    const one_fd signals(HOOKED(signalfd)(-1, &none, SFD_NONBLOCK));
    t.told("the same signalfd", HOOKED(signalfd)(signals.n, &none, 0) == signals.n);
    char bytes[256];
    t.told("no signal", HOOKED(read)(signals.n, bytes, sizeof bytes));
    const one_fd self(HOOKED(pidfd_open)(::getpid(), 0u));
    t.told("pidfd", self.n >= 0);
    const one_fd same(HOOKED(pidfd_getfd)(self.n, set.n, 0u));
    t.told("pidfd_getfd", same.n >= 0);
    const one_fd pt(HOOKED(posix_openpt)(O_RDWR | O_NOCTTY));
    const one_fd gpt(HOOKED(getpt)());
    t.told("pseudo-terminals", pt.n >= 0 && gpt.n >= 0);
    int master = -1;
    int slave = -1;
    t.told("openpty", HOOKED(openpty)(&master, &slave, nullptr, nullptr, nullptr));
    const one_fd m(master);
    const one_fd s(slave);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::login_tty(slave) == 0 && ::isatty(0) == 1 ? 3 : 4);
    call_is_made(weft::hook::call::login_tty);
    int status = 0;
    t.told("child", HOOKED(waitpid)(child, &status, 0) == child);
    t.told("status", status);
    HOOKED(closefrom)(900'000);
    const pid_t closer = ::fork();
    if (closer == 0) ::_exit(::fcloseall());
    call_is_made(weft::hook::call::fcloseall);
    t.told("child", HOOKED(waitpid)(closer, &status, 0) == closer);
    t.told("status", status);
}

// System calls that weft does not see.
namespace behind {
int pipe(int* ends) { return static_cast<int>(::syscall(SYS_pipe2, ends, 0)); }
int close(int fd) { return static_cast<int>(::syscall(SYS_close, fd)); }
int dup3(int fd, int as) { return static_cast<int>(::syscall(SYS_dup3, fd, as, 0)); }
}  // namespace behind

POSIX_CASE(numbers_are_closed_and_opened_behind_all_hooks) {
    const int far = 800;  // above what others open meanwhile
    for (int i = 0; i < 3; ++i) {
        for (const bool is_socket : {false, true}) {
            int ends[2];
            if (is_socket)
                HOOKED(socketpair)(AF_UNIX, SOCK_STREAM, 0, ends);
            else
                behind::pipe(ends);
            behind::dup3(ends[0], far);
            behind::close(ends[0]);
            t.beside([&] {
                after_ms(3);
                HOOKED(write)(ends[1], "x", 1);
                after_ms(3);
                HOOKED(write)(ends[1], "y", 1);
            });
            char byte;
            t.told("read", HOOKED(read)(far, &byte, 1));
            pollfd p = {far, POLLIN, 0};
            t.told("poll", HOOKED(poll)(&p, 1, -1));
            t.told("read", HOOKED(read)(far, &byte, 1));
            t.join();
            behind::close(far);
            behind::close(ends[1]);
        }
    }
}

POSIX_CASE(a_set_of_descriptors_has_numbers_that_were_opened_behind_all_hooks) {
    const int far = 801;
    for (int i = 0; i < 3; ++i) {
        int ends[2];
        behind::pipe(ends);
        behind::dup3(ends[0], far);
        behind::close(ends[0]);
        t.beside([&] {
            after_ms(3);
            HOOKED(write)(ends[1], "x", 1);
        });
        pollfd p = {far, POLLIN, 0};
        t.told("poll", HOOKED(poll)(&p, 1, -1));
        t.told("events", p.revents);
        t.join();
        behind::close(far);
        behind::close(ends[1]);
    }
}

POSIX_CASE(a_number_becomes_a_file_behind_all_hooks) {
    const int far = 802;
    auto s = fd_pair::sockets();
    behind::dup3(s.a, far);
    t.beside([&] {
        after_ms(3);
        HOOKED(write)(s.b, "x", 1);
    });
    char byte;
    t.told("read of a socket", HOOKED(read)(far, &byte, 1));
    t.join();
    char name[] = "/tmp/weft-openers-XXXXXX";
    const one_fd f(HOOKED(mkstemp)(name));
    ::unlink(name);
    behind::dup3(f.n, far);
    t.told("write to a file", HOOKED(write)(far, "abcd", 4));
    const iovec two[] = {{&byte, 1}, {&byte, 1}};
    t.told("vectors to a file", HOOKED(writev)(far, two, 2));
    t.told("start", ::lseek(far, 0, SEEK_SET));
    t.told("read of a file", HOOKED(readv)(far, two, 2));
    behind::close(far);
}

POSIX_CASE(another_process_says_that_a_descriptor_waits) {
    auto s = fd_pair::sockets();
    char byte;
    HOOKED(fcntl)(s.a, F_SETFL, reinterpret_cast<void*>(O_NONBLOCK));
    t.told("read", HOOKED(read)(s.a, &byte, 1));
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::fcntl(s.a, F_SETFL, 0));
    int status = -1;
    t.told("child", HOOKED(waitpid)(child, &status, 0) == child);
    t.beside([&] {
        after_ms(3);
        HOOKED(write)(s.b, "x", 1);
    });
    t.told("read", HOOKED(read)(s.a, &byte, 1));
    t.join();
}

using weft::testing::on_each_driver;
class openers : public on_each_driver {};
INSTANTIATE_ON_DRIVERS(openers);

// A reader waits while its descriptor becomes another file, behind all hooks, and the new file is
// waited for.
TEST_P(openers, stale_wait_ends_when_a_reused_fd_is_waited_for) {
    run([] {
        int first[2];
        int second[2];
        ASSERT_EQ(behind::pipe(first), 0);
        ASSERT_EQ(behind::pipe(second), 0);
        weft::fiber old([&] {
            char byte;
            EXPECT_EQ(::read(first[0], &byte, 1), -1);
            EXPECT_EQ(errno, EBADF);
        });
        weft::this_fiber::sleep_for(std::chrono::milliseconds(2));
        ASSERT_EQ(behind::dup3(second[0], first[0]), first[0]);
        weft::fiber fresh([&] {
            char byte;
            EXPECT_EQ(::read(first[0], &byte, 1), 1);
        });
        old.join();
        EXPECT_EQ(::write(second[1], "x", 1), 1);
        fresh.join();
        for (const int fd : {first[0], first[1], second[0], second[1]}) ::close(fd);
    });
}

TEST_P(openers, stopped_pclose_leaves_no_process_and_no_stream) {
    run([] {
        const auto start = std::chrono::steady_clock::now();
        FILE* f = nullptr;
        int fd = -1;
        weft::fiber waiting([&] {
            f = ::popen("sleep 0.1", "r");
            fd = ::fileno(f);
            EXPECT_EQ(::pclose(f), -1);
            EXPECT_EQ(errno, ECANCELED);
        });
        weft::this_fiber::sleep_for(std::chrono::milliseconds(5));
        waiting.request_stop();
        waiting.join();
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(90));
        while (::waitpid(-1, nullptr, WNOHANG) == 0 &&
               std::chrono::steady_clock::now() - start < std::chrono::seconds(5))
            weft::this_fiber::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
        EXPECT_EQ(errno, ECHILD);
        EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
    });
}

}  // namespace
