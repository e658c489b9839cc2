// What becomes of a hooked call when its fiber is stopped, comes to its deadline, or is killed.

#include "weft/hook/detail/stops.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/hook/hook.hpp"
#include "weft/wait/stopped.hpp"
#include "weft/wait/timeout_scope.hpp"

extern "C" {
int wait_like_zmq(int fd);
int wait_like_ev(int fd);
int wait_like_glib(int fd);
int take_times_asked();
int wait_like_event(int fd);
int wait_without_tables(int fd, volatile int* asked);
}

namespace {

using namespace std::chrono_literals;
using namespace weft;
using weft::testing::fd_pair;

using stopwatch = std::chrono::steady_clock;

class hooked_stops : public weft::testing::on_each_driver {};

// Each way to wait for ever, and its call, which returns when the fiber's stop is requested.
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

TEST_P(hooked_stops, end_calls_of_a_stopped_fiber_with_ecanceled) {
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
            EXPECT_TRUE(f.join().is_stopped());
            EXPECT_LT(stopwatch::now() - asked, 1s) << w.name;
            EXPECT_EQ(answer, -1) << w.name;
            EXPECT_EQ(why, ECANCELED) << w.name;
        }
        EXPECT_EQ(::sleep(0), 0u);
    });
}

TEST_P(hooked_stops, end_calls_with_etimedout_at_a_scopes_deadline) {
    run([] {
        waiting_things things;
        for (const auto& w : things.all()) {
            const timeout_scope soon(3ms);
            EXPECT_EQ(w.call(), -1) << w.name;
            EXPECT_EQ(errno, ETIMEDOUT) << w.name;
        }
    });
}

TEST_P(hooked_stops, unwind_calls_when_their_loop_ends) {
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
                fiber_options{.on = loop()});
        for (int i = 0; i < 20; ++i) static_cast<void>(loop().run_once(steady_now() + 1ms));
        for (auto& f : fibers) f.detach();
        end_loop();
    }
    EXPECT_EQ(ended, all.size());
}

TEST_P(hooked_stops, let_no_fiber_starve_when_one_ignores_its_stop) {
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

#if WEFT_EXCEPTIONS

// Under load a turn of the loop may take some of it; 10 ms is what it is without.
constexpr auto soon = 100ms;

struct asking_library {
    const char* name;
    int (*wait)(int fd);
    bool comes_back;
};
constexpr asking_library asking_libraries[] = {{"libzmq", wait_like_zmq, true},
                                               {"libev", wait_like_ev, false},
                                               {"glib", wait_like_glib, false},
                                               {"libevent", wait_like_event, true}};

TEST_P(hooked_stops, end_a_wait_in_a_known_library_without_aborting) {
    run([] {
        const fd_pair silent = fd_pair::pipe();
        for (const asking_library& l : asking_libraries) {
            bool came_back = false;
            bool went = false;
            fiber f([&] {
                struct noted {
                    bool& it;
                    ~noted() { it = true; }
                } const at_end{went};
                EXPECT_EQ(l.wait(silent.a), -1) << l.name;
                came_back = true;
                this_fiber::throw_if_stopped();
            });
            this_fiber::sleep_for(2ms);
            const auto asked = stopwatch::now();
            f.request_stop();
            EXPECT_TRUE(f.join().is_stopped()) << l.name;
            EXPECT_LT(stopwatch::now() - asked, soon) << l.name;
            EXPECT_EQ(came_back, l.comes_back) << l.name;
            EXPECT_TRUE(went) << l.name;
        }
    });
}

TEST_P(hooked_stops, end_a_wait_in_a_known_library_at_a_scopes_deadline) {
    run([] {
        const fd_pair silent = fd_pair::pipe();
        for (const asking_library& l : asking_libraries) {
            const auto start = stopwatch::now();
            try {
                const timeout_scope limit(3ms);
                EXPECT_EQ(l.wait(silent.a), -1) << l.name;
                EXPECT_TRUE(l.comes_back) << l.name;
            } catch (const stopped& s) {
                EXPECT_FALSE(l.comes_back) << l.name;
                EXPECT_EQ(s.reason, stop_reason::deadline) << l.name;
            }
            EXPECT_LT(stopwatch::now() - start, soon) << l.name;
        }
    });
}

// The result of a call in a stopped fiber, under the option in force.
std::string answer_with(const std::function<void()>& call) {
    std::string answer = "nothing";
    fiber f([&] {
        try {
            call();
            answer = ::strerrorname_np(errno);
        } catch (const stopped& s) {
            answer = s.reason == stop_reason::user ? "stopped" : "stopped otherwise";
            throw;
        }
        this_fiber::throw_if_stopped();
    });
    this_fiber::sleep_for(1ms);
    f.request_stop();
    EXPECT_TRUE(f.join().is_stopped());
    return answer;
}

TEST_P(hooked_stops, take_their_answer_from_the_scope_or_the_process) {
    using hook::stop_answer;
    run([] {
        waiting_things things;
        for (const auto& w : things.all()) {
            const auto in_scope = [&](stop_answer a) {
                return answer_with([&] {
                    const hook::stop_answer_scope outer(stop_answer::canceled);
                    const hook::stop_answer_scope inner(a);
                    w.call();
                });
            };
            EXPECT_EQ(in_scope(stop_answer::canceled), "ECANCELED") << w.name;
            EXPECT_EQ(in_scope(stop_answer::interrupted), "EINTR") << w.name;
            EXPECT_EQ(in_scope(stop_answer::unwind), "stopped") << w.name;
            EXPECT_EQ(in_scope(stop_answer::by_library), "ECANCELED") << w.name;
        }
        const auto in_process = [&](stop_answer a) {
            hook::set_stop_answer(a);
            const std::string answer = answer_with([] {
                {
                    const hook::stop_answer_scope over(stop_answer::canceled);
                }
                ::usleep(10'000'000);
            });
            hook::set_stop_answer(stop_answer::by_library);
            return answer;
        };
        EXPECT_EQ(in_process(stop_answer::interrupted), "EINTR");
        EXPECT_EQ(in_process(stop_answer::unwind), "stopped");
        EXPECT_EQ(in_process(stop_answer::canceled), "ECANCELED");
    });
}

TEST_P(hooked_stops, unwind_code_that_retries_after_a_hundred_refusals) {
    run([] {
        const fd_pair silent = fd_pair::pipe();
        take_times_asked();
        const std::string answer = answer_with([&] {
            const hook::stop_answer_scope said(hook::stop_answer::canceled);
            wait_like_glib(silent.a);
        });
        EXPECT_EQ(answer, "stopped");
        EXPECT_EQ(take_times_asked(), static_cast<int>(hook::most_refusals) - 1);
    });
}

TEST_P(hooked_stops, restart_the_refusal_count_after_a_successful_wait) {
    run([] {
        for (int round = 0; round < 3; ++round) {
            {
                const timeout_scope over(0ms);
                for (unsigned i = 0; i + 1 < hook::most_refusals; ++i) {
                    EXPECT_EQ(::usleep(1000), -1);
                    EXPECT_EQ(errno, ETIMEDOUT);
                }
            }
            EXPECT_EQ(::usleep(100), 0);
        }
    });
}

// What cannot be unwound.
int through_noexcept(int fd) noexcept { return wait_like_event(fd); }

TEST_P(hooked_stops, throw_nothing_through_a_noexcept_function) {
    const auto stuck = hook::stuck_count();
    run([] {
        const fd_pair silent = fd_pair::pipe();
        EXPECT_EQ(answer_with([&] {
                      const hook::stop_answer_scope said(hook::stop_answer::unwind);
                      EXPECT_EQ(through_noexcept(silent.a), -1);
                  }),
                  "ECANCELED");
    });
    EXPECT_EQ(hook::stuck_count() - stuck, 1u);
}

// The thread stays free, others have their turns, and the report comes once.
TEST_P(hooked_stops, slow_down_and_report_code_without_unwind_tables) {
    const fd_pair silent = fd_pair::pipe();
    volatile int asked = 0;
    int turns = 0;
    int asked_slowly = 0;
    const auto stuck = hook::stuck_count();
    ::testing::internal::CaptureStderr();
    run([&] {
        fiber f([&] {
            const hook::stop_answer_scope said(hook::stop_answer::unwind);
            wait_without_tables(silent.a, &asked);
        });
        this_fiber::sleep_for(1ms);
        f.request_stop();
        const auto late = stopwatch::now() + 10s;
        while (asked < static_cast<int>(hook::most_refusals) && stopwatch::now() < late)
            this_fiber::sleep_for(1ms);
        const int asked_before = asked;
        const auto end = stopwatch::now() + 60ms;
        while (stopwatch::now() < end) {
            this_fiber::sleep_for(2ms);
            ++turns;
        }
        asked_slowly = asked - asked_before;
        asked = -1;
        f.join();
    });
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_GE(asked_slowly, 1);
    EXPECT_LE(asked_slowly, 8);
    EXPECT_GE(turns, 3);
    EXPECT_EQ(hook::stuck_count() - stuck, 1u);
    EXPECT_EQ(told.find("cannot be unwound: a function without unwind information is in the way") !=
                  std::string::npos,
              stuck < 64)
        << told;
}

#endif

TEST(stop_answers, have_names) {
    using hook::stop_answer;
    for (const auto& [name, answer] : {std::pair{"canceled", stop_answer::canceled},
                                       {"interrupted", stop_answer::interrupted},
                                       {"unwind", stop_answer::unwind},
                                       {"by_library", stop_answer::by_library}}) {
        auto found = answer == stop_answer::canceled ? stop_answer::unwind : stop_answer::canceled;
        EXPECT_TRUE(hook::parse_stop_answer(name, found));
        EXPECT_EQ(found, answer);
    }
    auto untouched = stop_answer::unwind;
    EXPECT_FALSE(hook::parse_stop_answer("cancelled", untouched));
    EXPECT_FALSE(hook::parse_stop_answer("", untouched));
    EXPECT_EQ(untouched, stop_answer::unwind);
}

TEST(stop_answers, of_a_library_are_chosen_by_its_file_name) {
    using hook::stop_answer;
    auto a = stop_answer::by_library;
    EXPECT_TRUE(hook::answer_of_library("/usr/lib/x86_64-linux-gnu/libzmq.so.5", a));
    EXPECT_EQ(a, stop_answer::interrupted);
    EXPECT_TRUE(hook::answer_of_library("libglib-2.0.so.0", a));
    EXPECT_EQ(a, stop_answer::unwind);
    EXPECT_TRUE(hook::answer_of_library("/lib/libevent-2.1.so.7", a));
    EXPECT_EQ(a, stop_answer::canceled);
    EXPECT_TRUE(hook::answer_of_library("/usr/lib/libsqlite3.so.0", a));
    EXPECT_EQ(a, stop_answer::canceled);
    EXPECT_TRUE(hook::answer_of_library("/lib/libev.so.4", a));
    EXPECT_EQ(a, stop_answer::interrupted);
    for (const char* other : {"", "/libzmq.so/program", "/lib/libevdev.so.2", "libc.so.6"})
        EXPECT_FALSE(hook::answer_of_library(other, a)) << other;
    EXPECT_FALSE(hook::answer_of_library(nullptr, a));
}

// What this program prints at its start, in such an environment.
std::string said_with(const char* value) {
    int ends[2];
    if (::pipe(ends) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) {
        ::setenv("WEFT_HOOK_STOP", value, 1);
        ::dup2(ends[1], 2);
        const int nothing = ::open("/dev/null", O_WRONLY);
        ::dup2(nothing, 1);
        ::execl("/proc/self/exe", "self", "--gtest_list_tests", nullptr);
        ::_exit(1);
    }
    ::close(ends[1]);
    std::string said;
    char part[256];
    for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;)
        said.append(part, static_cast<std::size_t>(n));
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return said;
}

TEST(stop_answers, from_the_environment_are_validated) {
    EXPECT_EQ(said_with("unwind").find("WEFT_HOOK_STOP"), std::string::npos);
    EXPECT_NE(said_with("cancelled")
                  .find("weft: WEFT_HOOK_STOP=cancelled is none of by_library, "
                        "canceled, interrupted, unwind\n"),
              std::string::npos);
}

// A thread of weft's own has made the call, and is out of it when what is unwound closes files.
TEST_P(hooked_stops, leave_no_fd_in_use_when_a_call_with_a_mask_unwinds) {
    if (!WEFT_EXCEPTIONS) GTEST_SKIP();
    run([] {
        int missed = 0;
        for (int i = 0; i != 50; ++i) {
            fiber waits([&] {
                const hook::stop_answer_scope said(hook::stop_answer::unwind);
                struct closing {
                    fd_pair p = fd_pair::pipe();
                    int& missed;
                    ~closing() {
                        p.close_a();
                        pollfd of_b = {p.b, POLLOUT, 0};
                        hook::real::poll(&of_b, 1, 0);
                        if ((of_b.revents & POLLERR) == 0) ++missed;
                    }
                } const mine{.missed = missed};
                sigset_t none;
                sigemptyset(&none);
                pollfd of_a = {mine.p.a, POLLIN, 0};
                ::ppoll(&of_a, 1, nullptr, &none);
                ADD_FAILURE() << "it came back";
            });
            ::usleep(1000);
            waits.request_stop();
            waits.join();
        }
        EXPECT_EQ(missed, 0);
    });
}

INSTANTIATE_ON_DRIVERS(hooked_stops);

}  // namespace
