#include "weft/hook/detail/fiber_keys.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>

#include <atomic>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"

extern "C" pthread_key_t key_of_library();

namespace {

using namespace weft;

int destroyed_values;

class fiber_keys : public ::testing::Test {
protected:
    void SetUp() override {
        destroyed_values = 0;
        ASSERT_EQ(::pthread_key_create(&key_, [](void*) { ++destroyed_values; }), 0);
    }
    void TearDown() override { ::pthread_key_delete(key_); }
    pthread_key_t key_;
};

TEST_F(fiber_keys, hold_a_value_per_fiber) {
    int of_thread = 0;
    ::pthread_setspecific(key_, &of_thread);
    run([&] {
        EXPECT_EQ(::pthread_getspecific(key_), nullptr);
        std::vector<fiber> all;
        std::vector<int> values(100);
        for (int& v : values)
            all.emplace_back([&] {
                EXPECT_EQ(::pthread_getspecific(key_), nullptr);
                ::pthread_setspecific(key_, &v);
                for (int i = 0; i < 5; ++i) {
                    this_fiber::yield();
                    EXPECT_EQ(::pthread_getspecific(key_), &v);
                }
            });
        for (auto& f : all) f.join();
        EXPECT_EQ(destroyed_values, 100);
    });
    EXPECT_EQ(::pthread_getspecific(key_), &of_thread);
    ::pthread_setspecific(key_, nullptr);
}

TEST_F(fiber_keys, hold_values_with_hooks_on_or_off) {
    run([&] {
        int mine = 0;
        ::pthread_setspecific(key_, &mine);
        const hook::disabled_scope off;
        EXPECT_EQ(::pthread_getspecific(key_), &mine);
    });
}

TEST_F(fiber_keys, destroy_the_values_of_a_killed_fiber) {
    {
        loop l;
        fiber f(
            [&] {
                int mine = 0;
                ::pthread_setspecific(key_, &mine);
                this_fiber::sleep_for(std::chrono::hours(1));
            },
            {.on = l});
        static_cast<void>(l.run_once(steady_now()));
        f.detach();
    }
    EXPECT_EQ(destroyed_values, 1);
}

TEST(fiber_keys_of_fibers, run_as_many_destructor_rounds_as_on_a_thread) {
    static pthread_key_t again;
    static std::atomic<int> calls;
    ASSERT_EQ(::pthread_key_create(&again,
                                   [](void* v) {
                                       ++calls;
                                       EXPECT_EQ(::pthread_getspecific(again), nullptr);
                                       EXPECT_EQ(::pthread_setspecific(again, v), 0);
                                   }),
              0);
    const auto sets = [] { EXPECT_EQ(::pthread_setspecific(again, &again), 0); };
    calls = 0;
    std::thread(sets).join();
    const int of_thread = calls;
    calls = 0;
    ::testing::internal::CaptureStderr();
    run([&] { fiber(sets).join(); });
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(calls, of_thread);
    EXPECT_EQ(calls, PTHREAD_DESTRUCTOR_ITERATIONS);
    ::pthread_key_delete(again);
}

// An allocator, or a sanitizer, that makes a key late: in the first call of a thread that it meets.
TEST(fiber_keys_of_threads, are_those_of_the_malloc_library) {
    EXPECT_TRUE(hook::makes_keys_of_threads(::dlsym(RTLD_DEFAULT, "malloc")));
    EXPECT_FALSE(hook::makes_keys_of_threads(reinterpret_cast<const void*>(&key_of_library)));
    EXPECT_FALSE(hook::makes_keys_of_threads(reinterpret_cast<const void*>(&hook::self_check)));
    EXPECT_FALSE(hook::makes_keys_of_threads(nullptr));
}

TEST_F(fiber_keys, are_empty_when_created_again) {
    run([&] {
        int mine = 0;
        ::pthread_setspecific(key_, &mine);
        ::pthread_key_delete(key_);
        pthread_key_t next;
        ASSERT_EQ(::pthread_key_create(&next, nullptr), 0);
        EXPECT_EQ(next, key_);
        EXPECT_EQ(::pthread_getspecific(next), nullptr);
    });
    EXPECT_EQ(destroyed_values, 0);
}

// A malloc may store its per-thread state there.
TEST(fiber_keys_of_threads, are_those_a_library_created_before_program_start) {
    run([] {
        int value = 0;
        fiber([&] { EXPECT_EQ(::pthread_setspecific(key_of_library(), &value), 0); }).join();
        EXPECT_EQ(::pthread_getspecific(key_of_library()), &value);
        ::pthread_setspecific(key_of_library(), nullptr);
    });
}

TEST_F(fiber_keys, cost_no_memory_without_a_value) {
    run([&] {
        fiber([&] {
            EXPECT_EQ(::pthread_setspecific(key_, nullptr), 0);
            EXPECT_EQ(::pthread_getspecific(key_), nullptr);
        }).join();
    });
    EXPECT_EQ(destroyed_values, 0);
}

}  // namespace
