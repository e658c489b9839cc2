#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "test/posix/in_c.hpp"

namespace {

using weft::testing::begin_in_c;
using weft::testing::in_ms;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;

weft_mutex_t mutex_of_kind(int kind) {
    weft_mutexattr_t attr;
    EXPECT_EQ(weft_mutexattr_init(&attr), 0);
    EXPECT_EQ(weft_mutexattr_settype(&attr, kind), 0);
    int found = -1;
    EXPECT_EQ(weft_mutexattr_gettype(&attr, &found), 0);
    EXPECT_EQ(found, kind);
    weft_mutex_t m;
    EXPECT_EQ(weft_mutex_init(&m, &attr), 0);
    EXPECT_EQ(weft_mutexattr_destroy(&attr), 0);
    return m;
}

TEST(weft_mutex, is_owned_by_one_at_a_time_in_order_of_arrival) {
    run_in_c([] {
        weft_mutex_t m = WEFT_MUTEX_INITIALIZER;
        std::vector<int> order;
        int next = 0;
        auto f = [&] {
            const int mine = next++;
            weft_mutex_lock(&m);
            weft_yield();
            order.push_back(mine);
            weft_mutex_unlock(&m);
        };
        EXPECT_EQ(weft_mutex_lock(&m), 0);
        weft_t all[4];
        for (weft_t& t : all) t = begin_in_c(f);
        weft_yield();
        EXPECT_TRUE(order.empty());
        EXPECT_EQ(weft_mutex_unlock(&m), 0);
        for (weft_t t : all) joined_in_c(t);
        EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
        EXPECT_EQ(weft_mutex_destroy(&m), 0);
    });
}

TEST(weft_mutex, is_busy_and_cannot_be_destroyed_while_locked) {
    run_in_c([] {
        weft_mutex_t m = WEFT_MUTEX_INITIALIZER;
        EXPECT_EQ(weft_mutex_lock(&m), 0);
        auto f = [&] {
            EXPECT_EQ(weft_mutex_trylock(&m), EBUSY);
            EXPECT_EQ(weft_mutex_destroy(&m), EBUSY);
            EXPECT_EQ(weft_mutex_unlock(&m), EPERM);
        };
        joined_in_c(begin_in_c(f));
        EXPECT_EQ(weft_mutex_unlock(&m), 0);
        EXPECT_EQ(weft_mutex_unlock(&m), EPERM);
        EXPECT_EQ(weft_mutex_destroy(&m), 0);
        EXPECT_EQ(weft_mutex_lock(&m), EINVAL);
        EXPECT_EQ(weft_mutex_trylock(&m), EINVAL);
        EXPECT_EQ(weft_mutex_unlock(&m), EINVAL);
        EXPECT_EQ(weft_mutex_destroy(&m), EINVAL);
        EXPECT_EQ(weft_mutex_init(&m, nullptr), 0);
        EXPECT_EQ(weft_mutex_lock(&m), 0);
        EXPECT_EQ(weft_mutex_unlock(&m), 0);
    });
}

TEST(weft_mutex, returns_EDEADLK_on_relock_if_not_recursive) {
    run_in_c([] {
        for (const int kind : {WEFT_MUTEX_NORMAL, WEFT_MUTEX_ERRORCHECK}) {
            weft_mutex_t m = mutex_of_kind(kind);
            EXPECT_EQ(weft_mutex_lock(&m), 0);
            EXPECT_EQ(weft_mutex_lock(&m), EDEADLK);
            EXPECT_EQ(weft_mutex_trylock(&m), EBUSY);
            const timespec late = in_ms(60'000);
            EXPECT_EQ(weft_mutex_timedlock(&m, &late), EDEADLK);
            EXPECT_EQ(weft_mutex_unlock(&m), 0);
            EXPECT_EQ(weft_mutex_destroy(&m), 0);
        }
    });
}

TEST(weft_mutex, recursive_is_free_after_as_many_unlocks) {
    run_in_c([] {
        weft_mutex_t initialised = WEFT_RECURSIVE_MUTEX_INITIALIZER;
        weft_mutex_t made = mutex_of_kind(WEFT_MUTEX_RECURSIVE);
        for (weft_mutex_t* m : {&initialised, &made}) {
            EXPECT_EQ(weft_mutex_lock(m), 0);
            EXPECT_EQ(weft_mutex_lock(m), 0);
            EXPECT_EQ(weft_mutex_trylock(m), 0);
            auto other = [&] { return weft_mutex_trylock(m) == EBUSY ? m : nullptr; };
            for (int i = 0; i < 3; ++i) {
                EXPECT_NE(joined_in_c(begin_in_c(other)), nullptr);
                EXPECT_EQ(weft_mutex_unlock(m), 0);
            }
            EXPECT_EQ(weft_mutex_unlock(m), EPERM);
            EXPECT_EQ(weft_mutex_destroy(m), 0);
        }
    });
}

TEST(weft_mutex, times_out_by_either_clock) {
    run_in_c([] {
        weft_mutex_t m = WEFT_MUTEX_INITIALIZER;
        weft_mutex_lock(&m);
        auto f = [&] {
            const timespec real = in_ms(2);
            EXPECT_EQ(weft_mutex_timedlock(&m, &real), ETIMEDOUT);
            const timespec steady = in_ms(2, CLOCK_MONOTONIC);
            EXPECT_EQ(weft_mutex_clocklock(&m, CLOCK_MONOTONIC, &steady), ETIMEDOUT);
            const timespec gone{0, 0};
            EXPECT_EQ(weft_mutex_timedlock(&m, &gone), ETIMEDOUT);
            const timespec wrong{0, -1};
            EXPECT_EQ(weft_mutex_timedlock(&m, &wrong), EINVAL);
            EXPECT_EQ(weft_mutex_clocklock(&m, CLOCK_PROCESS_CPUTIME_ID, &real), EINVAL);
        };
        joined_in_c(begin_in_c(f));
        weft_mutex_unlock(&m);
        const timespec wrong{0, -1};
        EXPECT_EQ(weft_mutex_timedlock(&m, &wrong), 0) << "it is free: the time is not looked at";
        weft_mutex_unlock(&m);
    });
}

TEST(weft_mutex, works_between_fibers_and_threads) {
    weft_mutex_t m = WEFT_MUTEX_INITIALIZER;
    int count = 0;
    auto add = [&] {
        for (int i = 0; i < 500; ++i) {
            EXPECT_EQ(weft_mutex_lock(&m), 0);
            ++count;
            EXPECT_EQ(weft_mutex_unlock(&m), 0);
        }
    };
    weft_t fibers[2];
    for (weft_t& t : fibers) t = begin_in_c(add);
    std::thread thread(add);
    add();
    thread.join();
    for (weft_t t : fibers) joined_in_c(t);
    EXPECT_EQ(count, 2000);
}

TEST(weft_mutexattr, rejects_unknown_types) {
    weft_mutexattr_t attr;
    weft_mutexattr_init(&attr);
    EXPECT_EQ(weft_mutexattr_settype(&attr, 3), EINVAL);
    EXPECT_EQ(weft_mutexattr_settype(&attr, -1), EINVAL);
}

TEST(weft_mutex_misuse, fiber_that_ends_as_owner_aborts) {
    EXPECT_DEATH(run_in_c([] {
                     static weft_mutex_t m = WEFT_MUTEX_INITIALIZER;
                     weft_mutex_lock(&m);
                 }),
                 "a fiber ended and holds a mutex");
}

}  // namespace
