// growable_stack: a stack that is large when it must be and small while its coroutine waits.
//
// Design: reserve much and let the kernel commit it page by page as the coroutine goes deeper; once
// the coroutine is suspended at a shallow depth again, trim() releases the pages that are no longer
// in use. This is what split stacks promise, without a check in every function. Any thread.
//
//      | guard | limit ..... reserved ..... | sp ..... in use ..... top |
//                    trim() releases this     and keeps this
//
// Limits: a reservation costs address space only, and page tables of a 512th of what has been
// touched. trim() is for the stack of a suspended coroutine.
//
//   weft::growable_stack stacks(8 * 1024 * 1024);
//   weft::stack s = stacks.acquire();
//   ...                                              // deep work, then suspended at sp
//   weft::growable_stack::trim(s, sp);
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/mapped_stack.hpp"

namespace weft {

class growable_stack {
public:
    static constexpr std::size_t default_reservation_bytes = 1024 * 1024;

    explicit growable_stack(std::size_t reservation_bytes = default_reservation_bytes) noexcept
        : reservation_(reservation_bytes) {}

    stack acquire() noexcept { return reservation_.acquire(); }
    void release(stack s) noexcept { reservation_.release(s); }
    std::size_t stack_bytes() const noexcept { return reservation_.stack_bytes(); }

    // Returns to the system the whole pages below the stack pointer of a suspended coroutine, and
    // below the 128 bytes that a leaf function may use under it. Works on every stack in mapped
    // memory, a pool's too. Returns the number of bytes released.
    static std::size_t trim(stack s, const void* sp) noexcept {
        constexpr std::size_t red_zone_bytes = 128;
        const auto at = reinterpret_cast<std::uintptr_t>(sp);
        const auto limit = reinterpret_cast<std::uintptr_t>(s.limit);
        WEFT_ASSERT(at >= limit && at <= reinterpret_cast<std::uintptr_t>(s.top),
                    "trim of a stack at a stack pointer outside it");
        if (at - limit < red_zone_bytes) return 0;
        return detail::discard_pages(s.limit, s.limit + (at - limit - red_zone_bytes));
    }

private:
    mapped_stack reservation_;
};

static_assert(stack_allocator<growable_stack>);

}  // namespace weft
