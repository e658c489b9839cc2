#include "weft/stack/detail/near_stacks.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "weft/stack/malloc_stack.hpp"
#include "weft/stack/stack_pool.hpp"

namespace weft::detail {
namespace {

using heap_pool = stack_pool<malloc_stack>;

struct no_pool {
    alignas(64) std::byte memory[256] = {};
    int calls = 0;

    stack acquire() noexcept { return ++calls, stack{memory, memory + 256}; }
    void release(stack) noexcept { ++calls; }
    std::size_t stack_bytes() const noexcept { return 256; }
};

TEST(near_stacks, take_the_stack_that_the_pool_would_give) {
    heap_pool pool(4096);
    const stack a = pool.acquire();
    const stack b = pool.acquire();
    pool.release(a);
    pool.release(b);
    EXPECT_EQ(take_near(pool), b);
    EXPECT_EQ(pool.stats().used_count, 1u);
    EXPECT_EQ(pool.acquire(), a);
    EXPECT_FALSE(take_near(pool)) << "nothing is left";
    EXPECT_EQ(pool.stats().used_count, 2u);
    pool.release(a);
    pool.release(b);
}

TEST(near_stacks, put_the_stack_that_the_pool_gives_next) {
    heap_pool pool(4096);
    const stack a = pool.acquire();
    pool.release(a);
    const stack b = pool.acquire();
    EXPECT_TRUE(put_near(pool, b));
    EXPECT_EQ(pool.stats().used_count, 0u);
    EXPECT_EQ(pool.acquire(), b);
    pool.release(b);
}

TEST(near_stacks, are_included_in_the_peak_used_count) {
    heap_pool pool(4096);
    stack taken[10];
    for (stack& s : taken) s = pool.acquire();
    for (const stack s : taken) pool.release(s);
    for (stack& s : taken) s = take_near(pool);
    EXPECT_EQ(pool.stats().peak_used_count, 10u);
    for (const stack s : taken) EXPECT_TRUE(put_near(pool, s));
    pool.check();
}

TEST(near_stacks, refuse_an_allocator_without_a_pool) {
    no_pool a;
    EXPECT_FALSE(take_near(a));
    EXPECT_FALSE(put_near(a, stack{a.memory, a.memory + 256}));
    EXPECT_FALSE(take_near(stack_allocator_ref()));
    EXPECT_EQ(a.calls, 0);
}

TEST(near_stacks, are_separate_for_each_thread) {
    heap_pool pool(4096);
    pool.release(pool.acquire());
    std::thread([&] {
        EXPECT_FALSE(take_near(pool)) << "it has kept none yet";
        const stack s = pool.acquire();
        EXPECT_TRUE(put_near(pool, s));
        EXPECT_EQ(take_near(pool), s);
        pool.release(s);
    }).join();
    EXPECT_TRUE(put_near(pool, take_near(pool)));
}

TEST(near_stacks, refuse_recalled_stacks_and_stacks_over_the_limit) {
    heap_pool pool(4096, {.thread_count = 2});
    stack taken[3];
    for (stack& s : taken) s = pool.acquire();
    pool.release(taken[0]);
    EXPECT_TRUE(put_near(pool, taken[1]));
    EXPECT_FALSE(put_near(pool, taken[2])) << "it may keep two";
    EXPECT_EQ(take_near(pool), taken[1]);
    pool.set_limits({.thread_count = 1});
    EXPECT_FALSE(put_near(pool, taken[1])) << "the pool wants to be asked";
    pool.release(taken[1]);
    pool.release(taken[2]);
    pool.check();
}

TEST(near_stacks, refuse_a_stack_of_another_size) {
    stack_pool<> pool(16 * 1024);
    pool.release(pool.acquire());
    const stack small = pool.acquire();
    pool.set_stack_bytes(64 * 1024);
    const stack large = pool.acquire();
    pool.release(large);
    EXPECT_FALSE(put_near(pool, small));
    pool.release(small);
    EXPECT_EQ(take_near(pool), large);
    pool.release(large);
    pool.check();
}

#if WEFT_ASAN
TEST(near_stacks, poison_free_stacks) {
    heap_pool pool(4096);
    const stack s = pool.acquire();
    EXPECT_TRUE(put_near(pool, s));
    EXPECT_TRUE(__asan_address_is_poisoned(s.limit));
    EXPECT_EQ(take_near(pool), s);
    EXPECT_FALSE(__asan_address_is_poisoned(s.limit));
    pool.release(s);
}
#endif

}  // namespace
}  // namespace weft::detail
