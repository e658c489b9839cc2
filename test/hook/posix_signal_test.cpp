// Cases of signals that are waited for.

#include <gtest/gtest.h>
#include <signal.h>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/hook/hook.hpp"

namespace {

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;

// A set of signals that this thread, and those that it starts, block meanwhile.
struct blocked_signals {
    sigset_t set;
    sigset_t before;

    explicit blocked_signals(std::initializer_list<int> all) {
        ::sigemptyset(&set);
        for (const int n : all) ::sigaddset(&set, n);
        ::pthread_sigmask(SIG_BLOCK, &set, &before);
    }
    blocked_signals(const blocked_signals&) = delete;
    ~blocked_signals() {
        const timespec none{};
        while (::sigtimedwait(&set, nullptr, &none) > 0) continue;
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
};

void send_to_thread(pthread_t to, int number, int value) {
    sigval v;
    v.sival_int = value;
    ::pthread_sigqueue(to, number, v);
}

POSIX_CASE(sigwait_takes_what_is_pending) {
    const blocked_signals these{SIGUSR1, SIGUSR2, SIGRTMIN};
    int n = 0;
    ::raise(SIGUSR1);
    t.told("sigwait", HOOKED(sigwait)(&these.set, &n));
    t.told("number", n == SIGUSR1);
    siginfo_t i{};
    send_to_thread(::pthread_self(), SIGRTMIN, 5);
    send_to_thread(::pthread_self(), SIGRTMIN, 6);
    t.told("sigwaitinfo", HOOKED(sigwaitinfo)(&these.set, &i) == SIGRTMIN);
    t.told("value", i.si_value.sival_int);
    t.told("code", i.si_code == SI_QUEUE   ? 1
                   : i.si_code == SI_TKILL ? 2
                   : i.si_code == SI_USER  ? 3
                                           : 4);
    const timespec none{};
    t.told("sigtimedwait", HOOKED(sigtimedwait)(&these.set, &i, &none) == SIGRTMIN);
    t.told("value", i.si_value.sival_int);
    t.told("nothing", HOOKED(sigtimedwait)(&these.set, &i, &none));
    const timespec some = {0, 20'000'000};
    t.took("in vain", 20ms,
           [&] { t.told("nothing", HOOKED(sigtimedwait)(&these.set, &i, &some)); });
    const timespec bad = {0, 1'000'000'000};
    t.told("bad timeout", HOOKED(sigtimedwait)(&these.set, &i, &bad));
    const timespec worse = {-1, 0};
    t.told("worse", HOOKED(sigtimedwait)(&these.set, &i, &worse));
}

POSIX_CASE(sigwait_waits_for_what_is_sent) {
    const blocked_signals these{SIGUSR1, SIGUSR2, SIGRTMIN + 1};
    const pthread_t here = ::pthread_self();
    t.beside([=] {
        after_ms(5);
        send_to_thread(here, SIGRTMIN + 1, 7);
    });
    siginfo_t i{};
    t.told("sigwaitinfo", HOOKED(sigwaitinfo)(&these.set, &i) == SIGRTMIN + 1);
    t.told("value", i.si_value.sival_int);
    t.join();
    t.beside([=] {
        after_ms(5);
        ::pthread_kill(here, SIGUSR2);
    });
    int n = 0;
    t.told("sigwait", HOOKED(sigwait)(&these.set, &n));
    t.told("number", n == SIGUSR2);
    t.join();
    const timespec long_time = {5, 0};
    t.beside([=] {
        after_ms(5);
        ::pthread_kill(here, SIGUSR1);
    });
    t.told("sigtimedwait", HOOKED(sigtimedwait)(&these.set, &i, &long_time) == SIGUSR1);
    t.told("from here", i.si_pid == ::getpid());
    t.told("code", i.si_code == SI_QUEUE   ? 1
                   : i.si_code == SI_TKILL ? 2
                   : i.si_code == SI_USER  ? 3
                                           : 4);
    t.join();
}

class hooked_signals : public weft::testing::on_each_driver {};

// Of the process: no other thread of this program may be there that does not block it.
TEST_P(hooked_signals, of_the_process_are_awaited_while_other_fibers_run) {
    const blocked_signals these{SIGUSR1};
    run([&] {
        unsigned turns = 0;
        fiber other([&] {
            while (turns < 5) {
                ++turns;
                ::usleep(1000);
            }
            ::kill(::getpid(), SIGUSR1);
        });
        int n = 0;
        EXPECT_EQ(::sigwait(&these.set, &n), 0);
        EXPECT_EQ(n, SIGUSR1);
        EXPECT_EQ(turns, 5u);
    });
}

TEST_P(hooked_signals, are_each_delivered_to_one_fiber) {
    const blocked_signals these{SIGRTMIN};
    run([&] {
        int sum = 0;
        fiber a[3];
        for (fiber& f : a)
            f = fiber([&] {
                siginfo_t i{};
                EXPECT_EQ(::sigwaitinfo(&these.set, &i), SIGRTMIN);
                sum += i.si_value.sival_int;
            });
        ::usleep(2000);
        for (const int v : {1, 2, 4}) send_to_thread(::pthread_self(), SIGRTMIN, v);
        for (fiber& f : a) f.join();
        EXPECT_EQ(sum, 7);
    });
}

TEST_P(hooked_signals, wait_ends_on_a_stop) {
    const blocked_signals these{SIGUSR1};
    run([&] {
        fiber f([&] {
            int n = 0;
            EXPECT_EQ(::sigwait(&these.set, &n), ECANCELED);
            EXPECT_EQ(::sigwaitinfo(&these.set, nullptr), -1);
            EXPECT_EQ(errno, ECANCELED);
        });
        ::usleep(2000);
        f.request_stop();
        f.join();
    });
}

INSTANTIATE_ON_DRIVERS(hooked_signals);

}  // namespace
