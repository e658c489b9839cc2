#include "weft/io/io_driver.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "test/io/names.hpp"
#include "test/support/allocation_fails.hpp"
#include "test/support/nothing_spare.hpp"
#include "test/support/without_call.hpp"
#include "weft/base/detail/block_cache.hpp"
#include "weft/io/pipe.hpp"
#include "weft/io/udp_socket.hpp"
#include "weft/io/unix_datagram.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/sched/detail/fetch_ahead.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::io_kind;
using weft::steady_now;
using weft::testing::cpu_seconds;

class driver_contract : public weft::testing::on_each_driver {
protected:
    weft::io_driver& driver() { return *loop().driven_by()->io(); }
    bool is_readable() {
        ::pollfd p = {driver().native_handle(), POLLIN, 0};
        return ::poll(&p, 1, 0) == 1;
    }
};
INSTANTIATE_ON_DRIVERS(driver_contract);

// Sixteen fibers that are woken in one poll: all but the first are fetched before their turns.
TEST_P(driver_contract, prefetches_flows_that_became_ready_together) {
    if (!WEFT_DEBUG) GTEST_SKIP() << "counted in a debug build alone";
    constexpr std::size_t all = 16;
    run([] {
        std::vector<connection> of;
        std::vector<fiber> readers;
        for (std::size_t i = 0; i != all; ++i) of.push_back(connected());
        for (connection& c : of)
            readers.emplace_back([&c] {
                std::array<std::byte, 1> b;
                EXPECT_EQ(c.server.read(b).value_or(0), 1u);
            });
        weft::this_fiber::sleep_for(2ms);
        const std::size_t before = weft::detail::fetches.steps;
        for (connection& c : of) EXPECT_EQ(::write(c.client.native_handle(), "a", 1), 1);
        for (fiber& f : readers) f.join();
        EXPECT_GE(weft::detail::fetches.steps - before, all - 2);
    });
}

TEST_P(driver_contract, has_a_name) {
    EXPECT_STREQ(driver().name(), weft::testing::name_of(GetParam()));
    EXPECT_EQ(driver().completes(), GetParam() == io_kind::io_uring);
}

TEST_P(driver_contract, sleeps_at_least_until_the_deadline) {
    for (const auto d : {0us, 300us, 1500us, 20000us}) {
        const auto until = steady_now() + d;
        EXPECT_TRUE(driver().wait(until));
        EXPECT_GE(steady_now(), until);
    }
    EXPECT_TRUE(driver().wait(weft::time_point()));
    EXPECT_TRUE(driver().wait(weft::time_point::min()));
}

TEST_P(driver_contract, remembers_a_wake) {
    driver().wake();
    driver().wake();
    EXPECT_TRUE(driver().wait(weft::never));
    const auto began = steady_now();
    EXPECT_TRUE(driver().wait(began + 2ms));
    EXPECT_GE(steady_now(), began + 2ms) << "one wait is ended by all that came before it";
}

TEST_P(driver_contract, is_woken_by_another_thread) {
    for (int i = 0; i < 200; ++i) {
        std::thread other([&] { driver().wake(); });
        EXPECT_TRUE(driver().wait(weft::never));
        other.join();
        driver().clear_wake();
    }
}

TEST_P(driver_contract, clears_a_wake_on_request) {
    driver().wake();
    driver().clear_wake();
    const auto began = steady_now();
    EXPECT_TRUE(driver().wait(began + 2ms));
    EXPECT_GE(steady_now(), began + 2ms);
}

TEST_P(driver_contract, notifies_a_foreign_loop_of_a_wake) {
    EXPECT_TRUE(driver().wait(weft::time_point()));
    static_cast<void>(is_readable());
    EXPECT_TRUE(driver().wait(weft::time_point()));
    for (int i = 0; i < 5; ++i) {
        driver().wake();
        EXPECT_TRUE(is_readable()) << i;
        EXPECT_TRUE(driver().wait(weft::time_point()));
        driver().clear_wake();
        EXPECT_TRUE(driver().wait(weft::time_point()));
        EXPECT_FALSE(is_readable()) << i;
    }
}

TEST_P(driver_contract, notifies_a_foreign_loop_of_an_earlier_wake) {
    driver().wake();
    EXPECT_TRUE(is_readable());
    EXPECT_TRUE(driver().wait(weft::never));
    driver().clear_wake();
    EXPECT_TRUE(driver().wait(weft::time_point()));
    EXPECT_FALSE(is_readable());
}

// A foreign loop that uses nothing of weft but a descriptor and a deadline.
TEST_P(driver_contract, can_be_embedded_by_its_descriptor) {
    // A poll driver reports only wakes, so it is polled each millisecond.
    const auto longest = GetParam() == io_kind::poll ? 1ms : 5000ms;
    const int handle = loop().native_handle();
    const int foreign = ::epoll_create1(EPOLL_CLOEXEC);
    ::epoll_event e{};
    e.events = EPOLLIN | EPOLLET;
    ASSERT_EQ(::epoll_ctl(foreign, EPOLL_CTL_ADD, handle, &e), 0);
    int rounds = 0;
    fiber server(
        [&] {
            connection c = connected();
            fiber echo([&] {
                std::string s(1, 0);
                while (c.server.read(room(s)).value_or(0) != 0)
                    if (!c.server.write_all(bytes_of(s))) return;
            });
            for (; rounds < 20; ++rounds) {
                std::string s(1, 'x');
                if (!c.client.write_all(bytes_of(s)) || !c.client.read_exact(room(s))) return;
                if (rounds % 8 == 0) weft::this_fiber::sleep_for(1ms);
            }
            c.client.close();
            echo.join();
        },
        {.on = loop()});
    for (int turns = 0; !server.done() && turns < 5000; ++turns) {
        while (loop().run_once(steady_now())) {
        }
        if (server.done()) break;
        const auto until = loop().next_deadline();
        auto left = longest;
        if (until != weft::never) {
            using std::chrono::milliseconds;
            left = std::clamp(std::chrono::ceil<milliseconds>(until - steady_now()), 0ms, longest);
        }
        const int n = ::epoll_wait(foreign, &e, 1, static_cast<int>(left.count()));
        EXPECT_TRUE(n >= 0 || errno == EINTR);
    }
    EXPECT_EQ(rounds, 20);
    ::close(foreign);
}

// Idle means asleep, with a descriptor that is ready for an event that no agent awaits.
TEST_P(driver_contract, sleeps_while_nothing_happens) {
    run([&] {
        connection c = connected();
        fiber reader([&] {
            std::string s(1, 0);
            EXPECT_EQ(c.server.read(room(s)).value_or(9), 1u);
        });
        fiber other([&] { weft::this_fiber::sleep_for(200ms); });
        weft::this_fiber::yield();
        weft::testing::nothing_spare();
        const double before = cpu_seconds();
        const std::uint64_t turns = loop().turn_count();
        other.join();
        EXPECT_LT(cpu_seconds() - before, 0.02);
        EXPECT_LT(loop().turn_count() - turns, 10u);
        EXPECT_TRUE(c.client.write_all(bytes_of("x")));
        reader.join();
    });
}

// A fiber that suspends only to let others run does not delay the sockets.
TEST_P(driver_contract, is_polled_by_a_loop_that_is_busy) {
    run([&] {
        connection c = connected();
        bool over = false;
        fiber busy([&] {
            while (!over) weft::this_fiber::yield();
        });
        std::string s(1, 'x');
        for (int i = 0; i < 10; ++i) {
            EXPECT_TRUE(c.client.write_all(bytes_of(s)));
            EXPECT_TRUE(c.server.read_exact(room(s)));
        }
        over = true;
    });
}

// Each of the two is late when the other has had its turn, so a timer is always due.
TEST_P(driver_contract, is_polled_by_a_loop_whose_timers_are_always_due) {
    run([&] {
        connection c = connected();
        bool over = false;
        const auto keep_late = [&over] {
            while (!over) {
                const auto until = steady_now() + 3ms;
                while (steady_now() < until) {
                }
                weft::this_fiber::sleep_for(1ms);
            }
        };
        fiber one(keep_late);
        fiber another(keep_late);
        fiber reader([&] {
            std::string text(1, 0);
            EXPECT_TRUE(c.server.read_exact(room(text)));
            over = true;
        });
        weft::this_fiber::sleep_for(10ms);  // it waits
        EXPECT_TRUE(c.client.write_all(bytes_of("x")));
        reader.join();
        one.join();
        another.join();
    });
}

TEST(io_driver, is_created_for_a_loop_that_needs_one) {
    weft::loop l;
    EXPECT_EQ(l.driven_by()->io(), nullptr);
    bool well = false;
    fiber f(
        [&] {
            connection c = connected();
            std::string s(1, 0);
            well = c.client.write_all(bytes_of("x")) && c.server.read_exact(room(s));
        },
        {.on = l});
    l.run();
    EXPECT_TRUE(well);
    EXPECT_NE(l.driven_by()->io(), nullptr);
}

// The foreign loop knows only its descriptor.
TEST(io_driver, is_not_created_for_a_loop_that_is_already_embedded) {
    weft::loop l;
    EXPECT_GE(l.native_handle(), 0);
    bool well = false;
    fiber f(
        [&] {
            connection c = connected();
            std::string s(1, 0);
            fiber far([&] {
                weft::this_fiber::sleep_for(2ms);
                well = c.client.write_all(bytes_of("x")).error() == std::error_code();
            });
            EXPECT_TRUE(c.server.read_exact(room(s)));
        },
        {.on = l});
    l.run();
    EXPECT_TRUE(well);
    EXPECT_EQ(l.driven_by()->io(), nullptr);
}

TEST(io_driver, stops_watching_descriptors_when_its_loop_ends) {
    connection c;
    {
        weft::loop l(weft::make_io_driver(io_kind::epoll));
        fiber f(
            [&] {
                c = connected();
                c.server.set_options({.read_timeout = 1ms});
                std::string s(1, 0);
                EXPECT_EQ(c.server.read(room(s)).error(), std::errc::timed_out);
            },
            {.on = l});
        l.run();
    }
    c.server.set_options({});
    weft::loop l(weft::make_io_driver(io_kind::epoll));
    bool well = false;
    fiber f(
        [&] {
            fiber reader([&] {
                std::string s(1, 0);
                well = c.server.read(room(s)).value_or(0) == 1;
            });
            weft::this_fiber::sleep_for(1ms);
            EXPECT_TRUE(c.client.write_all(bytes_of("x")));
            reader.join();
        },
        {.on = l});
    l.run();
    EXPECT_TRUE(well);
}

// Each of the two is stored in the entry of the listener.
TEST_P(driver_contract, keeps_the_waits_of_other_loops_when_its_loop_ends) {
    weft::tcp_listener l = weft::testing::any_listener();
    bool accepted = false;
    fiber stays([&] { accepted = l.accept().has_value(); }, {.on = loop()});
    {
        weft::loop ends(weft::make_io_driver(GetParam()));
        fiber gone([&] { static_cast<void>(l.accept()); }, {.on = ends});
        ends.run_once(steady_now());
        loop().run_once(steady_now());
        gone.detach();
    }
    run([&] {
        const auto client = weft::tcp_stream::connect(l.local_endpoint()).value();
        stays.join();
    });
    EXPECT_TRUE(accepted);
}

// The next descriptor that is opened.
int next_number() {
    const int n = ::dup(STDERR_FILENO);
    ::close(n);
    return n;
}

// Whether it sleeps and is woken, and is asleep meanwhile.
void expect_sound(weft::io_driver& d) {
    const double before = cpu_seconds();
    for (const auto some : {300us, 1500us, 20000us}) {
        const auto until = steady_now() + some;
        EXPECT_TRUE(d.wait(until));
        EXPECT_GE(steady_now(), until);
    }
    EXPECT_LT(cpu_seconds() - before, 0.015);
    d.wake();
    EXPECT_TRUE(d.wait(weft::never));
}

// It counts milliseconds there. A seccomp profile returns EPERM where an older system returns
// ENOSYS.
TEST(io_driver, sleeps_long_enough_when_epoll_pwait2_is_refused) {
    for (const int error : {ENOSYS, EPERM, EINTR})
        std::thread([error] {
            if (!weft::testing::without_call(SYS_epoll_pwait2, error)) return;  // may be refused
            const auto d = weft::make_io_driver(io_kind::epoll);
            EXPECT_STREQ(d->name(), "epoll");
            expect_sound(*d);
        }).join();
}

// A driver that was made in time finds it out when it sleeps.
TEST(io_driver, sleeps_long_enough_when_epoll_pwait2_is_refused_later) {
    for (const int error : {ENOSYS, EPERM, EINTR})
        std::thread([error] {
            const auto d = weft::make_io_driver(io_kind::epoll);
            expect_sound(*d);
            if (!weft::testing::without_call(SYS_epoll_pwait2, error)) return;  // may be refused
            expect_sound(*d);
        }).join();
}

TEST(io_driver, falls_back_to_poll_and_leaks_nothing_if_epoll_is_refused) {
    if (WEFT_TEST_ASAN) GTEST_SKIP() << "the sanitizer looks at what is thrown through a pipe";
    for (const long call : {SYS_epoll_create1, SYS_epoll_ctl})
        std::thread([call] {
            if (!weft::testing::without_call(call, EPERM)) return;  // that may be refused
            const int before = next_number();
            {
                const auto d = weft::make_io_driver(io_kind::epoll);
                EXPECT_STREQ(d->name(), "poll");
                expect_sound(*d);
            }
            EXPECT_EQ(next_number(), before);
        }).join();
    std::thread([] {
        if (!weft::testing::without_call(SYS_epoll_pwait2, EPERM)) return;
        if (!weft::testing::without_call(weft::testing::call_of_epoll_wait, EPERM)) return;
        const int before = next_number();
        EXPECT_STREQ(weft::make_io_driver(io_kind::epoll)->name(), "poll");
        EXPECT_EQ(next_number(), before);
    }).join();
}

TEST(driver_poll, retries_when_there_was_no_memory_for_the_list) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "allocations do not fail under it";
    if (!WEFT_EXCEPTIONS) GTEST_SKIP() << "without memory the program ends";
    const auto d = weft::make_io_driver(io_kind::poll);
    testing::internal::CaptureStderr();
    {
        const weft::testing::allocation_fails no_memory(1);
        d->poll();
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "weft: poll is refused: Cannot allocate memory; it is tried again\n");
    d->wake();
    EXPECT_TRUE(d->wait(weft::never));
}

TEST(io_driver, falls_back_to_epoll_if_any_io_uring_call_is_refused) {
    for (const long call : {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register})
        for (const int error : {EPERM, ENOSYS, ENOMEM})
            std::thread([=] {
                if (!weft::testing::without_call(call, error)) return;  // that may be refused
                const int before = next_number();
                {
                    const auto d = weft::make_io_driver(io_kind::io_uring);
                    EXPECT_STREQ(d->name(), "epoll");
                    expect_sound(*d);
                }
                EXPECT_EQ(next_number(), before);
            }).join();
}

using io_driver_death = ::testing::Test;

// What is refused to a driver that sleeps already.
void sleep_without(io_kind kind, long call, int error) {
    const auto d = weft::make_io_driver(kind);
    if (std::string_view(d->name()) != weft::testing::name_of(kind)) std::_Exit(77);
    static_cast<void>(d->wait(steady_now()));
    if (kind == io_kind::epoll && !weft::testing::without_call(SYS_epoll_pwait2, error))
        std::_Exit(77);
    if (!weft::testing::without_call(call, error)) std::_Exit(77);
    for (;;) static_cast<void>(d->wait(weft::never));
}

bool ended_or_cannot(int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 77);
}

// Of a thread that waits, and so needs the driver that all such share.
void wait_without(std::initializer_list<long> calls, int error) {
    auto s = weft::udp_socket::bind("127.0.0.1:0").value();
    for (const long call : calls)
        if (!weft::testing::without_call(call, error)) std::_Exit(77);
    std::string b(1, 0);
    const std::error_code reported = s.recv(room(b)).error();
    std::_Exit(reported == std::error_code(error, std::system_category()) ? 2 : 3);
}

TEST(io_driver_death, shared_by_threads_reports_what_it_lacks) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "its runtime makes calls of its own";
    for (const int error : {EMFILE, ENFILE, ENOMEM})
        EXPECT_EXIT(wait_without({SYS_epoll_create1}, error), ended_or_cannot, "");
    EXPECT_EXIT(wait_without({SYS_clone, SYS_clone3}, EAGAIN), ended_or_cannot, "");
}

TEST(io_driver_death, that_can_no_longer_sleep_ends_the_program_with_a_message) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "its runtime makes calls of its own";
    const struct {
        io_kind kind;
        long call;
        const char* name;
    } all[] = {{io_kind::epoll, weft::testing::call_of_epoll_wait, "epoll_wait"},
               {io_kind::poll, weft::testing::call_of_poll, "poll"},
               {io_kind::io_uring, SYS_io_uring_enter, "io_uring_enter"}};
    for (const auto& [kind, call, name] : all) {
        if (std::string_view(weft::make_io_driver(kind)->name()) != weft::testing::name_of(kind))
            continue;  // that it is not there was said, and would be the death's message
        EXPECT_EXIT(sleep_without(kind, call, EPERM), ended_or_cannot,
                    std::string("^$|weft: ") + name + " is refused: Operation not permitted");
        EXPECT_EXIT(sleep_without(kind, call, EINTR), ended_or_cannot,
                    std::string("^$|weft: ") + name + " is refused: Interrupted system call");
    }
    // What may pass is waited for, and not for ever.
    EXPECT_EXIT(sleep_without(io_kind::epoll, weft::testing::call_of_epoll_wait, ENOMEM),
                ended_or_cannot,
                "^$|weft: epoll_wait is refused: Cannot allocate memory; it is tried again\n"
                "weft: epoll_wait is refused: Cannot allocate memory; the program");
}

// A frame whose call is in the system is destroyed, and the system reports that the call is busy.
void destroy_a_read_without_the_ring() {
    const ::rlimit one_second = {1, 1};
    ::setrlimit(RLIMIT_CPU, &one_second);  // a spin ends by a signal
    weft::loop l(weft::make_io_driver(io_kind::io_uring));
    fiber f(
        [&] {
            auto s = weft::udp_socket::bind("127.0.0.1:0").value();
            std::string b(1, 0);
            auto reads = [&]() -> weft::eager_task<> {
                static_cast<void>(co_await s.async_recv(room(b)));
            };
            auto t = std::make_unique<weft::eager_task<>>(reads());
            weft::this_fiber::sleep_for(1ms);
            if (!weft::testing::without_call(SYS_io_uring_enter, EAGAIN)) std::_Exit(77);
            t.reset();
            std::_Exit(3);
        },
        {.on = l});
    l.run();
}

// What is to be ended is stored in a block, and there is none.
void close_without_memory() {
    weft::loop l(weft::make_io_driver(io_kind::io_uring));
    fiber f(
        [&] {
            auto p = weft::pipe::open();
            if (!p) std::_Exit(77);
            fiber reader([&] {
                std::string b(1, 0);
                static_cast<void>(p->reader.read(room(b)));
            });
            weft::this_fiber::sleep_for(1ms);
            weft::testing::nothing_spare();
            if (!weft::testing::without_call(SYS_mmap, ENOMEM)) std::_Exit(77);
            for (std::size_t bytes = 64; bytes <= weft::detail::block_cache::maximum_block_bytes;
                 bytes *= 2)
                while (weft::detail::block_cache::try_acquire(bytes) != nullptr) {
                }
            p->reader.close();
            std::_Exit(3);
        },
        {.on = l});
    l.run();
}

TEST(io_driver_death, with_a_busy_ring_pauses_before_it_retries) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "its runtime makes calls of its own";
    const char* why = nullptr;
    if (weft::make_driver_uring(&why) == nullptr) GTEST_SKIP() << why;
    EXPECT_EXIT(destroy_a_read_without_the_ring(), ended_or_cannot,
                "^$|weft: io_uring_enter is refused: .*; it is tried again\n"
                "weft: io_uring_enter is refused: .*; the program");
}

TEST(io_driver_death, reports_lack_of_memory_for_io_uring_cancellations) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "its runtime makes calls of its own";
    const char* why = nullptr;
    if (weft::make_driver_uring(&why) == nullptr) GTEST_SKIP() << why;
    const auto told_or_cannot = [](int status) {
        return WIFSIGNALED(status) ? WTERMSIG(status) == SIGABRT : ended_or_cannot(status);
    };
    EXPECT_EXIT(close_without_memory(), told_or_cannot,
                "^$|weft: out of memory: no room for what io_uring is to end");
}

// A thread on no loop: what was short at its first wait is there at the next.
void wait_without_descriptors() {
    ::rlimit few;
    ::getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = 64;
    ::setrlimit(RLIMIT_NOFILE, &few);
    auto ends = weft::pipe::open().value();
    std::vector<int> all;
    for (int n; (n = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) all.push_back(n);
    std::string b(1, 0);
    ends.reader.set_options({.read_timeout = 10s});
    const bool refused = ends.reader.read(room(b)).error() == std::errc::too_many_files_open;
    for (const int n : all) ::close(n);
    std::thread other([&] { static_cast<void>(!ends.writer.write_all(bytes_of("x")).error()); });
    const bool served = ends.reader.read(room(b)).value_or(0) == 1;
    other.join();
    std::_Exit(refused && served ? 3 : 4);
}

TEST(io_driver_death, of_plain_threads_is_retried_after_a_lack_of_descriptors) {
    if (WEFT_TEST_ASAN) GTEST_SKIP() << "the sanitizer looks at objects through a pipe";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // the one of this process may be there
    EXPECT_EXIT(wait_without_descriptors(), ::testing::ExitedWithCode(3), "");
}

// A thread on no loop, where epoll is refused: the file that it waited for is closed once another
// thread has closed it.
void close_what_is_polled() {
    if (!weft::testing::without_call(SYS_epoll_create1, EPERM)) std::_Exit(77);
    auto ends = weft::pipe::open().value();
    std::thread reader([&] {
        std::string b(1, 0);
        static_cast<void>(ends.reader.read(room(b)).error());
    });
    std::this_thread::sleep_for(50ms);
    ends.reader.close();
    reader.join();
    ::pollfd p = {ends.writer.native_handle(), 0, 0};
    std::_Exit(::poll(&p, 1, 5000) == 1 && (p.revents & POLLERR) != 0 ? 2 : 3);
}

TEST(io_driver_death, of_plain_threads_by_poll_stops_polling_a_closed_fd) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "its runtime makes calls of its own";
    EXPECT_EXIT(close_what_is_polled(), ended_or_cannot, "");
}

TEST(io_driver, cannot_be_created_without_a_free_descriptor) {
    if (WEFT_TEST_ASAN) GTEST_SKIP() << "the sanitizer looks at what is thrown through a pipe";
    ::rlimit before;
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const ::rlimit none = {0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    for (const io_kind k : {io_kind::epoll, io_kind::poll})
        EXPECT_THROW(static_cast<void>(weft::make_io_driver(k)), std::system_error);
    ::setrlimit(RLIMIT_NOFILE, &before);
}

// The driver's first descriptor is the system's first then, which is a descriptor like any other.
TEST(io_driver, can_be_created_when_the_program_has_no_stdin) {
    const int kept = ::dup(0);
    ASSERT_EQ(::close(0), 0);
    for (const io_kind k : {io_kind::epoll, io_kind::poll}) {
        const auto d = weft::make_io_driver(k);
        EXPECT_GE(::fcntl(0, F_GETFD), 0) << "it has taken it";
        d->wake();
        EXPECT_TRUE(d->wait(steady_now() + 10s));
    }
    EXPECT_EQ(::fcntl(0, F_GETFD), -1) << "it is given back";
    ASSERT_EQ(::dup2(kept, 0), 0);
    ::close(kept);
}

// A multishot poll of io_uring holds the file open; the peer would not see the close.
TEST_P(driver_contract, releases_a_closed_descriptor_it_watched_for_room) {
    run([] {
        auto [s, far] = weft::unix_datagram::pair().value();
        {
            const weft::timeout_scope soon(1ms);
            weft::incoming_datagram none[1];
            EXPECT_FALSE(s.recv_many(none));
        }
        {
            const weft::timeout_scope soon(5ms);
            while (s.send(bytes_of("until it is full"))) {
            }
        }
        s.close();
        const auto refused = far.send(bytes_of("x"));
        EXPECT_TRUE(!refused && refused.error() == std::errc::connection_refused)
            << refused.error().message();
    });
}

// The events for which an epoll set watches this descriptor, as the system reports them.
unsigned asked_for(int set, int number) {
    std::ifstream about("/proc/self/fdinfo/" + std::to_string(set));
    for (std::string line; std::getline(about, line);) {
        unsigned events = 0;
        int of = -1;
        if (std::sscanf(line.c_str(), "tfd: %d events: %x", &of, &events) == 2 && of == number)
            return events;
    }
    return 0;
}

// A local socket reports room at each read of its peer, a TCP socket only where none was found.
TEST(driver_epoll, watches_for_room_at_the_first_wait_and_on_tcp_at_once) {
    weft::loop l(weft::make_io_driver(io_kind::epoll));
    const int set = l.driven_by()->io()->native_handle();
    auto [near, far] = weft::unix_stream::pair().value();
    connection over_tcp = connected();
    std::string got(1, 0);
    fiber reader([&, &s = near] { EXPECT_EQ(s.read(room(got)).value_or(0), 1u); }, {.on = l});
    fiber of_tcp([&] { EXPECT_TRUE(over_tcp.server.read(room(got))); }, {.on = l});
    l.run_once(weft::after(l.now(), 1ms));
    const int number = near.native_handle();
    EXPECT_EQ(asked_for(set, number) & (EPOLLIN | EPOLLOUT), unsigned{EPOLLIN});
    EXPECT_EQ(asked_for(set, over_tcp.server.native_handle()) & (EPOLLIN | EPOLLOUT),
              unsigned{EPOLLIN | EPOLLOUT});
    const std::string much(1 << 20, 'm');
    bool is_written = false;
    fiber writer(
        [&, &s = near] {
            EXPECT_TRUE(s.write_all(bytes_of(much)));
            is_written = true;
        },
        {.on = l});
    l.run_once(weft::after(l.now(), 1ms));
    EXPECT_FALSE(is_written);
    EXPECT_EQ(asked_for(set, number) & (EPOLLIN | EPOLLOUT), unsigned{EPOLLIN | EPOLLOUT});
    std::thread peer([&, &s = far] {
        std::string all(much.size(), 0);
        EXPECT_TRUE(s.read_exact(room(all)));
        EXPECT_TRUE(s.write_all(bytes_of("1")));
        EXPECT_TRUE(over_tcp.client.write_all(bytes_of("2")));
    });
    const auto end = steady_now() + 5s;
    while (l.flow_count() != 0 && steady_now() < end) l.run_once(weft::after(l.now(), 50ms));
    peer.join();
    EXPECT_TRUE(is_written);
    EXPECT_TRUE(reader.done() && of_tcp.done() && writer.done());
}

class io_environment : public ::testing::Test {
protected:
    void SetUp() override {
        const char* now = std::getenv("WEFT_IO");
        if (now != nullptr) before_ = now;
    }
    void TearDown() override {
        if (before_.empty())
            ::unsetenv("WEFT_IO");
        else
            ::setenv("WEFT_IO", before_.c_str(), 1);
    }

private:
    std::string before_;
};

TEST_F(io_environment, chooses_the_driver) {
    for (const char* name : {"epoll", "poll"}) {
        ::setenv("WEFT_IO", name, 1);
        EXPECT_STREQ(weft::make_io_driver()->name(), name);
    }
    ::setenv("WEFT_IO", "poll", 1);
    EXPECT_STREQ(weft::make_io_driver(io_kind::epoll)->name(), "epoll") << "an option goes first";
    ::unsetenv("WEFT_IO");
    EXPECT_STREQ(weft::make_io_driver()->name(), "epoll");
}

TEST_F(io_environment, waits_by_epoll_where_the_build_has_no_kqueue) {
    const char* why = nullptr;
    const bool has_kqueue = weft::make_driver_kqueue(&why) != nullptr;
    ::setenv("WEFT_IO", "kqueue", 1);
    testing::internal::CaptureStderr();
    const auto d = weft::make_io_driver();
    const std::string said = testing::internal::GetCapturedStderr();
    expect_sound(*d);
    if (has_kqueue) {
        EXPECT_STREQ(d->name(), "kqueue");
        EXPECT_EQ(said, "");
    } else {
        EXPECT_STREQ(d->name(), "epoll");
        EXPECT_EQ(
            said,
            "weft: kqueue is refused here (built without kqueue); descriptors are waited for by "
            "epoll\n");
    }
}

using io_environment_death = io_environment;

TEST_F(io_environment_death, with_an_unknown_driver_ends_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // there may be a thread of the library
    ::setenv("WEFT_IO", "devpoll", 1);
    EXPECT_EXIT(static_cast<void>(weft::make_io_driver()), ::testing::ExitedWithCode(2),
                "WEFT_IO is \"devpoll\"; it can be epoll, io_uring, kqueue, poll, auto");
}

}  // namespace
