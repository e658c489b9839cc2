// pages: whole pages of memory straight from the system.
//
// For what is large, grows and shrinks: what is released leaves the process at once, where a
// heap would keep it as a hole between what came before and after.
//
//   void* p = weft::detail::try_acquire_pages(bytes);   // zeroed; null when no memory can be had
//   weft::detail::release_pages(p, bytes);
#pragma once

#include <cstddef>

namespace weft::detail {

[[nodiscard]] void* try_acquire_pages(std::size_t bytes) noexcept;
// Aligned to their size, a power of two of a page or more.
[[nodiscard]] void* try_acquire_aligned_pages(std::size_t bytes) noexcept;
// `bytes` is what they were acquired with. False where the system keeps them, which it may do where
// what is on both sides of them stays and the process has too many pieces of memory.
bool release_pages(void* p, std::size_t bytes) noexcept;

}  // namespace weft::detail
