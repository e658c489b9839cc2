#include "weft/stack/buffer_stack.hpp"

#include <gtest/gtest.h>

#include <span>

namespace weft {
namespace {

alignas(64) std::byte callers_memory[4096];

TEST(buffer_stack, uses_the_callers_memory) {
    buffer_stack stacks(callers_memory);
    const stack s = stacks.acquire();
    EXPECT_EQ(s, (stack{callers_memory, callers_memory + sizeof callers_memory}));
    EXPECT_EQ(stacks.stack_bytes(), sizeof callers_memory);
    stacks.release(s);
}

TEST(buffer_stack, is_acquired_once_at_a_time) {
    buffer_stack stacks(callers_memory);
    const stack s = stacks.acquire();
    EXPECT_FALSE(stacks.acquire());
    stacks.release(s);
    const stack again = stacks.acquire();
    EXPECT_EQ(again, s);
    stacks.release(again);
}

TEST(buffer_stack, aligns_its_top_to_a_cache_line_within_the_buffer) {
    for (std::size_t from = 0; from < 64; from += 7) {
        for (std::size_t to = 1000; to < 1064; to += 5) {
            buffer_stack stacks(std::span<std::byte>(callers_memory + from, to - from));
            const stack s = stacks.acquire();
            ASSERT_TRUE(s);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.top) % 64, 0u);
            EXPECT_EQ(s.limit, callers_memory + from);
            EXPECT_LE(s.top, callers_memory + to);
            EXPECT_GT(s.top + 64, callers_memory + to);
            stacks.release(s);
        }
    }
}

TEST(buffer_stack, is_empty_without_room) {
    buffer_stack none(std::span<std::byte>{});
    EXPECT_FALSE(none.acquire());
    buffer_stack tiny(std::span<std::byte>(callers_memory + 1, 10));
    EXPECT_FALSE(tiny.acquire());
    EXPECT_EQ(tiny.stack_bytes(), 0u);
    buffer_stack less_than_a_line(std::span<std::byte>(callers_memory, 63));
    EXPECT_FALSE(less_than_a_line.acquire());
}

TEST(buffer_stack_death, release_of_a_stack_not_in_use_aborts) {
    buffer_stack stacks(callers_memory);
    const stack s = stacks.acquire();
    EXPECT_DEATH(stacks.release({callers_memory, callers_memory + 64}), "weft: release of a stack");
    stacks.release(s);
    EXPECT_DEATH(stacks.release(s), "weft: release of a stack");
}

}  // namespace
}  // namespace weft
