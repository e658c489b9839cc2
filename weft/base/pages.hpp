// pages: whole pages of memory straight from the system.
//
// For what is large, grows and shrinks: what is released is gone from the process at once, where a
// heap would keep it as a hole between what came before and after.
//
//   void* p = weft::detail::try_acquire_pages(bytes);   // zeroed; null when there is none
//   weft::detail::release_pages(p, bytes);
#pragma once

#include <cstddef>

namespace weft::detail {

[[nodiscard]] void* try_acquire_pages(std::size_t bytes) noexcept;
// `bytes` is what they were acquired with.
void release_pages(void* p, std::size_t bytes) noexcept;

}  // namespace weft::detail
