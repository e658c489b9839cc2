// annotated_context: a context that announces each switch to the sanitizers.
//
// ASan needs the bounds of the stack in use and keeps a fake stack per agent; TSan keeps a shadow
// stack and a clock per agent. Design: the sanitizers' data is a member that is empty when they are
// off, so that the one annotated switch below is the plain switch in every other build.
//
// Limits: to TSan a coroutine that has started is a thread. Each costs it milliseconds, and it ends
// the program at the 8128th.
//
//   thread or resumer    annotated_context a;  a.adopt_running()     (nothing to free)
//   coroutine            annotated_context c;  c.make(stack, point); ... c.retire() once it is done
#pragma once

#include <cstddef>

#include "weft/base/platform.hpp"
#include "weft/context/context.hpp"

#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if WEFT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace weft::detail {

#if WEFT_ASAN
struct asan_party {
    void* fake_stack = nullptr;
    const void* bottom = nullptr;
    std::size_t bytes = 0;

    void on_stack(const void* limit, std::size_t n) noexcept { bottom = limit, bytes = n; }
    // `last` if this agent never runs again: ASan then frees its fake stack.
    void leave_for(asan_party& to, bool last) noexcept {
        __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack, to.bottom, to.bytes);
    }
    // Sets the bounds of `from`: for a thread's own stack, no other code declares them.
    void arrive_from(asan_party& from) noexcept {
        const void* old_bottom;
        std::size_t old_bytes;
        __sanitizer_finish_switch_fiber(fake_stack, &old_bottom, &old_bytes);
        from.bottom = old_bottom, from.bytes = old_bytes;
    }
};
#else
struct asan_party {
    void on_stack(const void*, std::size_t) noexcept {}
    void leave_for(asan_party&, bool) noexcept {}
    void arrive_from(asan_party&) noexcept {}
};
#endif

#if WEFT_TSAN
struct tsan_party {
    void* fiber = nullptr;

    void adopt_running() noexcept { fiber = __tsan_get_current_fiber(); }
    void make() noexcept { fiber = __tsan_create_fiber(0); }
    void retire() noexcept {
        if (fiber != nullptr) __tsan_destroy_fiber(fiber);
        fiber = nullptr;
    }
    // Inlined everywhere: TSan counts calls, and this call would return on another agent's count.
    static WEFT_ALWAYS_INLINE void leave_for(const tsan_party& to) noexcept {
        __tsan_switch_to_fiber(to.fiber, 0);
    }
};
#else
struct tsan_party {
    void adopt_running() noexcept {}
    void make() noexcept {}
    void retire() noexcept {}
    static void leave_for(const tsan_party&) noexcept {}
};
#endif

struct annotated_context : context {
    [[no_unique_address]] asan_party asan;
    [[no_unique_address]] tsan_party tsan;

    // For the agent that runs now and is about to switch away.
    WEFT_ALWAYS_INLINE void adopt_running() noexcept { tsan.adopt_running(); }
    // Once.
    void make(void* stack_limit, void* stack_top, const entry_point& begin) noexcept {
#if WEFT_WINDOWS
        make_context(*this, stack_limit, stack_top, begin);
#else
        make_context(*this, stack_top, begin);
#endif
        asan.on_stack(stack_limit, static_cast<std::size_t>(static_cast<char*>(stack_top) -
                                                            static_cast<char*>(stack_limit)));
        tsan.make();
    }
    void retire() noexcept { tsan.retire(); }
};

// The first thing that an agent does when it arrives, after a switch or in its entry function.
WEFT_ALWAYS_INLINE arrival arrived(annotated_context& self, arrival a) noexcept {
    self.asan.arrive_from(static_cast<annotated_context*>(a.from)->asan);
    return a;
}

WEFT_ALWAYS_INLINE arrival annotated_switch(annotated_context& from, annotated_context& to,
                                            void* word) noexcept {
    from.asan.leave_for(to.asan, false);
    tsan_party::leave_for(to.tsan);
    return arrived(from, switch_to(from, to, word));
}

// As annotated_switch, for an agent that is done: its stack may be released once `to` runs.
[[noreturn]] WEFT_ALWAYS_INLINE void annotated_switch_last(annotated_context& from,
                                                           annotated_context& to,
                                                           void* word) noexcept {
    from.asan.leave_for(to.asan, true);
    tsan_party::leave_for(to.tsan);
    switch_to_last(from, to, word);
}

}  // namespace weft::detail
