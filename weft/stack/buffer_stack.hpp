// buffer_stack: one stack in memory that the caller provides, static or not.
//
// Design: the memory is the stack, for a coroutine that must not allocate.
//
// Limits: the stack has no guard; at most one stack is out at a time, a second acquire() gets an
// empty one. Not for several threads at once. The memory outlives the buffer_stack.
//
//   alignas(64) static std::byte memory[32 * 1024];
//   weft::buffer_stack stacks(memory);
//   weft::stack s = stacks.acquire();
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/assert.hpp"
#include "weft/stack/detail/asan_stack.hpp"
#include "weft/stack/stack.hpp"

namespace weft {

class buffer_stack {
public:
    // The memory must outlive the stack. The bytes above the last 64-byte boundary are unused; a
    // buffer with no bytes below a boundary has no stack.
    explicit buffer_stack(std::span<std::byte> memory) noexcept {
        const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
        const std::uintptr_t top = (begin + memory.size()) & ~std::uintptr_t{cache_line_bytes - 1};
        if (top > begin) whole_ = {memory.data(), memory.data() + (top - begin)};
    }
    buffer_stack(const buffer_stack&) = delete;
    buffer_stack& operator=(const buffer_stack&) = delete;

    stack acquire() noexcept {
        if (out_) return {};
        out_ = static_cast<bool>(whole_);
        return whole_;
    }

    void release(stack s) noexcept {
        WEFT_ASSERT_AT(out_ && s == whole_,
                       "release of a stack that this buffer_stack has not given", unknown_caller);
        detail::unpoison_stack(s);
        out_ = false;
    }

    std::size_t stack_bytes() const noexcept { return whole_.bytes(); }

private:
    stack whole_;
    bool out_ = false;
};

static_assert(stack_allocator<buffer_stack>);

}  // namespace weft
