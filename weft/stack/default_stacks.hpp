// default_stacks: the process's own stacks, for whoever names no allocator.
//
// One pool for each size class, powers of two from 16 KiB to 1 GiB; an ask is rounded up, an ask
// above them gets a source that has nothing. The pools need no set-up, take memory at first use, and
// are never destroyed, so that a coroutine in a static object is safe. Any thread.
//
//   weft::stack s = weft::default_stacks().acquire();
#pragma once

#include <bit>
#include <cstddef>

#include "weft/stack/stack.hpp"
#include "weft/stack/stack_source.hpp"

namespace weft {

inline constexpr std::size_t smallest_default_stack_bytes = 16 * 1024;
inline constexpr std::size_t largest_default_stack_bytes = std::size_t{1} << 30;

namespace detail {

// 0 for up to 16 KiB, 1 for up to 32 KiB, ...
constexpr std::size_t size_class(std::size_t stack_bytes) noexcept {
    return stack_bytes == 0 ? 0 : static_cast<std::size_t>(std::bit_width((stack_bytes - 1) >> 14));
}

inline constexpr std::size_t size_class_count = size_class(largest_default_stack_bytes) + 1;

extern const stack_source default_sources[size_class_count];

}  // namespace detail

inline stack_source default_stacks(std::size_t stack_bytes = default_stack_bytes) noexcept {
    const std::size_t i = detail::size_class(stack_bytes);
    return i < detail::size_class_count ? detail::default_sources[i] : stack_source{};
}

}  // namespace weft
