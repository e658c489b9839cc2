// Compiled as C++17, as programs for libco are: co_yield is a name there.
#include <gtest/gtest.h>

#include "co_closure.h"
#include "co_comm.h"
#include "co_routine.h"
#include "co_routine_inner.h"
#include "co_routine_specific.h"
#include "coctx.h"

static_assert(__cplusplus < 202002L, "this is about what C++20 took away");

TEST(co_yield_of_17, returns_to_the_resumer) {
    static int step;
    step = 0;
    stCoRoutine_t* co = nullptr;
    co_create(
        &co, nullptr,
        [](void*) -> void* {
            step = 1;
            co_yield (co_self());
            step = 2;
            co_yield_env(co_get_curr_thread_env());
            step = 3;
            return nullptr;
        },
        nullptr);
    for (int i = 1; i <= 3; ++i) {
        co_resume(co);
        EXPECT_EQ(step, i);
    }
    co_release(co);
}
