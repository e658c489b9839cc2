// os_memory: the few calls by which weft/stack gets memory from the system.
//
// Its one idea: a table of function pointers, so that a test can make the n-th call fail and see
// that nothing leaks and nothing crashes. Everything in this layer goes through `os`; nothing else
// may change it, and a test changes it only while no other thread is in this layer.
//
// Each call reports failure by its return value (null, or nonzero) and may leave errno changed.
#pragma once

#include <cstddef>

#include "weft/base/platform.hpp"

namespace weft::detail {

// What may be advised. The values are Linux's (madvise(2)); C libraries lag behind in naming them.
enum class advice : int {
    drop = 4,           // MADV_DONTNEED: memory goes back to the system, reads give zeros
    guard_install = 102,  // MADV_GUARD_INSTALL, Linux 6.13: touching the pages is a fault
    guard_remove = 103,
};

struct memory_range {  // laid out as struct iovec
    void* begin;
    std::size_t bytes;
};

struct os_memory {
    // Fresh zeroed pages, not backed until touched, not charged until touched, never huge.
    void* (*map)(std::size_t bytes) noexcept;
    int (*unmap)(void* begin, std::size_t bytes) noexcept;
    int (*protect)(void* begin, std::size_t bytes) noexcept;  // no access from here on
    int (*advise)(void* begin, std::size_t bytes, advice) noexcept;
    void* (*allocate)(std::size_t bytes) noexcept;  // 16-byte aligned, uninitialised
    void (*free)(void*) noexcept;
};

extern const os_memory system_memory;
extern os_memory os;

// The size of a page. A constant where the processor leaves no choice.
#if WEFT_X86_64
constexpr std::size_t page_bytes() noexcept { return 4096; }
#else
std::size_t page_bytes() noexcept;
#endif

inline std::size_t round_to_page(std::size_t bytes) noexcept {
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

}  // namespace weft::detail
