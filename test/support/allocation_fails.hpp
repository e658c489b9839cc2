// allocation_fails: while it exists, one call of operator new throws: the n-th, from 1.
//
//   const testing::allocation_fails no_memory(2);
//
// It works in a program of which one file includes allocations.hpp, and not under a sanitizer,
// which has operators of its own.
#pragma once

#include <atomic>

namespace weft::testing {

// Zero: none.
inline std::atomic<long> failing_allocation{0};

class allocation_fails {
public:
    explicit allocation_fails(long n) noexcept { failing_allocation = n; }
    allocation_fails(const allocation_fails&) = delete;
    allocation_fails& operator=(const allocation_fails&) = delete;
    ~allocation_fails() { failing_allocation = 0; }
};

// By operator new.
inline bool this_one_fails() noexcept {
    return failing_allocation.load(std::memory_order_relaxed) != 0 &&
           failing_allocation.fetch_sub(1, std::memory_order_relaxed) == 1;
}

}  // namespace weft::testing
