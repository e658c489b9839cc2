// default_stacks: the process's own stacks, for callers that name no allocator.
//
// Design: one stack_pool for each size class, powers of two from 16 KiB to 1 GiB; a requested size
// is rounded up, and a size above the largest class gets no stack. The pools need no set-up, take
// memory at first use, and are never destroyed, so that a coroutine in a static object is safe. Any
// thread.
//
// Limits: there is no default stack above 1 GiB. The limits of a pool are those of all its users
// (default_stack_pool).
//
//   weft::stack s = weft::default_stacks().acquire();
//   weft::trim_default_stacks();  // now; an idle loop does so by itself, a little at a time
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#include "weft/base/detail/min_max.hpp"
#include "weft/stack/stack_allocator_ref.hpp"
#include "weft/stack/stack_pool.hpp"

namespace weft {

// The least size of a default stack, and the greatest.
inline constexpr std::size_t smallest_default_stack_bytes = std::size_t{16} << 10;
inline constexpr std::size_t largest_default_stack_bytes = std::size_t{1} << 30;

namespace detail {

// 0 for up to 16 KiB, 1 for up to 32 KiB, ...
constexpr std::size_t size_class(std::size_t stack_bytes) noexcept {
    if (stack_bytes <= smallest_default_stack_bytes) return 0;
    return static_cast<std::size_t>(
        std::bit_width((stack_bytes - 1) / smallest_default_stack_bytes));
}

inline constexpr std::size_t size_class_count = size_class(largest_default_stack_bytes) + 1;

// One for each class, and the empty reference for everything larger.
extern const std::array<stack_allocator_ref, size_class_count + 1> default_sources;

}  // namespace detail

inline stack_allocator_ref default_stacks(std::size_t stack_bytes = default_stack_bytes) noexcept {
    return detail::default_sources[detail::min_of(detail::size_class(stack_bytes),
                                                  detail::size_class_count)];
}

// The pool behind it, to set limits and read statistics; null for a size above the largest class.
stack_pool<>* default_stack_pool(std::size_t stack_bytes = default_stack_bytes) noexcept;

// stack_pool::trim for all of them: at most max_count stacks together, the largest class first.
std::size_t trim_default_stacks(std::size_t max_count = ~std::size_t{0}) noexcept;

}  // namespace weft
