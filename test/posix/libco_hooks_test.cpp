// What a program for libco does with hooks: plain calls of the system, in coroutines of one thread.
#include <gtest/gtest.h>

#include "co_routine.h"

namespace {

TEST(co_enable_hook_sys, is_per_coroutine_and_off_by_default) {
    EXPECT_FALSE(co_is_enable_sys_hook());
    co_enable_hook_sys();
    EXPECT_FALSE(co_is_enable_sys_hook()) << "a thread has none";
    const auto f = [](void*) -> void* {
        EXPECT_FALSE(co_is_enable_sys_hook());
        co_enable_hook_sys();
        EXPECT_TRUE(co_is_enable_sys_hook());
        co_yield_ct();
        EXPECT_TRUE(co_is_enable_sys_hook());
        co_disable_hook_sys();
        EXPECT_FALSE(co_is_enable_sys_hook());
        return nullptr;
    };
    stCoRoutine_t* all[2];
    for (stCoRoutine_t*& co : all) {
        co_create(&co, nullptr, f, nullptr);
        co_resume(co);
        EXPECT_FALSE(co_is_enable_sys_hook());
    }
    for (stCoRoutine_t* co : all) {
        co_resume(co);
        co_release(co);
    }
}

}  // namespace
