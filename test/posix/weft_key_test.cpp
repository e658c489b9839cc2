#include <gtest/gtest.h>
#include <limits.h>

#include <string>
#include <thread>
#include <vector>

#include "test/posix/in_c.hpp"

namespace {

using weft::testing::as_pointer;
using weft::testing::begin_in_c;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;

TEST(weft_key, has_a_value_per_fiber_and_thread) {
    weft_key_t key;
    ASSERT_EQ(weft_key_create(&key, nullptr), 0);
    auto f = [&] {
        EXPECT_EQ(weft_getspecific(key), nullptr);
        void* const mine = as_pointer(static_cast<std::intptr_t>(weft_self()));
        EXPECT_EQ(weft_setspecific(key, mine), 0);
        weft_yield();
        EXPECT_EQ(weft_getspecific(key), mine);
        EXPECT_EQ(weft_setspecific(key, nullptr), 0);
        EXPECT_EQ(weft_getspecific(key), nullptr);
    };
    EXPECT_EQ(weft_setspecific(key, &key), 0);
    run_in_c([&] {
        weft_t all[3];
        for (weft_t& t : all) t = begin_in_c(f);
        for (weft_t t : all) joined_in_c(t);
    });
    EXPECT_EQ(weft_getspecific(key), &key);
    std::thread([&] { EXPECT_EQ(weft_getspecific(key), nullptr); }).join();
    EXPECT_EQ(weft_key_delete(key), 0);
    EXPECT_EQ(weft_key_delete(key), EINVAL);
    EXPECT_EQ(weft_setspecific(key, &key), EINVAL);
    EXPECT_EQ(weft_getspecific(key), nullptr);
    EXPECT_EQ(weft_getspecific(WEFT_KEYS_MAX), nullptr);
    EXPECT_EQ(weft_setspecific(WEFT_KEYS_MAX, nullptr), EINVAL);
}

TEST(weft_key, destroys_its_values_however_a_fiber_ends) {
    run_in_c([] {
        static std::string destroyed;
        destroyed.clear();
        weft_key_t a, b;
        const auto destroy = [](void* p) { destroyed += *static_cast<const char*>(p); };
        ASSERT_EQ(weft_key_create(&a, destroy), 0);
        ASSERT_EQ(weft_key_create(&b, destroy), 0);
        auto returns = [&] {
            weft_setspecific(a, "a");
            weft_setspecific(b, "b");
        };
        auto exits = [&] {
            weft_setspecific(a, "x");
            weft_exit(nullptr);
        };
        auto is_cancelled = [&] {
            weft_setspecific(b, "c");
            weft_setspecific(a, "z");
            weft_setspecific(a, nullptr);
            weft_sleep(3600);
        };
        joined_in_c(begin_in_c(returns));
        EXPECT_EQ(destroyed, "ba");
        joined_in_c(begin_in_c(exits));
        EXPECT_EQ(destroyed, "bax");
        const weft_t t = begin_in_c(is_cancelled);
        weft_yield();
        weft_cancel(t);
        joined_in_c(t);
        EXPECT_EQ(destroyed, "baxc");
        EXPECT_EQ(weft_key_delete(a), 0);
        EXPECT_EQ(weft_key_delete(b), 0);
    });
}

TEST(weft_key, set_in_its_destructor_calls_the_destructor_again) {
    run_in_c([] {
        static weft_key_t key;
        static int calls_of_it;
        calls_of_it = 0;
        ASSERT_EQ(weft_key_create(&key,
                                  [](void* p) {
                                      EXPECT_EQ(weft_getspecific(key), nullptr);
                                      if (++calls_of_it < 3) weft_setspecific(key, p);
                                  }),
                  0);
        auto f = [] { weft_setspecific(key, &key); };
        joined_in_c(begin_in_c(f));
        EXPECT_EQ(calls_of_it, 3);
        EXPECT_EQ(weft_key_delete(key), 0);
    });
}

// As a thread's: a value that is set again after so many iterations is dropped, without a report.
TEST(weft_key, has_four_destructor_rounds_when_set_again) {
    static weft_key_t again;
    static weft_key_t other;
    static int calls;
    static int calls_of_other;
    calls = calls_of_other = 0;
    ASSERT_EQ(weft_key_create(&again,
                              [](void* v) {
                                  ++calls;
                                  EXPECT_EQ(weft_getspecific(again), nullptr);
                                  weft_setspecific(again, v);
                                  weft_setspecific(other, v);
                                  EXPECT_EQ(weft_getspecific(again), v);
                              }),
              0);
    ASSERT_EQ(weft_key_create(&other, [](void*) { ++calls_of_other; }), 0);
    auto sets = [] { EXPECT_EQ(weft_setspecific(again, &again), 0); };
    ::testing::internal::CaptureStderr();
    run_in_c([&] { joined_in_c(begin_in_c(sets)); });
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(calls, PTHREAD_DESTRUCTOR_ITERATIONS);
    EXPECT_GE(calls_of_other, PTHREAD_DESTRUCTOR_ITERATIONS - 1);
    calls = 0;
    std::thread(sets).join();
    EXPECT_EQ(calls, PTHREAD_DESTRUCTOR_ITERATIONS);
    weft_key_delete(again);
    weft_key_delete(other);
}

TEST(weft_key, deleted_destroys_nothing_and_its_successor_is_empty) {
    run_in_c([] {
        static int destroyed;
        destroyed = 0;
        weft_key_t old, next;
        ASSERT_EQ(weft_key_create(&old, [](void*) { ++destroyed; }), 0);
        auto f = [&] {
            weft_setspecific(old, &old);
            weft_key_delete(old);
            ASSERT_EQ(weft_key_create(&next, [](void*) { ++destroyed; }), 0);
            EXPECT_EQ(next, old);
            EXPECT_EQ(weft_getspecific(next), nullptr);
        };
        joined_in_c(begin_in_c(f));
        EXPECT_EQ(destroyed, 0);
        weft_key_delete(next);
    });
}

TEST(weft_key, create_returns_EAGAIN_when_none_are_left) {
    std::vector<weft_key_t> all;
    weft_key_t k;
    int error = 0;
    while ((error = weft_key_create(&k, nullptr)) == 0) all.push_back(k);
    EXPECT_EQ(error, EAGAIN);
    EXPECT_LE(all.size(), std::size_t{WEFT_KEYS_MAX});
    EXPECT_GT(all.size(), std::size_t{WEFT_KEYS_MAX} / 2);
    for (weft_key_t each : all) EXPECT_EQ(weft_key_delete(each), 0);
}

}  // namespace
