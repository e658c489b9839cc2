// stack_pool_options, stack_pool_stats: the limits of a stack_pool, and what it counts.
//
// Design: aggregates. Zero is no limit; of a count and a size, the stricter one applies.
//
// Limits: a thread keeps no stacks for itself where a maximum is set, unless thread_count says
// otherwise: a maximum is exact.
//
//   weft::stack_pool<> stacks(64 * 1024, {.min_count = 100, .max_count = 10'000});
//   const weft::stack_pool_stats now = stacks.stats();
#pragma once

#include <cstddef>

namespace weft {

// Zero means no limit. If count and bytes are both given, the stricter one applies.
struct stack_pool_options {
    std::size_t min_count = 0;  // trim leaves this many, in use or free
    std::size_t max_count = 0;  // there are never more than this, in use or free
    std::size_t min_bytes = 0;
    std::size_t max_bytes = 0;
    // How many free stacks a thread may keep for itself, 64 at most. By default 64, but none if a
    // maximum is set: another thread cannot have those stacks, and a maximum should be exact.
    std::size_t thread_count = ~std::size_t{0};
};

// A snapshot of one time point; exact, except that a stack which moves from thread to thread during
// the snapshot may be counted at either thread or at both. Bytes are count times stack_bytes.
struct stack_pool_stats {
    std::size_t used_count = 0;
    std::size_t free_count = 0;
    std::size_t used_bytes = 0;
    std::size_t free_bytes = 0;
    std::size_t mapped_bytes = 0;  // address space held, guards and slots yet unused included
    // The most that were ever in use. Exact for one thread; with several an upper bound, as if each
    // had its own most at the same time.
    std::size_t peak_used_count = 0;
    std::size_t created_count = 0;    // taken from the allocator since the beginning
    std::size_t destroyed_count = 0;  // released to it
};

}  // namespace weft
