#include "weft/stack/stack.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

struct users_own {
    stack acquire() noexcept { return {}; }
    void release(stack) noexcept {}
    int stack_bytes() const noexcept { return 4096; }
};
struct may_throw : users_own {
    stack acquire() { return {}; }
};
struct gives_pointers : users_own {
    void* acquire() noexcept { return nullptr; }
};

TEST(stack, is_empty_until_it_has_memory) {
    alignas(64) std::byte memory[128];
    EXPECT_FALSE(stack{});
    EXPECT_EQ(stack{}.bytes(), 0u);
    const stack s{memory, memory + 128};
    EXPECT_TRUE(s);
    EXPECT_EQ(s.bytes(), 128u);
    EXPECT_EQ(s, (stack{memory, memory + 128}));
    EXPECT_NE(s, stack{});
}

TEST(stack, allocator_concept_needs_the_three_functions) {
    static_assert(stack_allocator<users_own>);
    static_assert(!stack_allocator<may_throw>);
    static_assert(!stack_allocator<gives_pointers>);
    static_assert(!stack_allocator<int>);
}

TEST(stack, can_be_passed_in_registers) {
    alignas(64) std::byte memory[64];
    const stack s{memory, memory + 64};
    EXPECT_EQ(detail::in_registers(s), s);
}

}  // namespace
}  // namespace weft
