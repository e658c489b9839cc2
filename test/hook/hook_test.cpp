#include "weft/hook/hook.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/hook/detail/fd_table.hpp"
#include "weft/hook/detail/symbols.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/wait/sleep.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using weft::testing::fd_pair;

using stopwatch = std::chrono::steady_clock;

// The results of calls that are made before main() and before any fiber.
struct before_main {
    long wrote = -2;
    char got = 0;
    bool key = false;
    before_main() {
        int ends[2];
        if (::pipe(ends) != 0) return;
        wrote = ::write(ends[1], "x", 1);
        if (::read(ends[0], &got, 1) != 1) got = 0;
        ::close(ends[0]);
        ::close(ends[1]);
        key = !hook::is_enabled();
    }
};
const before_main early;

TEST(hook, passes_calls_through_before_main) {
    EXPECT_EQ(early.wrote, 1);
    EXPECT_EQ(early.got, 'x');
    EXPECT_TRUE(early.key);
}

TEST(hook, is_enabled_only_in_fibers) {
    EXPECT_FALSE(hook::is_enabled());
    hook::set_enabled(true);
    EXPECT_FALSE(hook::is_enabled());
    run([] {
        EXPECT_TRUE(hook::is_enabled());
        run_blocking([] { EXPECT_FALSE(hook::is_enabled()); });
    });
}

TEST(hook, can_be_set_per_fiber_and_per_scope) {
    run([] {
        hook::set_enabled(false);
        EXPECT_FALSE(hook::is_enabled());
        fiber([] { EXPECT_TRUE(hook::is_enabled()); }).join();
        {
            const hook::enabled_scope on;
            EXPECT_TRUE(hook::is_enabled());
            const hook::disabled_scope off;
            EXPECT_FALSE(hook::is_enabled());
        }
        EXPECT_FALSE(hook::is_enabled());
        hook::set_enabled(true);
        hook::set_default(false);
        EXPECT_TRUE(hook::is_enabled());
        fiber([] { EXPECT_FALSE(hook::is_enabled()); }).join();
        hook::set_default(true);
        fiber([] { EXPECT_TRUE(hook::is_enabled()); }).join();
    });
}

TEST(hook, self_check_finds_all_hooks_active) {
    for (const auto& s : hook::self_check()) ADD_FAILURE() << s.name << ": " << s.why;
    const auto all = hook::hooked_symbols();
    EXPECT_STREQ(all[static_cast<unsigned>(hook::call::read)].of.name, "read");
    EXPECT_EQ(all[static_cast<unsigned>(hook::call::getsockopt)].of.kind, hook::call_kind::passes);
}

// A call that waits without its hook blocks all others of the loop.
TEST(hook, lets_a_thousand_fibers_sleep_at_once) {
    const auto start = stopwatch::now();
    run([] {
        nursery n;
        for (int i = 0; i < 1000; ++i) n.spawn([] { EXPECT_EQ(::usleep(200'000), 0); });
        n.join();
    });
    EXPECT_GE(stopwatch::now() - start, 200ms);
    EXPECT_LT(stopwatch::now() - start, 20s);  // one after the other: 200 s
}

class hooked : public weft::testing::on_each_driver {};

TEST_P(hooked, close_ends_all_waits_on_the_fd) {
    run([] {
        for (int i = 0; i < 50; ++i) {
            auto s = fd_pair::sockets();
            auto p = fd_pair::pipe();
            int ended = 0;
            std::vector<fiber> waiting;
            for (int k = 0; k < 2; ++k)
                for (const int fd : {s.a, p.a})
                    waiting.emplace_back([&, fd] {
                        char c;
                        EXPECT_EQ(::read(fd, &c, 1), -1);
                        EXPECT_EQ(errno, EBADF);
                        ++ended;
                    });
            waiting.emplace_back([&] {
                pollfd q = {s.a, POLLIN, 0};
                EXPECT_EQ(::poll(&q, 1, -1), 1);
                EXPECT_EQ(q.revents, POLLNVAL);
                ++ended;
            });
            this_fiber::yield();
            this_fiber::yield();
            s.close_a();
            ::close_range(static_cast<unsigned>(p.a), static_cast<unsigned>(p.a), 0);
            p.a = -1;
            for (auto& f : waiting) f.join();
            EXPECT_EQ(ended, 5);
        }
    });
}

TEST_P(hooked, event_of_a_closed_fd_reaches_no_waiter) {
    run([] {
        for (int i = 0; i < 100; ++i) {
            auto old = fd_pair::sockets();
            const int number = old.a;
            fiber first([&] {
                char c;
                EXPECT_EQ(::read(number, &c, 1), -1);
            });
            this_fiber::yield();
            ASSERT_EQ(::write(old.b, "x", 1), 1);  // delivered after the close
            old.close_a();
            auto fresh = fd_pair::sockets();
            fiber second([&] {
                char c = 0;
                EXPECT_EQ(::read(fresh.a, &c, 1), 1);
                EXPECT_EQ(c, 'y');
            });
            first.join();
            this_fiber::yield();
            ASSERT_EQ(::write(fresh.b, "y", 1), 1);
            second.join();
        }
    });
}

TEST_P(hooked, fds_of_any_value_work) {
    rlimit before;
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit more = {before.rlim_max, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &more);
    const int high = static_cast<int>(std::min<rlim_t>(more.rlim_cur, 200'001)) - 1;
    run([&] {
        auto s = fd_pair::sockets();
        ASSERT_EQ(::dup2(s.a, high), high);
        fiber writer([&] {
            ::usleep(1000);
            EXPECT_EQ(::write(s.b, "x", 1), 1);
        });
        char c;
        EXPECT_EQ(::read(high, &c, 1), 1);
        writer.join();
        ::close(high);
    });
    ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_P(hooked, readers_and_a_writer_can_wait_for_one_fd) {
    run([] {
        auto s = fd_pair::sockets();
        const std::string much(2'000'000, 'x');
        std::size_t read_here = 0;
        std::vector<fiber> readers;
        for (int i = 0; i < 3; ++i)
            readers.emplace_back([&] {
                char some[2];
                ssize_t n;
                while ((n = ::read(s.a, some, sizeof some)) > 0)
                    read_here += static_cast<std::size_t>(n);
            });
        fiber writer([&] {
            EXPECT_EQ(::write(s.a, much.data(), much.size()), 2'000'000);
            ::shutdown(s.a, SHUT_WR);
        });
        fiber peer([&] {
            for (int i = 0; i < 100; ++i) {
                EXPECT_EQ(::write(s.b, "abc", 3), 3);
                if (i % 10 == 0) ::usleep(100);
            }
            std::string got(much.size(), 0);
            EXPECT_EQ(::recv(s.b, got.data(), got.size(), MSG_WAITALL), 2'000'000);
            ::shutdown(s.b, SHUT_WR);
        });
        for (auto& f : readers) f.join();
        writer.join();
        peer.join();
        EXPECT_EQ(read_here, 300u);
    });
}

TEST_P(hooked, errno_is_preserved_while_other_fibers_fail) {
    run([] {
        auto s = fd_pair::sockets();
        fiber other([&] {
            for (int i = 0; i < 5; ++i) {
                EXPECT_EQ(::close(-1), -1);
                this_fiber::yield();
            }
            EXPECT_EQ(::write(s.b, "x", 1), 1);
        });
        errno = ENOTTY;
        char c;
        EXPECT_EQ(::read(s.a, &c, 1), 1);
        EXPECT_EQ(errno, ENOTTY);
        other.join();
    });
}

TEST_P(hooked, getaddrinfo_lets_other_fibers_run) {
    run([] {
        int beats = 0;
        bool over = false;
        fiber heart([&] {
            while (!over) {
                ++beats;
                this_fiber::yield();
            }
        });
        for (int i = 0; i < 10'000 && beats <= 3; ++i) {
            addrinfo* all = nullptr;
            if (::getaddrinfo("localhost", "80", nullptr, &all) == 0) ::freeaddrinfo(all);
        }
        over = true;
        heart.join();
        EXPECT_GT(beats, 3);
    });
}

TEST_P(hooked, forked_child_has_no_hooks) {
    run([] {
        auto p = fd_pair::pipe();
        const pid_t child = ::fork();
        if (child == 0) {
            // Another fiber of the parent's would have to run for this to wait.
            const bool off = !hook::is_enabled();
            ::usleep(1000);
            ::_exit(off && ::write(p.b, "x", 1) == 1 ? 0 : 1);
        }
        char c;
        EXPECT_EQ(::read(p.a, &c, 1), 1);
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        EXPECT_TRUE(hook::is_enabled());
    });
}

TEST(hook, getaddrinfo_does_not_wait_for_other_blocking_calls) {
    std::mutex held;
    held.lock();
    std::atomic<int> left{64};
    for (int i = 0; i < 64; ++i)
        ASSERT_TRUE(default_blocking_pool().post([&] {
            {
                const std::lock_guard until_released(held);
            }
            left.fetch_sub(1);
        }));
    run([] {
        const timeout_scope limit(2s);
        addrinfo* all = nullptr;
        EXPECT_EQ(::getaddrinfo("localhost", "80", nullptr, &all), 0);
        if (all != nullptr) ::freeaddrinfo(all);
    });
    held.unlock();
    while (left != 0) std::this_thread::yield();
}

TEST(hook, can_be_enabled_in_a_forked_child) {
    // In a child that was forked while other threads ran, its epoll_pwait2 calls the system twice
    // and returns the second result, but an edge is delivered once.
    if (WEFT_TSAN && WEFT_CLANG) GTEST_SKIP() << "Clang's ThreadSanitizer loses events here";
    const pid_t child = ::fork();
    if (child == 0) {
        hook::enable_in_child();
        int right = 0;
        run([&] {
            auto p = fd_pair::pipe();
            fiber writer([&] { ::write(p.b, "x", 1); });
            char c = 0;
            if (hook::is_enabled() && ::read(p.a, &c, 1) == 1 && c == 'x') right = 1;
        });
        ::_exit(right == 1 ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

// It has its parent's epoll set and ring as well.
TEST_P(hooked, close_in_a_child_does_not_end_a_parents_wait) {
    run([] {
        auto s = fd_pair::sockets();
        std::string got;
        fiber reader([&] {
            for (char c; got.size() != 2 && ::read(s.a, &c, 1) == 1;) got += c;
        });
        ::usleep(1000);
        const pid_t child = ::fork();
        if (child == 0) {
            hook::enable_in_child();
            ::close(s.a);
            ::_exit(0);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        for (const char* c : {"a", "b"}) {
            EXPECT_EQ(::write(s.b, c, 1), 1);
            ::usleep(1000);
        }
        reader.join();
        EXPECT_EQ(got, "ab");
    });
}

// Those of its parent that wait for work are not there.
TEST(hook, gives_a_forked_child_its_own_threads) {
    if (WEFT_TSAN) GTEST_SKIP() << "a child of several threads may begin none";
    const auto use_them = [] {
        int right = ::system("true") == 0;
        char c = 0;
        const int fd = ::open("/proc/self/stat", O_RDONLY);
        right += ::read(fd, &c, 1) == 1;
        ::close(fd);
        addrinfo* all = nullptr;
        right += ::getaddrinfo("localhost", "80", nullptr, &all) == 0;
        if (all != nullptr) ::freeaddrinfo(all);
        return right;
    };
    hook::set_options({.files = true});
    run([&] { EXPECT_EQ(use_them(), 3); });
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(10);
        hook::enable_in_child();
        int right = 0;
        run([&] { right = use_them(); });
        ::_exit(right);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 3 << 8);
    hook::set_options({});
}

// The child closes a descriptor of its own, and the waiter here is not notified.
TEST_P(hooked, vfork_child_changes_nothing_in_its_parent) {
    run([] {
        auto s = fd_pair::sockets();
        bool got = false;
        fiber reader([&] {
            char c;
            got = ::read(s.a, &c, 1) == 1;
        });
        this_fiber::yield();
        const pid_t child = ::vfork();
        if (child == 0) {
            ::close(s.a);
            ::_exit(0);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(::write(s.b, "x", 1), 1);
        reader.join();
        EXPECT_TRUE(got);
    });
}

// The system never restarts poll(), and it restarts read().
TEST_P(hooked, restarting_signal_does_not_end_a_vfork_childs_wait) {
    struct sigaction before, restart = {};
    restart.sa_handler = [](int) {};
    restart.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &restart, &before);
    run([] {
        const auto s = fd_pair::sockets();
        std::thread writer([&] {
            std::this_thread::sleep_for(20ms);
            EXPECT_EQ(::write(s.b, "x", 1), 1);
        });
        const pid_t child = ::vfork();
        if (child == 0) {
            const itimerval soon = {{0, 0}, {0, 5000}};
            ::setitimer(ITIMER_REAL, &soon, nullptr);
            char c;
            const bool is_read = ::read(s.a, &c, 1) == 1;
            struct ::stat threads;
            ::stat("/proc/self/task", &threads);
            constexpr int has_begun_a_thread = 255;
            ::_exit(!is_read ? errno : threads.st_nlink == 3 ? 0 : has_begun_a_thread);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        writer.join();
    });
    ::sigaction(SIGALRM, &before, nullptr);
}

// The hooks keep nothing of their own where other fibers have their frames meanwhile.
TEST_P(hooked, calls_can_wait_on_a_shared_stack) {
    shared_stack_group group;
    fd_pair s = fd_pair::sockets();
    fd_pair p = fd_pair::pipe();
    int right = 0;
    const auto body = [&](int fd) {
        return [&, fd] {
            char bytes[3000] = "";
            pollfd q = {fd, POLLIN, 0};
            if (::poll(&q, 1, -1) != 1) return;
            if (::read(fd, bytes, 1) != 1 || ::read(fd, bytes + 1, 1) != 1) return;
            ::usleep(1000);
            const timeval soon = {0, 1000};
            timeval left = soon;
            ::select(0, nullptr, nullptr, nullptr, &left);
            addrinfo* all = nullptr;
            if (::getaddrinfo("localhost", "80", nullptr, &all) == 0) ::freeaddrinfo(all);
            if (bytes[0] == 'x' && bytes[1] == 'y') ++right;
        };
    };
    run([&] {
        fiber a(body(s.a), {.shared = &group});
        fiber b(body(p.a), {.shared = &group});
        for (const char* byte : {"x", "y"}) {
            ::usleep(1000);
            EXPECT_EQ(::write(s.b, byte, 1), 1);
            EXPECT_EQ(::write(p.b, byte, 1), 1);
        }
        a.join();
        b.join();
    });
    EXPECT_EQ(right, 2);
}

// As on a system without a non-waiting call on a pipe.
TEST_P(hooked, pipe_without_nonblocking_calls_lets_others_run) {
    run([] {
        auto p = fd_pair::pipe();
        for (const int fd : {p.a, p.b}) {
            hook::sort_of(fd);
            hook::add_to_sort(fd, hook::fd_sort::no_try_read | hook::fd_sort::no_try_write);
        }
        std::string sent(200'000, 'a');
        for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 23);
        std::string got;
        fiber reader([&] {
            char some[7000];
            ssize_t n;
            while ((n = ::read(p.a, some, sizeof some)) > 0)
                got.append(some, static_cast<std::size_t>(n));
        });
        const iovec all[4] = {
            {nullptr, 0}, {sent.data(), 3}, {nullptr, 0}, {sent.data() + 3, sent.size() - 3}};
        EXPECT_EQ(::writev(p.b, all, 4), static_cast<ssize_t>(sent.size()));
        p.close_b();
        reader.join();
        EXPECT_EQ(got, sent);
    });
}

TEST_P(hooked, connect_to_a_full_listener_retries_until_its_timeout) {
    run([] {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "weft-hook-full-%d", ::getpid());
        const weft::testing::one_fd l(::socket(AF_UNIX, SOCK_STREAM, 0));
        ASSERT_EQ(::bind(l.n, weft::testing::as_address(at), sizeof at), 0);
        ASSERT_EQ(::listen(l.n, 0), 0);
        const weft::testing::one_fd first(::socket(AF_UNIX, SOCK_STREAM, 0));
        const weft::testing::one_fd second(::socket(AF_UNIX, SOCK_STREAM, 0));
        ASSERT_EQ(::connect(first.n, weft::testing::as_address(at), sizeof at), 0);
        weft::testing::set_timeout(second.n, SO_SNDTIMEO, 4);
        timeval least;  // as the system rounds it
        socklen_t bytes = sizeof least;
        ASSERT_EQ(::getsockopt(second.n, SOL_SOCKET, SO_SNDTIMEO, &least, &bytes), 0);
        const auto start = steady_now();
        EXPECT_EQ(::connect(second.n, weft::testing::as_address(at), sizeof at), -1);
        EXPECT_EQ(errno, EAGAIN);
        EXPECT_GE(steady_now() - start,
                  std::chrono::seconds(least.tv_sec) + std::chrono::microseconds(least.tv_usec));
    });
}

TEST_P(hooked, fclose_ends_the_waits_on_its_fd) {
    run([] {
        auto s = fd_pair::sockets();
        FILE* const file = ::fdopen(s.a, "r");
        ASSERT_NE(file, nullptr);
        int why = 0;
        fiber waits([&why, fd = std::exchange(s.a, -1)] {
            char c;
            if (::read(fd, &c, 1) < 0) why = errno;
        });
        this_fiber::yield();
        ::fclose(file);
        waits.join();
        EXPECT_EQ(why, EBADF);
    });
}

// A program that is started again in that environment.
TEST(hook_options_death, are_read_from_the_environment) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const char* value : {"1", "0", ""}) {
        const bool on = *value == '1';
        ::setenv("WEFT_HOOK_FILES", value, 1);
        EXPECT_EXIT(::_exit(hook::get_options().files == on && hook::get_options().pthreads),
                    ::testing::ExitedWithCode(1), "");
        ::unsetenv("WEFT_HOOK_FILES");
        ::setenv("WEFT_HOOK_PTHREADS", value, 1);
        EXPECT_EXIT(
            ::_exit(hook::get_options().pthreads == (*value != '0') && !hook::get_options().files),
            ::testing::ExitedWithCode(1), "");
        ::unsetenv("WEFT_HOOK_PTHREADS");
    }
}

// The lowest descriptor that is free.
int next_number() {
    const weft::testing::one_fd n(::dup(0));
    return n.n;
}

TEST_P(hooked, wait_with_a_signal_mask_leaves_no_fd_open) {
    run([] {
        const int before = next_number();
        pollfd none = {-1, 0, 0};
        const timespec some = {0, 1'000'000};
        sigset_t mask;
        ::sigemptyset(&mask);
        EXPECT_EQ(::ppoll(&none, 1, &some, &mask), 0);
        // A thread that has helped may have it a little longer.
        for (int i = 0; i < 1000 && next_number() != before; ++i) ::usleep(1000);
        EXPECT_EQ(next_number(), before);
    });
}

TEST_P(hooked, waitpid_leaves_no_fd_open) {
    run([] {
        const int before = next_number();
        const pid_t child = ::fork();
        if (child == 0) {
            const timespec some = {0, 5'000'000};
            ::nanosleep(&some, nullptr);
            ::_exit(0);
        }
        EXPECT_EQ(::waitpid(child, nullptr, 0), child);
        EXPECT_EQ(next_number(), before);
    });
}

// A program that was started without stdin.
class without_stdin {
public:
    without_stdin() : kept_(::fcntl(0, F_DUPFD_CLOEXEC, nullptr)) { ::close(0); }
    without_stdin(const without_stdin&) = delete;
    ~without_stdin() {
        ::dup2(kept_, 0);
        ::close(kept_);
    }

private:
    const int kept_;
};
bool is_zero_open() { return ::fcntl(0, F_GETFD) >= 0; }

TEST_P(hooked, wait_on_fd_zero_ends_when_it_is_closed) {
    run([] {
        const without_stdin none;
        for (const bool by_its_file : {false, true}) {
            auto p = fd_pair::pipe();
            ASSERT_EQ(p.a, 0);
            int why = 0;
            fiber waits([&why] {
                char c;
                if (::read(0, &c, 1) < 0) why = errno;
            });
            this_fiber::yield();
            if (by_its_file)
                EXPECT_EQ(::fclose(::fdopen(std::exchange(p.a, -1), "r")), 0);
            else
                p.close_a();
            waits.join();
            EXPECT_EQ(why, EBADF);
        }
    });
}

TEST_P(hooked, read_of_zero_bytes_does_not_wait) {
    run([] {
        const auto s = fd_pair::sockets();
        char c;
        fiber reader([&] { EXPECT_EQ(::read(s.a, &c, 1), 1); });  // a socket is known from here on
        this_fiber::yield();
        EXPECT_EQ(::write(s.b, "x", 1), 1);
        reader.join();
        EXPECT_EQ(::read(s.a, &c, 0), 0);
    });
}

// The ids of a user and a group are integers, as descriptors are.
TEST_P(hooked, credentials_in_a_message_are_not_taken_for_fds) {
    run([] {
        const without_stdin none;
        const auto p = fd_pair::pipe();
        ASSERT_EQ(p.a, 0);
        char got = 0;
        fiber waits([&] { EXPECT_EQ(::read(0, &got, 1), 1); });
        const auto s = fd_pair::sockets();
        const int on = 1;
        ASSERT_EQ(::setsockopt(s.a, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
        this_fiber::yield();
        EXPECT_EQ(::write(s.b, "x", 1), 1);
        char byte;
        iovec v = {&byte, 1};
        alignas(cmsghdr) char room[CMSG_SPACE(sizeof(ucred))] = {};
        msghdr m{};
        m.msg_iov = &v;
        m.msg_iovlen = 1;
        m.msg_control = room;
        m.msg_controllen = sizeof room;
        EXPECT_EQ(::recvmsg(s.a, &m, 0), 1);
        ASSERT_NE(CMSG_FIRSTHDR(&m), nullptr);
        EXPECT_EQ(CMSG_FIRSTHDR(&m)->cmsg_type, SCM_CREDENTIALS);
        this_fiber::yield();
        EXPECT_EQ(::write(p.b, "y", 1), 1);
        waits.join();
        EXPECT_EQ(got, 'y');
    });
}

TEST_P(hooked, waits_that_use_fd_zero_release_it) {
    run([] {
        const without_stdin none;
        pollfd nothing = {-1, 0, 0};
        const timespec some = {0, 1'000'000};
        sigset_t mask;
        ::sigemptyset(&mask);
        EXPECT_EQ(::ppoll(&nothing, 1, &some, &mask), 0);
        // A thread that has helped may have it a little longer.
        for (int i = 0; i < 1000 && is_zero_open(); ++i) ::usleep(1000);
        EXPECT_FALSE(is_zero_open());
        const pid_t child = ::fork();
        if (child == 0) {
            const timespec more = {0, 5'000'000};
            ::nanosleep(&more, nullptr);
            ::_exit(0);
        }
        EXPECT_EQ(::waitpid(child, nullptr, 0), child);
        EXPECT_FALSE(is_zero_open());
    });
}

// An event that came earlier, and was read, is no reason to check again.
TEST_P(hooked, poll_of_several_fds_sleeps_until_an_event) {
    run([] {
        const fd_pair p[2] = {fd_pair::pipe(), fd_pair::pipe()};
        pollfd both[2] = {{p[0].a, POLLIN, 0}, {p[1].a, POLLIN, 0}};
        for (const fd_pair& one : p) {
            fiber writer([&] { EXPECT_EQ(::write(one.b, "x", 1), 1); });
            EXPECT_EQ(::poll(both, 2, -1), 1);
            char c;
            EXPECT_EQ(::read(one.a, &c, 1), 1);
        }
        const double before = weft::testing::cpu_seconds();
        EXPECT_EQ(::poll(both, 2, 100), 0);
        EXPECT_LT(weft::testing::cpu_seconds() - before, 0.05);
    });
}

TEST_P(hooked, peek_with_waitall_sleeps_until_all_has_arrived) {
    run([] {
        sockaddr_in at;
        const weft::testing::one_fd l(weft::testing::bound(SOCK_STREAM, at));
        const weft::testing::one_fd c(::socket(AF_INET, SOCK_STREAM, 0));
        ASSERT_EQ(::connect(c.n, weft::testing::as_address(at), sizeof at), 0);
        const weft::testing::one_fd s(::accept(l.n, nullptr, nullptr));
        EXPECT_EQ(::send(s.n, "ab", 2, 0), 2);
        fiber writer([&] {
            ::usleep(200'000);
            EXPECT_EQ(::send(s.n, "cd", 2, 0), 2);
        });
        char four[4];
        const double before = weft::testing::cpu_seconds();
        EXPECT_EQ(::recv(c.n, four, 4, MSG_PEEK | MSG_WAITALL), 4);
        EXPECT_LT(weft::testing::cpu_seconds() - before, 0.05);
    });
}

// The bytes in use on the heap, as the C library's allocator reports them.
std::size_t heap_bytes() { return ::mallinfo2().uordblks; }

TEST(hook, leaves_no_heap_memory_in_use) {
    pthread_key_t key;
    ASSERT_EQ(::pthread_key_create(&key, nullptr), 0);
    run([&] {
        const auto each = [&] {
            int value = 0;
            ::pthread_setspecific(key, &value);
            auto p = fd_pair::pipe();
            EXPECT_EQ(::write(p.b, "x", 1), 1);
            std::vector<pollfd> many(500, pollfd{-1, 0, 0});
            many[0] = {p.a, POLLIN, 0};
            EXPECT_EQ(::poll(many.data(), many.size(), 1000), 1);
        };
        const auto round = [&] {
            for (int i = 0; i < 1000; ++i) fiber(each).join();
        };
        round();  // what is kept for later is kept by now
        const std::size_t before = heap_bytes();
        round();
        EXPECT_LT(heap_bytes(), before + 8000) << "less than 8 bytes each";
    });
    ::pthread_key_delete(key);
}

std::atomic<int> signals_seen{0};

TEST_P(hooked, signal_admitted_by_the_mask_ends_a_wait) {
    struct sigaction counts{};
    counts.sa_handler = [](int) { ++signals_seen; };
    ::sigaction(SIGUSR1, &counts, nullptr);
    sigset_t one;
    sigset_t before;
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &one, &before);
    signals_seen = 0;
    run([&] {
        auto s = fd_pair::sockets();
        fiber other([&] {
            while (signals_seen == 0) {
                ::usleep(2000);
                ::kill(::getpid(), SIGUSR1);
            }
        });
        sigset_t none;
        ::sigemptyset(&none);
        pollfd p = {s.a, POLLIN, 0};
        EXPECT_EQ(::ppoll(&p, 1, nullptr, &none), -1);
        EXPECT_EQ(errno, EINTR);
        other.join();
    });
    EXPECT_GE(signals_seen, 1);
    ::signal(SIGUSR1, SIG_IGN);  // one may be pending still
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_P(hooked, zero_timeout_polls_let_others_run_in_time) {
    run([] {
        bool over = false;
        fiber other([&] { over = true; });
        pollfd none = {-1, 0, 0};
        for (int i = 0; i < 100 && !over; ++i) EXPECT_EQ(::poll(&none, 1, 0), 0);
        EXPECT_TRUE(over);
    });
}

TEST_P(hooked, woken_fiber_yields_to_others_at_its_first_query) {
    constexpr int count = 5;
    run([] {
        fd_pair s[count] = {fd_pair::sockets(), fd_pair::sockets(), fd_pair::sockets(),
                            fd_pair::sockets(), fd_pair::sockets()};
        std::string what_was_done;
        nursery n;
        for (const fd_pair& own : s)
            n.spawn([&what_was_done, fd = own.a] {
                pollfd p = {fd, POLLIN, 0};
                EXPECT_EQ(::poll(&p, 1, -1), 1);
                char byte;
                EXPECT_EQ(::read(fd, &byte, 1), 1);
                what_was_done += 'r';
                EXPECT_EQ(::poll(&p, 1, 0), 0);
                EXPECT_EQ(::write(fd, &byte, 1), 1);
                what_was_done += 'w';
            });
        this_fiber::yield();  // they wait
        for (const fd_pair& own : s) EXPECT_EQ(::write(own.b, "x", 1), 1);
        n.join();
        EXPECT_EQ(what_was_done, "rrrrrwwwww");
    });
}

INSTANTIATE_ON_DRIVERS(hooked);

}  // namespace
