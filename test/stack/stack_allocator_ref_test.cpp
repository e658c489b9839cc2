#include "weft/stack/stack_allocator_ref.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

struct counting {
    alignas(64) std::byte memory[256] = {};
    int out = 0;

    stack acquire() noexcept { return ++out, stack{memory, memory + 256}; }
    void release(stack s) noexcept { out -= s.limit == memory ? 1 : 100; }
    std::size_t stack_bytes() const noexcept { return 256; }
};

struct shell {
    counting* core;
    stack acquire() noexcept { return {}; }
    void release(stack) noexcept {}
    std::size_t stack_bytes() const noexcept { return 1; }
    stack_allocator_ref source() noexcept { return *core; }
};

TEST(stack_allocator_ref, is_two_words) {
    static_assert(sizeof(stack_allocator_ref) == 2 * sizeof(void*));
}

TEST(stack_allocator_ref, forwards_to_its_allocator) {
    counting a;
    const stack_allocator_ref s = a;
    EXPECT_TRUE(s);
    EXPECT_EQ(s.stack_bytes(), 256u);
    const stack got = s.acquire();
    EXPECT_EQ(got, (stack{a.memory, a.memory + 256}));
    EXPECT_EQ(a.out, 1);
    s.release(got);
    EXPECT_EQ(a.out, 0);
}

TEST(stack_allocator_ref, returns_its_allocator_only_for_its_own_vtable) {
    static constexpr stack_allocator_ref::verbs mine = {
        [](void*) noexcept { return stack{}; }, [](void*, stack) noexcept {},
        [](const void*) noexcept { return std::size_t{1}; }};
    counting a;
    const stack_allocator_ref s(&a, mine);
    EXPECT_EQ(s.allocator_by(mine), &a);
    EXPECT_EQ(stack_allocator_ref(a).allocator_by(mine), nullptr);
}

TEST(stack_allocator_ref, without_an_allocator_is_empty) {
    const stack_allocator_ref s;
    EXPECT_FALSE(s);
    EXPECT_FALSE(s.acquire());
    EXPECT_EQ(s.stack_bytes(), 0u);
}

TEST(stack_allocator_ref, is_equal_for_the_same_allocator_object) {
    counting a;
    counting b;
    EXPECT_EQ(stack_allocator_ref(a), stack_allocator_ref(a));
    EXPECT_NE(stack_allocator_ref(a), stack_allocator_ref(b));
    EXPECT_NE(stack_allocator_ref(a), stack_allocator_ref());
}

TEST(stack_allocator_ref, of_a_wrapper_is_the_wrapped_allocator) {
    counting a;
    shell around{&a};
    EXPECT_EQ(stack_allocator_ref(around), stack_allocator_ref(a));
}

TEST(stack_allocator_ref, is_an_allocator_and_copies_as_equal) {
    static_assert(stack_allocator<stack_allocator_ref>);
    counting a;
    stack_allocator_ref s = a;
    const stack_allocator_ref copy = s;
    EXPECT_EQ(copy, s);
}

}  // namespace
}  // namespace weft
