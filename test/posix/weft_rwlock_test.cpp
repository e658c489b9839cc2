#include <gtest/gtest.h>

#include <string>

#include "test/posix/in_c.hpp"

namespace {

using weft::testing::begin_in_c;
using weft::testing::in_ms;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;

TEST(weft_rwlock, admits_many_readers_or_one_writer) {
    run_in_c([] {
        weft_rwlock_t l = WEFT_RWLOCK_INITIALIZER;
        EXPECT_EQ(weft_rwlock_rdlock(&l), 0);
        auto other = [&] {
            EXPECT_EQ(weft_rwlock_tryrdlock(&l), 0);
            EXPECT_EQ(weft_rwlock_trywrlock(&l), EBUSY);
            EXPECT_EQ(weft_rwlock_destroy(&l), EBUSY);
            EXPECT_EQ(weft_rwlock_unlock(&l), 0);
        };
        joined_in_c(begin_in_c(other));
        EXPECT_EQ(weft_rwlock_unlock(&l), 0);

        EXPECT_EQ(weft_rwlock_wrlock(&l), 0);
        auto shut_out = [&] {
            EXPECT_EQ(weft_rwlock_tryrdlock(&l), EBUSY);
            EXPECT_EQ(weft_rwlock_trywrlock(&l), EBUSY);
            EXPECT_EQ(weft_rwlock_unlock(&l), EPERM);
            const timespec soon = in_ms(1);
            EXPECT_EQ(weft_rwlock_timedrdlock(&l, &soon), ETIMEDOUT);
            const timespec then = in_ms(1);
            EXPECT_EQ(weft_rwlock_timedwrlock(&l, &then), ETIMEDOUT);
            const timespec wrong{0, -1};
            EXPECT_EQ(weft_rwlock_timedwrlock(&l, &wrong), EINVAL);
        };
        joined_in_c(begin_in_c(shut_out));
        EXPECT_EQ(weft_rwlock_wrlock(&l), EDEADLK);
        EXPECT_EQ(weft_rwlock_rdlock(&l), EDEADLK);
        EXPECT_EQ(weft_rwlock_unlock(&l), 0);
        EXPECT_EQ(weft_rwlock_unlock(&l), EPERM);

        EXPECT_EQ(weft_rwlock_destroy(&l), 0);
        EXPECT_EQ(weft_rwlock_rdlock(&l), EINVAL);
        EXPECT_EQ(weft_rwlock_trywrlock(&l), EINVAL);
        EXPECT_EQ(weft_rwlock_unlock(&l), EINVAL);
        EXPECT_EQ(weft_rwlock_init(&l, &l), EINVAL);
        EXPECT_EQ(weft_rwlock_init(&l, nullptr), 0);
        const timespec late = in_ms(60'000);
        EXPECT_EQ(weft_rwlock_timedwrlock(&l, &late), 0);
        EXPECT_EQ(weft_rwlock_unlock(&l), 0);
        EXPECT_EQ(weft_rwlock_timedrdlock(&l, &late), 0);
        EXPECT_EQ(weft_rwlock_unlock(&l), 0);
    });
}

TEST(weft_rwlock, admits_a_writer_before_later_readers) {
    run_in_c([] {
        weft_rwlock_t l = WEFT_RWLOCK_INITIALIZER;
        std::string order;
        auto writes = [&] {
            weft_rwlock_wrlock(&l);
            order += 'w';
            weft_rwlock_unlock(&l);
        };
        auto reads = [&] {
            weft_rwlock_rdlock(&l);
            order += 'r';
            weft_rwlock_unlock(&l);
        };
        weft_rwlock_rdlock(&l);
        const weft_t w = begin_in_c(writes);
        const weft_t r = begin_in_c(reads);
        weft_yield();
        EXPECT_EQ(order, "");
        weft_rwlock_unlock(&l);
        joined_in_c(w);
        joined_in_c(r);
        EXPECT_EQ(order, "wr");
    });
}

}  // namespace
