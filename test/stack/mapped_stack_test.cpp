#include "weft/stack/mapped_stack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>

#include "test/stack/memory_probe.hpp"
#include "test/support/touch.hpp"
#include "weft/stack/detail/guard.hpp"
#include "weft/stack/detail/os_memory.hpp"

namespace weft {
namespace {

using testing::touch;

TEST(mapped_stack, has_the_requested_size_in_whole_pages) {
    for (const std::size_t bytes : {1u, 5000u, 65536u, 1000001u}) {
        mapped_stack stacks(bytes);
        EXPECT_GE(stacks.stack_bytes(), bytes);
        const stack s = stacks.acquire();
        ASSERT_TRUE(s);
        EXPECT_GE(s.bytes(), stacks.stack_bytes());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.top) % 64, 0u);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.limit) % detail::page_bytes(), 0u);
        std::memset(s.limit, 1, s.bytes());
        stacks.release(s);
    }
}

TEST(mapped_stack_death, overflow_faults) {
    mapped_stack stacks(16384, 3 * 4096);
    const stack s = stacks.acquire();
    EXPECT_DEATH(touch(s.limit - 1), "");
    EXPECT_DEATH(touch(s.limit - stacks.guard_bytes()), "");
    stacks.release(s);
}

TEST(mapped_stack_death, overflow_also_faults_without_markers) {
    test::failing_memory memory;
    memory.no_markers = true;
    mapped_stack stacks(16384);
    const stack s = stacks.acquire();
    EXPECT_EQ(memory.protect_count, 1);
    EXPECT_DEATH(touch(s.limit - 1), "");
    stacks.release(s);
}

TEST(mapped_stack, costs_one_page_when_little_is_used) {
    mapped_stack stacks(65536);
    const stack s = stacks.acquire();
    EXPECT_EQ(test::resident_pages(s), 0u);
    test::use(s, 1024);
    EXPECT_EQ(test::resident_pages(s), 1u);
    stacks.release(s);
}

TEST(mapped_stack, each_failing_call_leaves_a_guarded_stack_or_none_and_no_leak) {
    for (int n = 1; n <= 4; ++n) {
        test::failing_memory memory(n);
        mapped_stack stacks(65536);
        const stack s = stacks.acquire();
        // Without memory there is no stack, nor without the one kind of guard that a kernel has.
        EXPECT_EQ(static_cast<bool>(s), n > (detail::markers_work() ? 1 : 2));
        memory.fail_no_more();
        if (s) stacks.release(s);
        EXPECT_TRUE(memory.nothing_leaked()) << n;
    }
}

TEST(mapped_stack, is_empty_when_it_cannot_be_guarded) {
    test::failing_memory memory;
    memory.no_markers = memory.no_protect = true;
    mapped_stack stacks(65536);
    EXPECT_FALSE(stacks.acquire());
    EXPECT_TRUE(memory.nothing_leaked());
}

TEST(mapped_stack, is_empty_for_excessive_sizes) {
    for (const std::size_t bytes :
         {~std::size_t{0}, ~std::size_t{0} / 2, detail::most_stack_bytes + 1}) {
        EXPECT_FALSE(mapped_stack(bytes).acquire());
        EXPECT_FALSE(mapped_stack(4096, bytes).acquire());
    }
}

TEST(mapped_stack, neighbours_have_different_offsets) {
    mapped_stack stacks(4096);
    std::set<std::uintptr_t> offsets;
    stack all[16];
    for (stack& s : all) {
        s = stacks.acquire();
        offsets.insert(reinterpret_cast<std::uintptr_t>(s.top) % 4096);
    }
    EXPECT_EQ(offsets.size(), 16u);
    for (const stack s : all) stacks.release(s);
}

}  // namespace
}  // namespace weft
