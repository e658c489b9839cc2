#include <gtest/gtest.h>

#include <thread>

#include "co_routine.h"
#include "co_routine_specific.h"

namespace {

struct specific_data {
    static inline int alive = 0;
    int index = 5;
    specific_data() { ++alive; }
    ~specific_data() { --alive; }
};
struct plain_data {
    int index;
    char text[100];
};

CO_ROUTINE_SPECIFIC(specific_data, data_of_mine);
CO_ROUTINE_SPECIFIC(plain_data, plain_of_mine);

stCoRoutine_t* co_of(void* (*f)(void*), void* arg) {
    stCoRoutine_t* co = nullptr;
    EXPECT_EQ(co_create(&co, nullptr, f, arg), 0);
    co_resume(co);
    return co;
}

TEST(co_specific, is_per_coroutine_and_thread_and_ends_with_it) {
    const auto f = [](void* p) -> void* {
        EXPECT_EQ(data_of_mine->index, 5);
        EXPECT_EQ(plain_of_mine->index, 0);
        data_of_mine->index = *static_cast<int*>(p);
        (*plain_of_mine).index = *static_cast<int*>(p);
        co_yield_ct();
        EXPECT_EQ(data_of_mine->index, *static_cast<int*>(p));
        EXPECT_EQ(plain_of_mine->index, *static_cast<int*>(p));
        co_yield_ct();
        return nullptr;
    };
    int number[3] = {10, 11, 12};
    stCoRoutine_t* all[3];
    for (int i = 0; i < 3; ++i) all[i] = co_of(f, &number[i]);
    EXPECT_EQ(specific_data::alive, 3);
    for (stCoRoutine_t* co : all) co_resume(co);
    co_resume(all[0]);
    EXPECT_EQ(specific_data::alive, 2) << "it has ended";
    for (stCoRoutine_t* co : all) co_release(co);
    EXPECT_EQ(specific_data::alive, 0) << "they were unwound";
    std::thread([] {
        data_of_mine->index = 3;
        EXPECT_EQ(specific_data::alive, 1);
    }).join();
    EXPECT_EQ(specific_data::alive, 0);
}

TEST(co_setspecific, is_per_coroutine_for_any_key) {
    pthread_key_t key;
    ASSERT_EQ(::pthread_key_create(&key, nullptr), 0);
    int outside = 0;
    EXPECT_EQ(co_setspecific(key, &outside), 0);
    const auto f = [](void* k) -> void* {
        const pthread_key_t mine = *static_cast<pthread_key_t*>(k);
        EXPECT_EQ(co_getspecific(mine), nullptr);
        EXPECT_EQ(co_setspecific(mine, &mine), 0);
        EXPECT_EQ(co_setspecific(5000, k), 0);
        co_yield_ct();
        EXPECT_EQ(co_getspecific(mine), &mine);
        EXPECT_EQ(co_getspecific(5000), k);
        EXPECT_EQ(co_getspecific(5001), nullptr);
        return nullptr;
    };
    stCoRoutine_t* const a = co_of(f, &key);
    stCoRoutine_t* const b = co_of(f, &key);
    EXPECT_EQ(co_getspecific(key), &outside);
    EXPECT_EQ(::pthread_getspecific(key), &outside);
    co_resume(a);
    co_resume(b);
    co_release(a);
    co_release(b);
    ::pthread_key_delete(key);
}

}  // namespace
