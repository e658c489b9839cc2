#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "test/posix/in_c.hpp"

namespace {

using weft::testing::as_pointer;
using weft::testing::begin_in_c;
using weft::testing::in_ms;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;

struct mailbox {
    weft_mutex_t lock = WEFT_MUTEX_INITIALIZER;
    weft_cond_t filled = WEFT_COND_INITIALIZER;
    std::deque<int> all;

    void put(int n) {
        EXPECT_EQ(weft_mutex_lock(&lock), 0);
        all.push_back(n);
        EXPECT_EQ(weft_cond_signal(&filled), 0);
        EXPECT_EQ(weft_mutex_unlock(&lock), 0);
    }
    int take() {
        EXPECT_EQ(weft_mutex_lock(&lock), 0);
        while (all.empty()) EXPECT_EQ(weft_cond_wait(&filled, &lock), 0);
        const int n = all.front();
        all.pop_front();
        EXPECT_EQ(weft_mutex_unlock(&lock), 0);
        return n;
    }
};

TEST(weft_cond, wakes_a_waiter_with_the_mutex_locked) {
    run_in_c([] {
        mailbox box;
        auto takes = [&] {
            int sum = 0;
            for (int i = 0; i < 100; ++i) sum += box.take();
            return as_pointer(sum);
        };
        const weft_t t = begin_in_c(takes);
        for (int i = 0; i < 100; ++i) {
            box.put(i);
            if (i % 7 == 0) weft_yield();
        }
        EXPECT_EQ(joined_in_c(t), as_pointer(4950));
        EXPECT_EQ(weft_cond_destroy(&box.filled), 0);
        EXPECT_EQ(weft_cond_signal(&box.filled), EINVAL);
        EXPECT_EQ(weft_cond_destroy(&box.filled), EINVAL);
    });
}

TEST(weft_cond, works_between_fibers_and_threads) {
    mailbox there, back;
    auto echoes = [&] {
        for (int i = 0; i < 200; ++i) back.put(there.take());
    };
    const weft_t t = begin_in_c(echoes);
    for (int i = 0; i < 200; ++i) {
        there.put(i);
        EXPECT_EQ(back.take(), i);
    }
    joined_in_c(t);
}

TEST(weft_cond, broadcast_wakes_all) {
    run_in_c([] {
        weft_mutex_t m = WEFT_MUTEX_INITIALIZER;
        weft_cond_t c = WEFT_COND_INITIALIZER;
        bool go = false;
        int woken = 0;
        auto waits = [&] {
            weft_mutex_lock(&m);
            while (!go) weft_cond_wait(&c, &m);
            ++woken;
            weft_mutex_unlock(&m);
        };
        weft_t all[5];
        for (weft_t& t : all) t = begin_in_c(waits);
        weft_yield();
        weft_mutex_lock(&m);
        go = true;
        EXPECT_EQ(weft_cond_broadcast(&c), 0);
        weft_mutex_unlock(&m);
        for (weft_t t : all) joined_in_c(t);
        EXPECT_EQ(woken, 5);
    });
}

TEST(weft_cond, times_out_by_its_own_clock) {
    run_in_c([] {
        for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
            weft_condattr_t attr;
            EXPECT_EQ(weft_condattr_init(&attr), 0);
            EXPECT_EQ(weft_condattr_setclock(&attr, clock), 0);
            EXPECT_EQ(weft_condattr_setclock(&attr, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
            clockid_t found = -1;
            EXPECT_EQ(weft_condattr_getclock(&attr, &found), 0);
            EXPECT_EQ(found, clock);
            weft_cond_t c;
            EXPECT_EQ(weft_cond_init(&c, &attr), 0);
            EXPECT_EQ(weft_condattr_destroy(&attr), 0);
            weft_mutex_t m = WEFT_MUTEX_INITIALIZER;
            weft_mutex_lock(&m);
            const timespec soon = in_ms(3, clock);
            const auto began = std::chrono::steady_clock::now();
            EXPECT_EQ(weft_cond_timedwait(&c, &m, &soon), ETIMEDOUT);
            EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(2));
            const timespec steady = in_ms(1, CLOCK_MONOTONIC);
            EXPECT_EQ(weft_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &steady), ETIMEDOUT);
            const timespec wrong{0, 2'000'000'000};
            EXPECT_EQ(weft_cond_timedwait(&c, &m, &wrong), EINVAL);
            EXPECT_EQ(weft_mutex_unlock(&m), 0) << "it is held after each";
        }
    });
}

TEST(weft_cond, rejects_a_wait_without_the_mutex_locked) {
    run_in_c([] {
        weft_mutex_t m = WEFT_MUTEX_INITIALIZER;
        weft_cond_t c = WEFT_COND_INITIALIZER;
        EXPECT_EQ(weft_cond_wait(&c, &m), EPERM);
    });
}

TEST(weft_cond, relocks_a_recursive_mutex_to_its_former_depth) {
    run_in_c([] {
        weft_mutex_t m = WEFT_RECURSIVE_MUTEX_INITIALIZER;
        weft_cond_t c = WEFT_COND_INITIALIZER;
        auto signals = [&] {
            EXPECT_EQ(weft_mutex_trylock(&m), 0) << "all of it is given up";
            weft_cond_signal(&c);
            weft_mutex_unlock(&m);
        };
        weft_mutex_lock(&m);
        weft_mutex_lock(&m);
        const weft_t t = begin_in_c(signals);
        EXPECT_EQ(weft_cond_wait(&c, &m), 0);
        EXPECT_EQ(weft_mutex_unlock(&m), 0);
        EXPECT_EQ(weft_mutex_unlock(&m), 0);
        EXPECT_EQ(weft_mutex_unlock(&m), EPERM);
        joined_in_c(t);
    });
}

}  // namespace
