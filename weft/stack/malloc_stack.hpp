// malloc_stack: stacks from malloc, without a guard.
//
// Design: for small stacks in great number, for systems without mmap, and under tools that watch
// the heap. Any thread.
//
// Limits: an overflow is silent corruption: prefer mapped_stack or a pool of it.
//
//   weft::malloc_stack stacks(16 * 1024);
//   weft::stack s = stacks.acquire();
#pragma once

#include <cstddef>

#include "weft/stack/stack.hpp"

namespace weft {

class malloc_stack {
public:
    constexpr explicit malloc_stack(std::size_t stack_bytes = default_stack_bytes) noexcept
        : stack_bytes_(stack_bytes) {}

    stack acquire() noexcept;
    void release(stack s) noexcept;
    std::size_t stack_bytes() const noexcept { return stack_bytes_; }

private:
    std::size_t stack_bytes_;
};

static_assert(stack_allocator<malloc_stack>);

}  // namespace weft
