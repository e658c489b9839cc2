// switch_to: the switch by POSIX ucontext: for processors that have no assembly here.
//
// swapcontext saves all that the ABI preserves and the floating-point environment. The signal mask
// stays the thread's: one system call reads it, one sets it. Word and sender are passed in the
// target.
//
// Limits: a hundred times slower than the assembly. The floating-point environment always belongs
// to the agent and cannot be shared.
#pragma once

#include <ucontext.h>

#include "weft/context/entry_point.hpp"

namespace weft {

struct context {
    ucontext_t state;
    arrival came;               // written by the agent that switches to this context
    const entry_point* begins;  // where a fresh context starts
    void* ends;                 // the canonical frame address of the last frame below this layer's

    // An assignment copies only the suspended state; the fields that make_context set stay.
    context& operator=(const context& other) noexcept {
        state = other.state;
        came = other.came;
        return *this;
    }

    void* outermost(void*) const noexcept { return ends; }
    void* stack_pointer() const noexcept;
};

arrival switch_to(context& from, context& to, void* word) noexcept;

// As switch_to, for an agent that never runs again.
[[noreturn]] inline void switch_to_last(context& from, context& to, void* word) noexcept {
    switch_to(from, to, word);
    __builtin_unreachable();
}

void make_context(context& c, void* stack_top, const entry_point& point) noexcept;

}  // namespace weft
