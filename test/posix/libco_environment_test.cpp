#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "co_routine.h"

namespace {

const char* own_name[] = {"WEFT_TEST_OWN", "WEFT_TEST_ALSO"};

stCoRoutine_t* co_for(void* (*f)(void*), void* arg = nullptr) {
    stCoRoutine_t* co = nullptr;
    EXPECT_EQ(co_create(&co, nullptr, f, arg), 0);
    co_resume(co);
    return co;
}

const char* text_of(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "(none)";
}

TEST(co_environment, of_listed_names_is_per_coroutine) {
    co_set_env_list(own_name, 2);
    ASSERT_EQ(::setenv("WEFT_TEST_OWN", "outside", 1), 0);
    const auto f = [](void* value) -> void* {
        co_enable_hook_sys();
        EXPECT_STREQ(text_of("WEFT_TEST_OWN"), "outside");
        EXPECT_EQ(::setenv("WEFT_TEST_OWN", static_cast<const char*>(value), 0), 0);
        EXPECT_STREQ(text_of("WEFT_TEST_OWN"), "outside");
        EXPECT_EQ(::setenv("WEFT_TEST_OWN", static_cast<const char*>(value), 1), 0);
        EXPECT_EQ(::setenv("WEFT_TEST_ALSO", static_cast<const char*>(value), 0), 0);
        co_yield_ct();
        EXPECT_STREQ(text_of("WEFT_TEST_OWN"), static_cast<const char*>(value));
        EXPECT_STREQ(text_of("WEFT_TEST_ALSO"), static_cast<const char*>(value));
        co_disable_hook_sys();
        EXPECT_STREQ(text_of("WEFT_TEST_OWN"), "outside");
        co_enable_hook_sys();
        EXPECT_EQ(::unsetenv("WEFT_TEST_OWN"), 0);
        EXPECT_STREQ(text_of("WEFT_TEST_OWN"), "(none)");
        return nullptr;
    };
    char first[] = "first", second[] = "second";
    stCoRoutine_t* const a = co_for(f, first);
    stCoRoutine_t* const b = co_for(f, second);
    EXPECT_STREQ(text_of("WEFT_TEST_OWN"), "outside");
    EXPECT_STREQ(text_of("WEFT_TEST_ALSO"), "(none)");
    co_resume(a);
    co_resume(b);
    EXPECT_STREQ(text_of("WEFT_TEST_OWN"), "outside");
    co_release(a);
    co_release(b);
    EXPECT_EQ(::unsetenv("WEFT_TEST_OWN"), 0);
    EXPECT_STREQ(text_of("WEFT_TEST_OWN"), "(none)");
}

// Nothing else orders the two, so that a race would be detected.
TEST(co_environment, can_be_configured_during_concurrent_reads) {
    if (!WEFT_TEST_TSAN) GTEST_SKIP() << "it sees nothing, and a list that was replaced stays";
    static constexpr auto relaxed = std::memory_order_relaxed;
    static std::atomic<bool> asks, is_set;
    std::thread other([] {
        co_release(co_for([](void*) -> void* {
            co_enable_hook_sys();
            do {
                asks.store(true, relaxed);
                EXPECT_STREQ(text_of("WEFT_TEST_ALSO"), "(none)");
            } while (!is_set.load(relaxed));
            EXPECT_STREQ(text_of("WEFT_TEST_ALSO"), "(none)");
            return nullptr;
        }));
    });
    while (!asks.load(relaxed)) std::this_thread::yield();
    co_set_env_list(own_name, 2);
    is_set.store(true, relaxed);
    other.join();
}

TEST(co_environment, of_other_names_is_per_process) {
    const auto f = [](void*) -> void* {
        co_enable_hook_sys();
        EXPECT_EQ(::setenv("WEFT_TEST_COMMON", "common", 1), 0);
        return nullptr;
    };
    co_release(co_for(f));
    EXPECT_STREQ(text_of("WEFT_TEST_COMMON"), "common");
    EXPECT_EQ(::unsetenv("WEFT_TEST_COMMON"), 0);
}

TEST(co_environment, rejects_invalid_names) {
    errno = 0;
    EXPECT_EQ(::setenv("", "x", 1), -1);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(::setenv("a=b", "x", 1), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(std::getenv(""), nullptr);
}

}  // namespace
