// mapped_stack: each stack its own mapping, with a guard below it.
//
// Design: the plain and safe allocator: an overflow faults at once, memory is used page by page and
// returns to the system at release. Any thread.
//
//      base            limit                                  top             base + mapping
//      | guard_bytes   | stack_bytes or more                  | colour offset |
//
// Limits: an acquire costs two system calls and a release one. If stacks are acquired and released
// often, use a stack_pool, which cuts such stacks from slabs.
//
//   weft::mapped_stack stacks(64 * 1024);
//   weft::stack s = stacks.acquire();
#pragma once

#include <cstddef>

#include "weft/stack/stack.hpp"

namespace weft {

class mapped_stack {
public:
    // Both are rounded up to pages, one at least. acquire() gives no stack without its guard.
    explicit mapped_stack(std::size_t stack_bytes = default_stack_bytes,
                          std::size_t guard_bytes = 4096) noexcept;

    stack acquire() noexcept;
    void release(stack s) noexcept;

    std::size_t stack_bytes() const noexcept { return stack_bytes_; }
    std::size_t guard_bytes() const noexcept { return guard_bytes_; }

private:
    std::size_t mapping_bytes() const noexcept;
    std::size_t usable_bytes() const noexcept;

    std::size_t stack_bytes_;
    std::size_t guard_bytes_;
};

static_assert(stack_allocator<mapped_stack>);

}  // namespace weft
