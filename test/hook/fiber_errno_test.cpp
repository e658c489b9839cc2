// errno is the fiber's across every wait in a hooked call: a call that succeeds leaves it
// unchanged, whatever other fibers have done meanwhile and on whichever thread the fiber has
// continued.

#include "weft/hook/detail/fiber_errno.hpp"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/pool.hpp"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using weft::testing::fd_pair;

class hooked_errno : public weft::testing::on_each_driver {};

WEFT_NOINLINE long thread_here() noexcept { return ::syscall(SYS_gettid); }

TEST(fiber_errno, follows_the_fiber_to_another_thread) {
    constexpr int fibers = 64;
    constexpr int most_rounds = 10'000;
    constexpr int enough = 30;
    std::array<fd_pair, fibers> pairs;
    for (fd_pair& p : pairs) {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        p.a = ends[0];
        p.b = ends[1];
    }
    std::atomic<int> wrong{0};
    std::atomic<int> failed{0};
    std::atomic<int> moved{0};
    std::atomic<int> over{0};
    std::thread feeder([&] {
        while (over.load() != fibers)
            for (const fd_pair& p : pairs) ::send(p.b, "x", 1, MSG_DONTWAIT);
    });
    {
        pool two(2);
        std::vector<fiber> all;
        for (int i = 0; i < fibers; ++i)
            all.emplace_back(
                [&, i] {
                    for (int n = 0; n < most_rounds && moved < enough; ++n) {
                        set_errno(1000 + i);
                        const long before = thread_here();
                        char room[64];
                        if (::recv(pairs[static_cast<std::size_t>(i)].a, room, sizeof room, 0) < 0)
                            ++failed;
                        else if (get_errno() != 1000 + i)
                            ++wrong;
                        if (thread_here() != before) ++moved;
                    }
                    ++over;
                },
                fiber_options{.on = two, .migratable = true});
        for (auto& f : all) f.join();
    }
    feeder.join();
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(wrong, 0);
    EXPECT_GT(moved, 0);
}

// Each waits for what the fiber beside it does a little later.
struct wait_that_succeeds {
    const char* name;
    std::function<bool()> call;
    std::function<void()> ends_it = [] {};
};

std::vector<wait_that_succeeds> all_waits(const fd_pair& sockets, const fd_pair& pipe,
                                          int listening, const sockaddr_in& at, int event,
                                          pthread_mutex_t& mutex) {
    static char room[64];
    const auto sends = [&] { ::send(sockets.b, "x", 1, 0); };
    const auto writes = [&] { ::write(pipe.b, "x", 1); };
    const auto connects = [&] {
        const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
        ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at);
        ::close(fd);
    };
    const auto drained = [&](bool there) {
        ::recv(sockets.a, room, sizeof room, MSG_DONTWAIT);
        return there;
    };
    return {
        {"recv", [&] { return ::recv(sockets.a, room, 8, 0) == 1; }, sends},
        {"read of a socket", [&] { return ::read(sockets.a, room, 8) == 1; }, sends},
        {"read of a pipe", [&] { return ::read(pipe.a, room, 8) == 1; }, writes},
        {"read of an eventfd", [=] { return ::read(event, room, 8) == 8; },
         [=] {
             const std::uint64_t one = 1;
             ::write(event, &one, sizeof one);
         }},
        {"accept",
         [=] {
             const int fd = ::accept(listening, nullptr, nullptr);
             return ::close(fd) == 0;
         },
         connects},
        {"poll",
         [=, &sockets] {
             pollfd p = {sockets.a, POLLIN, 0};
             return drained(::poll(&p, 1, -1) == 1);
         },
         sends},
        {"poll of nothing", [] { return ::poll(nullptr, 0, 2) == 0; }},
        {"select",
         [=, &sockets] {
             fd_set r;
             FD_ZERO(&r);
             FD_SET(sockets.a, &r);
             return drained(::select(sockets.a + 1, &r, nullptr, nullptr, nullptr) == 1);
         },
         sends},
        {"ppoll with a mask",
         [=, &sockets] {
             pollfd p = {sockets.a, POLLIN, 0};
             sigset_t none;
             ::sigemptyset(&none);
             return drained(::ppoll(&p, 1, nullptr, &none) == 1);
         },
         sends},
        {"usleep", [] { return ::usleep(2000) == 0; }},
        {"sleep of nothing", [] { return ::sleep(0) == 0; }},
        {"waitpid",
         [] {
             const pid_t child = ::fork();
             if (child == 0) {
                 const timespec t = {0, 3'000'000};
                 ::nanosleep(&t, nullptr);
                 ::_exit(0);
             }
             set_errno(77);
             return ::waitpid(child, nullptr, 0) == child;
         }},
        {"pthread_mutex_lock",
         [&] { return ::pthread_mutex_lock(&mutex) == 0 && ::pthread_mutex_unlock(&mutex) == 0; }},
    };
}

TEST_P(hooked_errno, is_preserved_by_a_call_that_waits_and_succeeds) {
    hook::on_held_lock([](const hook::pin&) {});
    run([] {
        const fd_pair sockets = fd_pair::sockets();
        const fd_pair pipe = fd_pair::pipe();
        sockaddr_in at;
        const weft::testing::one_fd listening{weft::testing::bound(SOCK_STREAM, at)};
        const weft::testing::one_fd event{::eventfd(0, 0)};
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        for (const auto& w : all_waits(sockets, pipe, listening.n, at, event.n, mutex)) {
            ::pthread_mutex_lock(&mutex);
            bool over = false;
            fiber waits([&] {
                set_errno(77);
                EXPECT_TRUE(w.call()) << w.name << ": " << ::strerrorname_np(get_errno());
                EXPECT_EQ(get_errno(), 77) << w.name;
                over = true;
            });
            fiber others([&] {
                for (int i = 0; !over || i <= 5; ++i) {
                    ::close(-1);  // EBADF
                    this_fiber::sleep_for(200us);
                    ::close(-1);
                    if (i == 5) {
                        w.ends_it();
                        ::pthread_mutex_unlock(&mutex);
                    }
                }
            });
            waits.join();
            others.join();
        }
    });
    hook::on_held_lock(nullptr);
}

INSTANTIATE_ON_DRIVERS(hooked_errno);

}  // namespace
