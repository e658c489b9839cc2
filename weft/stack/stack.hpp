// stack: the memory a coroutine runs on, and the requirements on an allocator of such memory.
//
// Design: a stack is two addresses and nothing else: it owns nothing, copies freely, and its bytes
// hold nothing of the allocator's.
//
//      low addresses                                            high addresses
//      | guard | limit -> ............ usable ............ <- top | colour offset |
//                                   a coroutine starts here, grows down
//
// The top is aligned to a cache line and has a cache colouring offset (colour_offset.hpp): tops of
// neighbouring stacks lie at different offsets in their pages, so that they do not compete for the
// same cache sets.
//
// An allocator is any type with acquire, release and stack_bytes; weft's own are malloc_stack,
// mapped_stack, growable_stack, buffer_stack, slab_stack, and stack_pool over any of them.
//
// Limits: each stack is released to the allocator that it was acquired from. An allocator says in
// its header whether several threads may use it.
//
//   weft::mapped_stack stacks(64 * 1024);
//   if (weft::stack s = stacks.acquire()) { run_on(s); stacks.release(s); }
#pragma once

#include <concepts>
#include <cstddef>

namespace weft {

// The default size for a coroutine: ample for calls into libc, resolvers and TLS libraries. The
// size is address space; memory is used page by page as the stack grows.
inline constexpr std::size_t default_stack_bytes = 128 * 1024;

struct stack {
    std::byte* limit = nullptr;  // the lowest usable byte
    std::byte* top = nullptr;    // one past the highest, 64-byte aligned

    constexpr std::size_t bytes() const noexcept { return static_cast<std::size_t>(top - limit); }
    constexpr explicit operator bool() const noexcept { return top != nullptr; }
    friend constexpr bool operator==(const stack&, const stack&) noexcept = default;
};

// acquire() returns an empty stack if there are no more; otherwise a stack with at least
// stack_bytes() usable bytes. release() takes back a non-empty stack of its own, once.
template <class A>
concept stack_allocator = requires(A& a, const A& c, stack s) {
    { a.acquire() } noexcept -> std::same_as<stack>;
    { a.release(s) } noexcept;
    { c.stack_bytes() } noexcept -> std::convertible_to<std::size_t>;
};

namespace detail {

// The same stack, as two plain values. GCC 12 stores a pair that came in registers by halves and
// reads the pair back as one to copy it; the processor waits some five nanoseconds for that.
inline stack in_registers(stack s) noexcept {
    asm("" : "+r"(s.limit), "+r"(s.top));
    return s;
}

}  // namespace detail
}  // namespace weft
