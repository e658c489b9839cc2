// allocations: how often the program has called operator new, and what of it has come back.
//
//   const std::size_t before = testing::allocations();
//   ...
//   EXPECT_EQ(testing::allocations(), before);
//
// It replaces the operators, so one file of a program includes it. A sanitizer has operators of
// its own, which stay: there nothing is counted, and what is expected of a count holds of itself.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

#include "test/support/allocation_fails.hpp"
#include "weft/base/platform.hpp"

namespace weft::testing {

inline std::atomic<std::size_t> allocation_count{0};

inline std::size_t allocations() noexcept {
    return allocation_count.load(std::memory_order_relaxed);
}

inline std::atomic<std::size_t> freed_count{0};

// How many of them have not been freed.
inline std::size_t living_allocations() noexcept {
    return allocations() - freed_count.load(std::memory_order_relaxed);
}

#if !WEFT_ASAN && !WEFT_TSAN
inline void* counted_allocation(std::size_t bytes) {
    allocation_count.fetch_add(1, std::memory_order_relaxed);
    if (!this_one_fails())
        if (void* p = std::malloc(bytes)) return p;
    throw std::bad_alloc();
}
inline void counted_free(void* p) noexcept {
    if (p != nullptr) freed_count.fetch_add(1, std::memory_order_relaxed);
    std::free(p);
}
#endif

}  // namespace weft::testing

#if !WEFT_ASAN && !WEFT_TSAN
// Not inlined, or GCC finds that memory from new is passed to free.
WEFT_NOINLINE void* operator new(std::size_t bytes) {
    return weft::testing::counted_allocation(bytes);
}
WEFT_NOINLINE void* operator new[](std::size_t bytes) {
    return weft::testing::counted_allocation(bytes);
}
WEFT_NOINLINE void operator delete(void* p) noexcept { weft::testing::counted_free(p); }
WEFT_NOINLINE void operator delete[](void* p) noexcept { weft::testing::counted_free(p); }
WEFT_NOINLINE void operator delete(void* p, std::size_t) noexcept {
    weft::testing::counted_free(p);
}
WEFT_NOINLINE void operator delete[](void* p, std::size_t) noexcept {
    weft::testing::counted_free(p);
}
#endif
