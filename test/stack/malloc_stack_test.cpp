#include "weft/stack/malloc_stack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "test/stack/memory_probe.hpp"

namespace weft {
namespace {

TEST(malloc_stack, has_the_requested_size) {
    for (const std::size_t bytes : {1u, 1000u, 16384u, 100001u}) {
        malloc_stack stacks(bytes);
        EXPECT_EQ(stacks.stack_bytes(), bytes);
        const stack s = stacks.acquire();
        ASSERT_TRUE(s);
        EXPECT_GE(s.bytes(), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.top) % 64, 0u);
        std::memset(s.limit, 1, s.bytes());
        stacks.release(s);
    }
}

TEST(malloc_stack, is_empty_without_memory) {
    test::failing_memory memory(1);
    malloc_stack stacks(4096);
    EXPECT_FALSE(stacks.acquire());
    const stack s = stacks.acquire();
    EXPECT_TRUE(s);
    stacks.release(s);
    EXPECT_TRUE(memory.nothing_leaked());
}

TEST(malloc_stack, is_empty_for_an_excessive_size) {
    malloc_stack stacks(~std::size_t{0});
    EXPECT_FALSE(stacks.acquire());
}

}  // namespace
}  // namespace weft
