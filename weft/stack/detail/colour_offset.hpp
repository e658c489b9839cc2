// colour_offset: the cache colouring offset of a stack, which is the distance from its top to the
// end of its memory; and the distance between stacks.
//
// Stacks of one size end at the same offset in their pages, and the bytes a coroutine touches first
// and last are those at its top; uncoloured, all of them fall into the same one or two of a cache's
// 64 sets. A cache colouring offset is a whole number of lines, so that no line is shared and the
// top stays aligned. The offsets are 31, from one line to 31: 1984 bytes leave more than two KiB of
// the last page below every top, enough for a fiber that waits for a socket to live in one page. No
// offset is 0: a top where its memory ends is the address of the next slot's guard, and a tool that
// reads a little above the stack pointer, as Valgrind does at every switch, would touch the guard.
//
//   n        0   1   2   3   4   5   6 ...     13 has no common factor with 31: all offsets are
//   offset   1  14  27   9  22   4  17 ...     used, and neighbours differ by 13 lines or more
//
// The caches of address translation are laid out in sets as well, by the number of the page. At an
// even distance the tops of all stacks would share half of the sets or fewer, so stacks lie an odd
// number of pages apart: with a thousand stacks that is a factor of two in a switch
// (docs/rationale.md).
//
// Model: none, a counter of which only the variety matters.
#pragma once

#include <atomic>
#include <cstddef>

#include "weft/base/platform.hpp"
#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/stack.hpp"

namespace weft::detail {

inline constexpr std::size_t colour_count = 31;

// What a stack may lose to its cache colouring offset and to the alignment of its top; added to
// every reservation.
inline constexpr std::size_t colour_bytes = (colour_count + 1) * cache_line_bytes;

// The top for the n-th stack of memory that ends at `end`.
inline std::byte* coloured_top(std::byte* end, std::size_t n) noexcept {
    const std::size_t down = (n * 13 % colour_count + 1) * cache_line_bytes;
    const auto address = reinterpret_cast<std::size_t>(end);
    return end - (address % cache_line_bytes) - down;
}

// The least whole and odd number of pages for `bytes`, in bytes.
inline std::size_t round_to_odd_pages(std::size_t bytes) noexcept {
    return round_to_page(bytes) | page_bytes();
}

// A counter for allocators that do not number their stacks.
inline std::size_t next_colour() noexcept {
    // Orders: relaxed, only variety matters.
    static constinit std::atomic<std::size_t> count{0};
    return count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace weft::detail
