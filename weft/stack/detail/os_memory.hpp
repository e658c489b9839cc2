// os_memory: the few calls with which weft/stack gets memory from the system.
//
// Design: a table of function pointers, so that a test can make the n-th call fail and see that
// nothing leaks and nothing crashes. Everything in this layer goes through `os`. Only a test
// changes it, and only while no other thread is in this layer.
//
// A call reports a failure by its return value (null, false); errno may be changed.
//
// Model: none, a hint that one call is missing, which may come late.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/platform.hpp"

namespace weft::detail {

// What may be advised. The values are Linux's, madvise(2); C libraries lag behind in naming them.
enum class advice : int {
    drop = 4,             // MADV_DONTNEED: the memory returns to the system; guards stay
    guard_install = 102,  // MADV_GUARD_INSTALL, Linux 6.13: touching the pages is a fault
};

struct memory_range {  // laid out as struct iovec
    std::byte* begin;
    std::size_t bytes;
};

struct os_memory {
    // Fresh zeroed pages: not backed and not charged until touched, never huge.
    std::byte* (*map)(std::size_t bytes) noexcept;
    bool (*unmap)(memory_range) noexcept;
    bool (*protect)(memory_range) noexcept;  // no access from here on
    bool (*advise)(memory_range, advice) noexcept;
    // Returns how many ranges, from the first on, one call has advised; 0 if the system has no such
    // call.
    std::size_t (*advise_many)(const memory_range*, std::size_t count, advice) noexcept;
    void* (*allocate)(std::size_t bytes) noexcept;  // 16-byte aligned, uninitialised
    void (*free)(void*) noexcept;
};

extern const os_memory system_memory;
extern os_memory os;

// The size of a page: a constant if the processor has only one.
#if WEFT_X86_64
constexpr std::size_t page_bytes() noexcept { return 4096; }
#else
std::size_t page_bytes() noexcept;
#endif

// No system has a larger stack. The sum of three such sizes does not wrap around.
inline constexpr std::size_t most_stack_bytes = SIZE_MAX >> (sizeof(void*) == 8 ? 18 : 2);

inline std::size_t round_to_page(std::size_t bytes) noexcept {
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// Drops the whole pages of [begin, end): their memory returns to the system. Returns the bytes of
// those pages, 0 if the range has no whole page or the system refuses.
std::size_t discard_pages(std::byte* begin, std::byte* end) noexcept;

}  // namespace weft::detail
