#include "weft/io/signal_set.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "test/io/drivers.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace std::chrono_literals;
using weft::fiber;
using weft::signal_info;
using weft::signal_set;

class signals : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(signals);

void to_all_of_us(int number) { EXPECT_EQ(::kill(::getpid(), number), 0); }

bool blocks(int number) {
    ::sigset_t s;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &s);
    return ::sigismember(&s, number) == 1;
}

TEST_P(signals, report_which_signal_came_and_its_sender) {
    run([] {
        const signal_set s = signal_set::open({SIGUSR1, SIGTERM}).value();
        to_all_of_us(SIGTERM);
        const signal_info i = s.wait().value();
        EXPECT_EQ(i.number, SIGTERM);
        EXPECT_EQ(i.code, SI_USER);
        EXPECT_EQ(i.sender, ::getpid());
        EXPECT_EQ(i.user, ::getuid());
    });
}

TEST_P(signals, report_the_value_sent_with_them) {
    run([] {
        const signal_set s = signal_set::open({SIGRTMIN + 1}).value();
        for (int n : {17, -4}) ASSERT_EQ(::sigqueue(::getpid(), SIGRTMIN + 1, {.sival_int = n}), 0);
        const signal_info first = s.wait().value();
        EXPECT_EQ(first.value, 17);
        EXPECT_EQ(first.code, SI_QUEUE);
        EXPECT_EQ(s.wait().value().value, -4);
    });
}

TEST_P(signals, can_be_waited_for) {
    run([] {
        const signal_set s = signal_set::open({SIGUSR1}).value();
        for (int i = 0; i < 5; ++i) {
            fiber sender([] {
                weft::this_fiber::sleep_for(1ms);
                to_all_of_us(SIGUSR1);
            });
            EXPECT_EQ(s.wait().value().number, SIGUSR1);
            sender.join();
        }
    });
}

TEST_P(signals, are_each_delivered_once) {
    run([] {
        const signal_set s = signal_set::open({SIGUSR1, SIGUSR2}).value();
        to_all_of_us(SIGUSR1);
        to_all_of_us(SIGUSR2);
        const int a = s.wait().value().number;
        const int b = s.wait().value().number;
        EXPECT_EQ(a + b, SIGUSR1 + SIGUSR2);
        EXPECT_EQ(s.wait(weft::now()).error(), std::errc::timed_out);
    });
}

TEST_P(signals, serves_tasks_as_it_serves_fibers) {
    run([] {
        const signal_set s = signal_set::open({SIGUSR1}).value();
        auto next = [&]() -> weft::task<int> {
            co_return (co_await s.async_wait()).value().number;
        };
        to_all_of_us(SIGUSR1);
        EXPECT_EQ(weft::await(next()), SIGUSR1);
    });
}

TEST_P(signals, serves_plain_threads) {
    const signal_set s = signal_set::open({SIGUSR1}).value();
    std::thread waits([&] { EXPECT_EQ(s.wait().value().number, SIGUSR1); });
    run([] {
        weft::this_fiber::sleep_for(1ms);
        to_all_of_us(SIGUSR1);
    });
    waits.join();
}

// A signal for a thread that does not block it: by default it would end the program.
TEST_P(signals, reach_the_set_from_threads_that_started_before_it) {
    if (WEFT_TEST_TSAN) GTEST_SKIP() << "ThreadSanitizer runs handlers later, with its own mask";
    // One signal of the first kind is queued, and all of the other.
    for (const int number : {SIGUSR1, SIGRTMIN + 1}) {
        std::promise<void> begun;
        std::promise<void> handed_back;
        std::thread was_there([&] {
            begun.set_value();
            while (!blocks(number)) std::this_thread::yield();
            handed_back.set_value();
        });
        begun.get_future().wait();
        run([&] {
            const signal_set s = signal_set::open({number}).value();
            to_all_of_us(number);
            handed_back.get_future().wait();
            const signal_info got = s.wait().value();
            EXPECT_EQ(got.number, number);
            EXPECT_EQ(got.sender, ::getpid());
            EXPECT_EQ(got.code, SI_USER);
            EXPECT_EQ(s.wait(weft::now()).error(), std::errc::timed_out);
        });
        was_there.join();
    }
}

TEST_P(signals, a_stop_ends_a_wait) {
    run([] {
        const signal_set s = signal_set::open({SIGUSR1}).value();
        std::error_code how;
        fiber f([&] { how = s.wait().error(); });
        weft::this_fiber::sleep_for(1ms);
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        to_all_of_us(SIGUSR1);
        EXPECT_TRUE(s.wait());
    });
}

TEST_P(signals, close_ends_a_wait) {
    run([] {
        signal_set s = signal_set::open({SIGUSR1}).value();
        std::error_code how;
        fiber f([&] { how = s.wait().error(); });
        weft::this_fiber::sleep_for(1ms);
        s.close();
        f.join();
        EXPECT_EQ(how, weft::errc::closed);
        EXPECT_EQ(s.wait().error(), weft::errc::closed);
    });
}

TEST_P(signals, refuses_what_cannot_be_waited_for) {
    run([] {
        for (int n : {SIGKILL, SIGSTOP, SIGSEGV, SIGABRT, 0, -1, 33, SIGRTMAX + 1})
            EXPECT_EQ(signal_set::open({SIGUSR1, n}).error(), std::errc::invalid_argument) << n;
        const signal_set one = signal_set::open({SIGUSR1}).value();
        EXPECT_EQ(signal_set::open({SIGUSR2, SIGUSR1}).error(), std::errc::device_or_resource_busy);
        EXPECT_TRUE(blocks(SIGUSR1));
        EXPECT_FALSE(blocks(SIGUSR2));
        EXPECT_TRUE(signal_set::open({SIGUSR2}));
    });
}

TEST_P(signals, have_their_former_action_again_after_the_set) {
    static volatile ::sig_atomic_t handled;
    handled = 0;
    struct ::sigaction mine{};
    struct ::sigaction before{};
    mine.sa_handler = [](int) { handled = handled + 1; };
    ASSERT_EQ(::sigaction(SIGUSR1, &mine, &before), 0);
    run([] {
        {
            signal_set s = signal_set::open({SIGUSR1}).value();
            const signal_set same = std::move(s);
            EXPECT_TRUE(blocks(SIGUSR1));
            ::raise(SIGUSR1);
            EXPECT_TRUE(same.wait());
            EXPECT_EQ(handled, 0);
            ::raise(SIGUSR1);
            EXPECT_EQ(handled, 0);
        }
        EXPECT_FALSE(blocks(SIGUSR1));
        EXPECT_EQ(handled, 1);  // the one for which no wait was made
        ::raise(SIGUSR1);
        EXPECT_EQ(handled, 2);
    });
    ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(signals, stay_blocked_if_they_were_blocked_before) {
    ::sigset_t mine;
    ::sigemptyset(&mine);
    ::sigaddset(&mine, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &mine, nullptr);
    run([] { EXPECT_TRUE(signal_set::open({SIGUSR1, SIGUSR2})); });
    EXPECT_TRUE(blocks(SIGUSR2));
    EXPECT_FALSE(blocks(SIGUSR1));
    ::pthread_sigmask(SIG_UNBLOCK, &mine, nullptr);
}

}  // namespace
