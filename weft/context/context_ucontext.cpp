// context_ucontext: how a context starts and is switched by POSIX ucontext (switch_ucontext.hpp).
#include "weft/context/context.hpp"

#if WEFT_BACKEND_UCONTEXT

#include <signal.h>

#include <cstdint>

#include "weft/base/assert.hpp"

namespace weft {
namespace {

// The outermost frame that a forced unwind includes, see context::outermost.
WEFT_NOINLINE void enter_body(context* self) {
    self->ends = __builtin_dwarf_cfa();
    self->begins->enter(self->came.from, self, self->came.word);
    asm volatile("");  // not a tail call: this frame must stay
}

// makecontext passes ints only, so a pointer is passed as two halves.
void enter(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<context*>((static_cast<std::uintptr_t>(high) << 32) | low);
#if WEFT_EXCEPTIONS
    try {
        enter_body(self);
    } catch (...) {
        self->begins->escaped(self);
    }
#else
    enter_body(self);
#endif
    self->begins->left(self);
    fail("the last function of a context returned");
}

// Each of these calls asks the system for the signal mask. If the system refuses, the call does
// nothing, and every later switch of this thread is refused too: the program cannot continue.
void demand(bool done) noexcept {
    if (!done) [[unlikely]]
        fail("the system refuses rt_sigprocmask, which a switch by ucontext needs", {},
             unknown_caller);
}

}  // namespace

arrival switch_to(context& from, context& to, void* word) noexcept {
    to.came = {word, &from, &to};
    // The signal mask is the thread's, but swapcontext sets the mask stored in the context.
    demand(pthread_sigmask(SIG_SETMASK, nullptr, &to.state.uc_sigmask) == 0);
    demand(swapcontext(&from.state, &to.state) == 0);
    return from.came;
}

void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    // makecontext takes the low end of the stack, but uses only the distance to the top.
    constexpr std::size_t claimed_bytes = 2048;
    demand(getcontext(&c.state) == 0);
    c.state.uc_stack.ss_sp = static_cast<char*>(stack_top) - claimed_bytes;
    c.state.uc_stack.ss_size = claimed_bytes;
    c.state.uc_link = nullptr;
    c.begins = &point;
    c.ends = stack_top;
    const auto address = reinterpret_cast<std::uintptr_t>(&c);
    makecontext(&c.state, reinterpret_cast<void (*)()>(&enter), 2,
                static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
}

void* context::stack_pointer() const noexcept {
#if WEFT_X86_64
    return reinterpret_cast<void*>(state.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
    return reinterpret_cast<void*>(state.uc_mcontext.sp);
#else
#error "say where this processor's ucontext keeps the stack pointer"
#endif
}

}  // namespace weft

#endif
