#include "weft/stack/detail/colour_offset.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <vector>

#include "weft/stack/slab_stack.hpp"

namespace weft::detail {
namespace {

alignas(4096) std::byte page[4096];

std::ptrdiff_t lines_down(std::size_t n) {
    return (page + sizeof page - coloured_top(page + sizeof page, n)) / 64;
}

TEST(colour_offset, uses_every_offset_equally) {
    std::multiset<std::ptrdiff_t> seen;
    for (std::size_t n = 0; n < 10 * colour_count; ++n) seen.insert(lines_down(n));
    for (std::size_t c = 1; c <= colour_count; ++c)
        EXPECT_EQ(seen.count(static_cast<std::ptrdiff_t>(c)), 10u);
}

TEST(colour_offset, offsets_of_neighbours_are_far_apart) {
    for (std::size_t n = 0; n < 2 * colour_count; ++n)
        EXPECT_GE(std::abs(lines_down(n) - lines_down(n + 1)), 13);
}

TEST(colour_offset, leaves_two_kibibytes_of_the_last_page_below_every_top) {
    for (std::size_t n = 0; n < colour_count; ++n)
        EXPECT_GE(coloured_top(page + sizeof page, n) - page, 2048);
}

// Valgrind 3.19 crashed on a release program in which a stack ended where the next guard starts.
TEST(colour_offset, leaves_a_cache_line_between_top_and_next_guard) {
    for (std::size_t n = 0; n < 3 * colour_count; ++n) EXPECT_GE(lines_down(n), 1);

    slab_stack stacks(16 * 1024);
    std::vector<stack> out;
    std::set<const std::byte*> limits;
    for (std::size_t i = 0; i < 3 * colour_count; ++i) {
        out.push_back(stacks.acquire());
        limits.insert(out.back().limit);
    }
    for (const stack s : out) {
        const auto next = limits.upper_bound(s.limit);
        if (next == limits.end()) continue;
        EXPECT_LE(s.top + cache_line_bytes, *next - page_bytes()) << "a guard is a page at least";
    }
    for (const stack s : out) stacks.release(s);
}

TEST(colour_offset, aligns_the_top_to_a_cache_line_for_any_memory_end) {
    for (std::size_t off = 0; off < 64; ++off) {
        const std::byte* top = coloured_top(page + sizeof page - off, 5);
        EXPECT_EQ(reinterpret_cast<std::size_t>(top) % 64, 0u);
        EXPECT_LE(page + sizeof page - off - top, static_cast<std::ptrdiff_t>(colour_bytes));
    }
}

// The page of the byte below the top.
std::ptrdiff_t top_page(stack s) {
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::size_t>(s.top - 1) / page_bytes());
}

TEST(colour_offset, separates_stacks_by_an_odd_page_count) {
    for (std::size_t bytes :
         {std::size_t{16} << 10, std::size_t{64} << 10, std::size_t{68} << 10}) {
        slab_stack stacks(bytes);
        const stack first = stacks.acquire();
        const stack second = stacks.acquire();
        EXPECT_EQ(std::abs(top_page(second) - top_page(first)) % 2, 1) << bytes;
        stacks.release(first);
        stacks.release(second);
    }
    EXPECT_EQ(round_to_odd_pages(1), page_bytes());
    EXPECT_EQ(round_to_odd_pages(page_bytes()), page_bytes());
    EXPECT_EQ(round_to_odd_pages(page_bytes() + 1), 3 * page_bytes());
}

TEST(colour_offset, next_colour_increments) {
    const std::size_t a = next_colour();
    EXPECT_EQ(next_colour(), a + 1);
}

}  // namespace
}  // namespace weft::detail
