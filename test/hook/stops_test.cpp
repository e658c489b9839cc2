// What becomes of a hooked call when its fiber is stopped, comes to its deadline, or is killed.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <vector>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/hook/hook.hpp"

namespace {

using namespace std::chrono_literals;
using namespace weft;
using weft::testing::fd_pair;

using stopwatch = std::chrono::steady_clock;

class hooked_stops : public weft::testing::on_each_driver {};

// Each way to wait for ever, told by what it gives when the fiber is asked to stop.
struct waits_for_ever {
    const char* name;
    std::function<long()> call;
};
std::vector<waits_for_ever> all_that_wait(int socket, int pipe, int listening, int event) {
    const auto buffer = [] {
        static char room[64];
        return room;
    };
    return {
        {"read", [=] { return ::read(socket, buffer(), 8); }},
        {"read of a pipe", [=] { return ::read(pipe, buffer(), 8); }},
        {"read of an eventfd", [=] { return ::read(event, buffer(), 8); }},
        {"readv",
         [=] {
             const iovec v = {buffer(), 8};
             return ::readv(socket, &v, 1);
         }},
        {"recv", [=] { return ::recv(socket, buffer(), 8, 0); }},
        {"recv of all", [=] { return ::recv(socket, buffer(), 8, MSG_WAITALL); }},
        {"recvmsg",
         [=] {
             iovec v = {buffer(), 8};
             msghdr m{};
             m.msg_iov = &v;
             m.msg_iovlen = 1;
             return ::recvmsg(socket, &m, 0);
         }},
        {"accept", [=] { return long{::accept(listening, nullptr, nullptr)}; }},
        {"poll",
         [=] {
             pollfd p[2] = {{socket, POLLIN, 0}, {pipe, POLLIN, 0}};
             return long{::poll(p, 2, -1)};
         }},
        {"select",
         [=] {
             fd_set r;
             FD_ZERO(&r);
             FD_SET(socket, &r);
             return long{::select(socket + 1, &r, nullptr, nullptr, nullptr)};
         }},
        {"ppoll with a mask",
         [=] {
             pollfd p = {socket, POLLIN, 0};
             sigset_t none;
             ::sigfillset(&none);
             return long{::ppoll(&p, 1, nullptr, &none)};
         }},
        {"usleep", [] { return long{::usleep(3'000'000)}; }},
        {"nanosleep",
         [] {
             const timespec t = {3600, 0};
             return long{::nanosleep(&t, nullptr)};
         }},
    };
}

struct waiting_things {
    fd_pair sockets = fd_pair::sockets();
    fd_pair pipe = fd_pair::pipe();
    sockaddr_in at;
    weft::testing::one_fd listening{weft::testing::bound(SOCK_STREAM, at)};
    weft::testing::one_fd event{::eventfd(0, 0)};
    std::vector<waits_for_ever> all() {
        return all_that_wait(sockets.a, pipe.a, listening.n, event.n);
    }
};

TEST_P(hooked_stops, calls_end_with_ecanceled_when_their_fiber_is_stopped) {
    run([] {
        waiting_things things;
        for (const auto& w : things.all()) {
            long answer = 0;
            int why = 0;
            fiber f([&] {
                answer = w.call();
                why = errno;
                const auto again = stopwatch::now();  // a stop is a state
                EXPECT_EQ(w.call(), -1) << w.name;
                EXPECT_LT(stopwatch::now() - again, 1s) << w.name;
                this_fiber::yield();
                ADD_FAILURE() << "not delivered";
            });
            this_fiber::sleep_for(2ms);
            const auto asked = stopwatch::now();
            f.request_stop();
            EXPECT_TRUE(f.join().stopped());
            EXPECT_LT(stopwatch::now() - asked, 1s) << w.name;
            EXPECT_EQ(answer, -1) << w.name;
            EXPECT_EQ(why, ECANCELED) << w.name;
        }
        EXPECT_EQ(::sleep(0), 0u);
    });
}

TEST_P(hooked_stops, calls_end_with_etimedout_when_a_scope_comes_to_its_deadline) {
    run([] {
        waiting_things things;
        for (const auto& w : things.all()) {
            const timeout_scope soon(3ms);
            EXPECT_EQ(w.call(), -1) << w.name;
            EXPECT_EQ(errno, ETIMEDOUT) << w.name;
        }
    });
}

TEST_P(hooked_stops, calls_are_unwound_when_their_loop_ends) {
    waiting_things things;
    const auto all = things.all();
    std::size_t ended = 0;
    {
        std::vector<fiber> fibers;
        for (const auto& w : all)
            fibers.emplace_back(
                [&] {
                    struct noted {
                        std::size_t& n;
                        ~noted() {
                            // In a destructor nothing waits.
                            EXPECT_EQ(::usleep(60'000'000), -1);
                            ++n;
                        }
                    } const at_end{ended};
                    w.call();
                },
                fiber_options{.on = &loop()});
        for (int i = 0; i < 20; ++i) static_cast<void>(loop().run_once(steady_now() + 1ms));
        for (auto& f : fibers) f.detach();
        end_loop();
    }
    EXPECT_EQ(ended, all.size());
}

TEST_P(hooked_stops, a_fiber_that_ignores_its_stop_starves_nobody) {
    run([] {
        bool over = false;
        fiber stubborn([&] {
            while (!over) ::usleep(1000);
        });
        this_fiber::sleep_for(2ms);
        stubborn.request_stop();
        this_fiber::sleep_for(5ms);
        over = true;
        stubborn.join();
    });
}

INSTANTIATE_ON_DRIVERS(hooked_stops);

}  // namespace
