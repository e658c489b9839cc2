#include "weft/stack/growable_stack.hpp"

#include <gtest/gtest.h>

#include "test/stack/memory_probe.hpp"
#include "weft/stack/stack_pool.hpp"

namespace weft {
namespace {

constexpr std::size_t mib = 1024 * 1024;

TEST(growable_stack, reserves_its_full_size_and_commits_touched_pages) {
    growable_stack stacks(64 * mib);
    const stack s = stacks.acquire();
    ASSERT_TRUE(s);
    EXPECT_GE(s.bytes(), 64 * mib);
    EXPECT_EQ(test::resident_pages(s), 0u);
    test::use(s, 2 * mib);
    EXPECT_LE(test::resident_pages(s), 2 * mib / detail::page_bytes() + 1);
    stacks.release(s);
}

TEST(growable_stack, trim_releases_the_pages_below_the_stack_pointer) {
    growable_stack stacks(16 * mib);
    const stack s = stacks.acquire();
    test::use(s, 8 * mib);
    const std::size_t before = test::rss_bytes();
    const std::byte* sp = s.top - 6000;
    EXPECT_GT(growable_stack::trim(s, sp), 15 * mib);
    EXPECT_LE(test::resident_pages(s), 3u);
    EXPECT_LT(test::rss_bytes() + 7 * mib, before);
    stacks.release(s);
}

TEST(growable_stack, trim_keeps_used_memory_and_a_red_zone) {
    growable_stack stacks(mib);
    const stack s = stacks.acquire();
    for (std::byte* p = s.limit; p != s.top; ++p) *p = std::byte{5};
    for (std::ptrdiff_t depth = 64; depth < 20000; depth += 1000) {
        for (std::byte* p = s.limit; p != s.top; ++p) *p = std::byte{5};
        const std::byte* sp = s.top - depth;
        growable_stack::trim(s, sp);
        for (const std::byte* p = sp - 128; p != s.top; ++p) ASSERT_EQ(*p, std::byte{5});
        EXPECT_LE(test::resident_pages(s),
                  (static_cast<std::size_t>(depth) + 128 + 4096) / detail::page_bytes() + 2);
    }
    stacks.release(s);
}

TEST(growable_stack, trim_keeps_a_red_zone_that_reaches_into_the_next_page) {
    growable_stack stacks(mib);
    const stack s = stacks.acquire();
    std::byte* boundary = s.limit + 64 * detail::page_bytes();
    boundary[-1] = std::byte{5};
    boundary[-65] = std::byte{6};
    growable_stack::trim(s, boundary + 63);
    EXPECT_EQ(boundary[-1], std::byte{5});
    EXPECT_EQ(boundary[-65], std::byte{6});
    stacks.release(s);
}

TEST(growable_stack, can_grow_again_after_a_trim) {
    growable_stack stacks(mib);
    const stack s = stacks.acquire();
    for (int i = 0; i < 3; ++i) {
        test::use(s, mib / 2);
        EXPECT_GE(test::resident_pages(s), mib / 2 / detail::page_bytes());
        growable_stack::trim(s, s.top);
        EXPECT_LE(test::resident_pages(s), 2u);
    }
    stacks.release(s);
}

TEST(growable_stack, trim_at_the_limit_releases_nothing) {
    growable_stack stacks(mib);
    const stack s = stacks.acquire();
    EXPECT_EQ(growable_stack::trim(s, s.limit), 0u);
    EXPECT_EQ(growable_stack::trim(s, s.limit + 100), 0u);
    stacks.release(s);
}

TEST(growable_stack, trim_works_on_the_stacks_of_a_pool) {
    stack_pool<growable_stack> pool(4 * mib);
    const stack s = pool.acquire();
    test::use(s, 2 * mib);
    growable_stack::trim(s, s.top - 64);
    EXPECT_LE(test::resident_pages(s), 2u);
    pool.release(s);
}

TEST(growable_stack_death, trim_outside_the_stack_aborts) {
    growable_stack stacks(mib);
    const stack s = stacks.acquire();
    EXPECT_DEATH(growable_stack::trim(s, s.limit - 1), "weft: trim of a stack");
    EXPECT_DEATH(growable_stack::trim(s, s.top + 1), "weft: trim of a stack");
    stacks.release(s);
}

}  // namespace
}  // namespace weft
