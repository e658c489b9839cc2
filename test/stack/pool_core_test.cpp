#include "weft/stack/detail/pool_core.hpp"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "weft/stack/malloc_stack.hpp"
#include "weft/stack/slab_stack.hpp"

namespace weft::detail {
namespace {

TEST(pool_core, requires_only_the_allocator_concept) {
    malloc_stack stacks(16 * 1024);
    const pool_verbs& verbs = pool_verbs_of<malloc_stack>;
    const stack both[] = {verbs.acquire(&stacks), verbs.acquire(&stacks)};
    EXPECT_EQ(verbs.stack_bytes(&stacks), 16u * 1024);
    EXPECT_EQ(verbs.mapped_bytes(&stacks, 2), 32u * 1024);
    EXPECT_FALSE(verbs.has_canaries(&stacks));
    EXPECT_FALSE(verbs.resizable);
    verbs.inspect(&stacks, both[0]);
    verbs.release(&stacks, std::span<const stack>(both));
}

TEST(pool_core, uses_optional_functions_of_an_allocator) {
    slab_stack stacks(16 * 1024);
    const pool_verbs& verbs = pool_verbs_of<slab_stack>;
    const stack s = verbs.acquire(&stacks);
    EXPECT_EQ(verbs.mapped_bytes(&stacks, 1), stacks.mapped_bytes());
    EXPECT_TRUE(verbs.resizable);
    verbs.release(&stacks, {&s, 1});
    EXPECT_EQ(stacks.out_count(), 0u);
}

TEST(pool_core, serves_as_a_stack_allocator) {
    malloc_stack stacks(16 * 1024);
    pool_core core(&stacks, pool_verbs_of<malloc_stack>, {});
    const stack_allocator_ref source = core.source();
    const stack s = source.acquire();
    EXPECT_EQ(source.stack_bytes(), 16u * 1024);
    EXPECT_EQ(core.stats().used_count, 1u);
    source.release(s);
    EXPECT_EQ(core.stats().used_count, 0u);
    core.check();
}

TEST(pool_core, caches_at_most_the_allowed_count_per_thread) {
    for (const std::size_t keep : {0u, 1u, 2u, 5u, 64u, 1000u}) {
        malloc_stack stacks(4096);
        pool_core core(&stacks, pool_verbs_of<malloc_stack>, {.thread_count = keep});
        std::vector<stack> all(300);
        for (int round = 0; round < 3; ++round) {
            for (stack& s : all) s = core.acquire();
            for (const stack s : all) core.release(s);
            core.check();
        }
        EXPECT_EQ(core.stats().free_count, 300u);
        EXPECT_EQ(core.stats().peak_used_count, 300u);
        for (std::size_t i = all.size(); i-- != 0;) EXPECT_EQ(core.acquire(), all[i]) << keep;
        for (const stack s : all) core.release(s);
    }
}

}  // namespace
}  // namespace weft::detail
