#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "test/posix/in_c.hpp"
#include "weft/fiber/fiber.hpp"

namespace {

using weft::testing::begin_in_c;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;

TEST(weft_attr, returns_the_values_that_were_set) {
    weft_attr_t a;
    ASSERT_EQ(weft_attr_init(&a), 0);
    std::size_t bytes = 0;
    EXPECT_EQ(weft_attr_getstacksize(&a, &bytes), 0);
    EXPECT_EQ(bytes, weft::default_stack_bytes);
    EXPECT_EQ(weft_attr_setstacksize(&a, 1 << 20), 0);
    EXPECT_EQ(weft_attr_getstacksize(&a, &bytes), 0);
    EXPECT_EQ(bytes, std::size_t{1} << 20);
    EXPECT_EQ(weft_attr_setstacksize(&a, 100), EINVAL);
    int state = -1;
    EXPECT_EQ(weft_attr_getdetachstate(&a, &state), 0);
    EXPECT_EQ(state, WEFT_CREATE_JOINABLE);
    EXPECT_EQ(weft_attr_setdetachstate(&a, WEFT_CREATE_DETACHED), 0);
    EXPECT_EQ(weft_attr_getdetachstate(&a, &state), 0);
    EXPECT_EQ(state, WEFT_CREATE_DETACHED);
    EXPECT_EQ(weft_attr_setdetachstate(&a, 2), EINVAL);
    EXPECT_EQ(weft_attr_setname(&a, "0123456789012345678901234567890"), 0);
    EXPECT_EQ(weft_attr_setname(&a, "01234567890123456789012345678901"), ERANGE);
    char name[33];
    name[32] = 'x';
    EXPECT_EQ(weft_attr_getname(&a, name, 31), ERANGE);
    EXPECT_EQ(weft_attr_getname(&a, name, 32), 0);
    EXPECT_STREQ(name, "0123456789012345678901234567890");
    EXPECT_EQ(name[32], 'x') << "no further than it was told";
    EXPECT_EQ(weft_attr_destroy(&a), 0);
    EXPECT_EQ(weft_attr_destroy(&a), EINVAL);
}

TEST(weft_attr, applies_to_the_fiber) {
    run_in_c([] {
        weft_attr_t a;
        weft_attr_init(&a);
        weft_attr_setstacksize(&a, 1 << 20);
        weft_attr_setname(&a, "deep");
        auto f = [] {
            volatile char much[700 * 1024];  // more than there is by default
            for (std::size_t i = 0; i < sizeof much; i += 1024) much[i] = 1;
            EXPECT_EQ(weft::this_fiber::name(), "deep");
            EXPECT_EQ(weft_setname("other"), 0);
            EXPECT_EQ(weft::this_fiber::name(), "other");
        };
        joined_in_c(begin_in_c(f, &a));
        weft_attr_destroy(&a);
    });
    EXPECT_EQ(weft_setname("thread"), ESRCH);
}

TEST(weft_attr, detached_makes_the_fiber_unjoinable) {
    bool ran = false;
    run_in_c([&] {
        weft_attr_t a;
        weft_attr_init(&a);
        weft_attr_setdetachstate(&a, WEFT_CREATE_DETACHED);
        auto f = [&] { ran = true; };
        const weft_t t = begin_in_c(f, &a);
        EXPECT_EQ(weft_join(t, nullptr), EINVAL);
        weft_yield();
        EXPECT_EQ(weft_join(t, nullptr), ESRCH);
    });
    EXPECT_TRUE(ran);
}

TEST(weft_attr, shared_stacks_serve_several_waiting_fibers) {
    weft_stacks_t* stacks = nullptr;
    EXPECT_EQ(weft_stacks_create(&stacks, 0, 1 << 16), EINVAL);
    ASSERT_EQ(weft_stacks_create(&stacks, 1, 128 * 1024), 0);
    static weft_mutex_t lock = WEFT_MUTEX_INITIALIZER;
    static weft_cond_t turn = WEFT_COND_INITIALIZER;
    static int whose;
    whose = 0;
    run_in_c([&] {
        weft_attr_t a;
        weft_attr_init(&a);
        weft_attr_setstacks(&a, stacks);
        weft_stacks_t* found = nullptr;
        EXPECT_EQ(weft_attr_getstacks(&a, &found), 0);
        EXPECT_EQ(found, stacks);
        static int next;
        next = 0;
        auto f = [] {
            const int mine = next++;
            char local[64];
            std::memset(local, 'a' + mine, sizeof local);
            for (int i = 0; i < 5; ++i) {
                weft_mutex_lock(&lock);
                while (whose != mine) weft_cond_wait(&turn, &lock);
                whose = (whose + 1) % 3;
                weft_cond_broadcast(&turn);
                weft_mutex_unlock(&lock);
                weft_usleep(100);
                for (const char c : local) EXPECT_EQ(c, 'a' + mine);
            }
        };
        weft_t all[3];
        for (weft_t& t : all) t = begin_in_c(f, &a);
        EXPECT_EQ(weft_stacks_destroy(stacks), EBUSY);
        for (weft_t t : all) joined_in_c(t);
    });
    EXPECT_EQ(weft_stacks_destroy(stacks), 0);
}

// The library's loop ends them while this thread makes more.
TEST(weft_attr, shared_stacks_are_unused_once_a_thread_has_joined) {
    weft_stacks_t* stacks = nullptr;
    ASSERT_EQ(weft_stacks_create(&stacks, 4, 65536), 0);
    weft_attr_t attr;
    weft_attr_init(&attr);
    weft_attr_setstacks(&attr, stacks);
    std::vector<weft_t> all(1000);
    for (int round = 0; round < 20; ++round) {
        for (weft_t& t : all)
            ASSERT_EQ(weft_create(&t, &attr, [](void* a) { return a; }, nullptr), 0);
        for (const weft_t t : all) ASSERT_EQ(weft_join(t, nullptr), 0);
    }
    EXPECT_EQ(weft_stacks_destroy(stacks), 0);
    weft_attr_destroy(&attr);
}

TEST(weft_attr, shared_stacks_are_rejected_on_a_pool) {
    static weft_stacks_t* stacks = nullptr;
    ASSERT_EQ(weft_stacks_create(&stacks, 1, 128 * 1024), 0);
    EXPECT_EQ(0, weft_run_on(
                     1,
                     [](void*) -> void* {
                         weft_attr_t a;
                         weft_attr_init(&a);
                         weft_attr_setstacks(&a, stacks);
                         weft_t t;
                         EXPECT_EQ(weft_create(
                                       &t, &a, [](void*) -> void* { return nullptr; }, nullptr),
                                   EINVAL);
                         return nullptr;
                     },
                     nullptr, nullptr));
    EXPECT_EQ(weft_stacks_destroy(stacks), 0);
}

}  // namespace
