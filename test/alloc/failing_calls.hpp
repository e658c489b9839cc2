// failing_calls: one call for memory fails: the n-th of its kind from now on, on whichever thread.
//
// It replaces malloc and its family (and so operator new), mmap, mprotect and madvise in the whole
// program and in the shared objects that it loads; libc's internal calls are not replaced. Memory
// that was allocated and not freed is counted. Not under a sanitizer, which has its own allocator.
#pragma once

#include <cstdint>

namespace weft::testing {

enum class call_kind : std::uint8_t { malloc, mmap, mprotect, madvise };
inline constexpr const char* call_names[] = {"malloc", "mmap", "mprotect", "madvise"};

// Starts to count calls of that kind; the n-th from 1 on fails, none for 0.
void fail_call(call_kind kind, std::uint64_t n) noexcept;

// How many calls there were since then; no more of them fail.
std::uint64_t end_failing() noexcept;

// Whether the call has failed.
bool has_failed() noexcept;

struct lent_memory {
    std::int64_t blocks;        // of malloc
    std::int64_t mapped_bytes;  // of mmap
};
lent_memory lent() noexcept;

}  // namespace weft::testing
