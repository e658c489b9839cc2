#include <gtest/gtest.h>

#include <thread>

#include "test/posix/in_c.hpp"

namespace {

using weft::testing::begin_in_c;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;

TEST(weft_barrier, releases_all_at_the_last_arrival_and_marks_one) {
    run_in_c([] {
        weft_barrier_t b;
        EXPECT_EQ(weft_barrier_init(&b, nullptr, 0), EINVAL);
        EXPECT_EQ(weft_barrier_init(&b, &b, 3), EINVAL);
        ASSERT_EQ(weft_barrier_init(&b, nullptr, 3), 0);
        int arrived = 0, told = 0;
        auto f = [&] {
            for (int round = 1; round <= 20; ++round) {
                ++arrived;
                const int how = weft_barrier_wait(&b);
                EXPECT_TRUE(how == 0 || how == WEFT_BARRIER_SERIAL_FIBER);
                told += how == WEFT_BARRIER_SERIAL_FIBER ? 1 : 0;
                EXPECT_GE(arrived, 3 * round);
                EXPECT_EQ(told >= round, true);
                weft_barrier_wait(&b);
            }
        };
        weft_t all[3];
        for (weft_t& t : all) t = begin_in_c(f);
        for (weft_t t : all) joined_in_c(t);
        EXPECT_EQ(told, 20);
        EXPECT_EQ(weft_barrier_destroy(&b), 0);
        EXPECT_EQ(weft_barrier_destroy(&b), EINVAL);
        EXPECT_EQ(weft_barrier_wait(&b), EINVAL);
    });
}

TEST(weft_barrier, works_between_fibers_and_threads) {
    weft_barrier_t b;
    ASSERT_EQ(weft_barrier_init(&b, nullptr, 3), 0);
    auto f = [&] {
        for (int i = 0; i < 100; ++i) weft_barrier_wait(&b);
    };
    const weft_t t = begin_in_c(f);
    std::thread thread(f);
    f();
    thread.join();
    joined_in_c(t);
    EXPECT_EQ(weft_barrier_destroy(&b), 0);
}

int calls;

TEST(weft_once, runs_in_the_first_caller_while_the_others_wait) {
    calls = 0;
    run_in_c([] {
        weft_once_t once = WEFT_ONCE_INIT;
        auto f = [&] {
            EXPECT_EQ(weft_once(&once,
                                [] {
                                    weft_usleep(500);
                                    ++calls;
                                }),
                      0);
            EXPECT_EQ(calls, 1);
        };
        weft_t all[3];
        for (weft_t& t : all) t = begin_in_c(f);
        for (weft_t t : all) joined_in_c(t);
    });
}

TEST(weft_once, runs_in_the_next_caller_if_the_first_is_cancelled) {
    calls = 0;
    run_in_c([] {
        static weft_once_t once = WEFT_ONCE_INIT;
        auto f = [] {
            weft_once(&once, [] {
                if (calls++ == 0) weft_sleep(3600);
            });
        };
        const weft_t first = begin_in_c(f);
        const weft_t second = begin_in_c(f);
        weft_yield();
        EXPECT_EQ(weft_cancel(first), 0);
        EXPECT_EQ(joined_in_c(first), WEFT_CANCELED);
        EXPECT_EQ(joined_in_c(second), nullptr);
        EXPECT_EQ(calls, 2);
    });
}

}  // namespace
