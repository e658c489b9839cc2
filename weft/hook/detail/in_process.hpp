// in_process: where a hooked call is made: in a fiber whose hooks are on, or elsewhere.
//
// Design: one byte for the process and one for the fiber decide, so that a call outside of fibers
// pays for the check of one thread-local word and nothing else.
//
// After fork() the child's hooks are off: what it shares with its parent (epoll sets, rings) is not
// its own. A child that shares the parent's memory as well (vfork) has the parent's byte, so that
// whatever would wait or change a table asks is_own_process() first.
//
// Model: none, each bit stands for itself, and is set once.
#pragma once

#include <sys/types.h>

#include "weft/base/detail/atomic.hpp"
#include "weft/fiber/detail/fiber_core.hpp"
#include "weft/hook/detail/shared_child.hpp"

namespace weft::hook {

using weft::detail::fiber_core;

// What is true for the whole process.
struct process_state {
    static constexpr unsigned char alive = 1;       // no child of the process that loaded the hooks
    static constexpr unsigned char by_default = 2;  // fibers without a setting have hooks
    static constexpr unsigned char files = 4;       // options::files
    static constexpr unsigned char pthreads = 8;    // options::pthreads
    static constexpr unsigned char selves = 16;     // options::pthread_self

    // Orders: relaxed, each bit stands for itself.
    static atomic<unsigned char> word;

    WEFT_ALWAYS_INLINE static bool has(unsigned char bits) noexcept {
        return (word.load(std::memory_order_relaxed) & bits) == bits;
    }
    static void set(unsigned char bits, bool on) noexcept {
        if (on)
            word.fetch_or(bits, std::memory_order_relaxed);
        else
            word.fetch_and(static_cast<unsigned char>(~bits), std::memory_order_relaxed);
    }
};

// Whether the caller runs on a fiber's stack. For units that are compiled without sanitizers while
// the rest has them: a context has other members there.
bool is_in_fiber() noexcept;

#if !WEFT_BUILT_UNLIKE
// The fiber on whose stack the caller runs, or that has resumed the coroutine of the caller.
// Between two turns a loop may still name the fiber that had the last turn.
WEFT_ALWAYS_INLINE fiber_core* fiber_here() noexcept {
    fiber_core* const f = fiber_core::current();
    if (f == nullptr) [[likely]]
        return nullptr;
    // If no coroutine runs, the fiber may be done, and is not read.
    if (weft::detail::current() == nullptr) return nullptr;
    return f->runs_here() || f->kind->runs_here(*f) ? f : nullptr;
}

// As fiber_here(), but null if the fiber's hooks are off.
WEFT_ALWAYS_INLINE fiber_core* hooked_fiber() noexcept {
    fiber_core* const f = fiber_here();
    if (f == nullptr) [[likely]]
        return nullptr;
    const unsigned char all = process_state::word.load(std::memory_order_relaxed);
    const bool on = f->hooked == fiber_core::hooks::by_default
                        ? (all & process_state::by_default) != 0
                        : f->hooked == fiber_core::hooks::on;
    return on && (all & process_state::alive) != 0 ? f : nullptr;
}

#endif

bool is_own_number() noexcept;

// False in a child that shares this process's memory, and in one of fork() that has no hooks.
inline bool is_own_process() noexcept { return !may_be_shared_child() || is_own_number(); }

}  // namespace weft::hook
