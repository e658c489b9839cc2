// switch_to: the switch for s390x under the ELF ABI, with and without vectors.
//
//                 from                               to
//        +0  +------------+                 +0  +------------+
//            | fp  = %r11 |                     | fp         | --> %r11
//        +8  +------------+                 +8  +------------+
//            | got = %r12 |                     | got        | --> %r12
//        +16 +------------+                 +16 +------------+
//            | lit = %r13 |                     | lit        | --> %r13
//        +24 +------------+                 +24 +------------+
//            | pc  = 1f   |                     | pc         | --> br, to 1: below
//        +32 +------------+                 +32 +------------+
//            | sp  = %r15 |                     | sp         | --> %r15
//        +40 +------------+                 +40 +------------+
//
//     in:  %r2 = from, %r3 = to, %r4 = word
//     out: the same three registers, as the other agent's switch loaded them: the context that
//          switched here, this context, and the word
//
// Registers are declared clobbered, so that the compiler saves those that are live and no others.
// %r11 to %r15 are saved explicitly, with one instruction: the frame pointer and the stack pointer
// are refused, and so may be the pointers to the global offset table and to the literals. The pc
// takes the place of the return address %r14 between them. The stack is not written; what is above
// %r15 for a called function to save its registers is the compiler's, as there is no call. Each
// call site has its own `br`: one shared jump would have only one history for the predictor.
//
// Of %f8 to %f15, which a call keeps, the vector registers %v8 to %v15 are a further half, which no
// call keeps: a clobber of the one is a clobber of both. The access registers hold the thread
// pointer: the switch does not touch them. The FPC is the environment (fp_environment.hpp).
//
// Limits: GCC accepts the names of vector registers only if the whole file is compiled for them: a
// function that gets them by a target attribute must not suspend inline.
#pragma once

#include "weft/base/platform.hpp"
#include "weft/context/entry_point.hpp"

namespace weft {

struct context {
    void* fp;
    void* got;
    void* lit;
    void* pc;
    void* sp;

    // The canonical frame address of `enter`, the last frame of the context's owner: a forced
    // unwind must stop there.
    void* outermost(void* stack_top) const noexcept { return stack_top; }
    void* stack_pointer() const noexcept { return sp; }
};
static_assert(sizeof(context) == 40, "the offsets in the assembly below are those of this struct");

#if defined(__VX__)
#define WEFT_CLOBBER_VECTOR                                                                      \
    , "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", \
        "v29", "v30", "v31"
#else
#define WEFT_CLOBBER_VECTOR
#endif

WEFT_ALWAYS_INLINE arrival switch_to(context& from, context& to, void* word) noexcept {
    register context* came __asm__("r2") = &from;
    register context* self __asm__("r3") = &to;
    register void* brought __asm__("r4") = word;
    asm volatile(
        "larl %%r14, 1f\n\t"
        "stmg %%r11, %%r15, 0(%%r2)\n\t"
        "lmg %%r11, %%r15, 0(%%r3)\n\t"
        "br %%r14\n"
        "1:"
        : "+r"(came), "+r"(self), "+r"(brought)
        :
        : "r0", "r1", "r5", "r6", "r7", "r8", "r9", "r10", "r14", "f0", "f1", "f2", "f3", "f4",
          "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14",
          "f15" WEFT_CLOBBER_VECTOR, "memory", "cc");
    return {brought, came, self};
}

// As switch_to, for an agent that never runs again: none of its registers is saved, `from` only
// names the sender.
[[noreturn]] WEFT_ALWAYS_INLINE void switch_to_last(context& from, context& to,
                                                    void* word) noexcept {
    register context* came __asm__("r2") = &from;
    register context* self __asm__("r3") = &to;
    register void* brought __asm__("r4") = word;
    asm volatile(
        "lmg %%r11, %%r15, 0(%%r3)\n\t"
        "br %%r14"
        :
        : "r"(came), "r"(self), "r"(brought)
        : "memory");
    __builtin_unreachable();
}

#undef WEFT_CLOBBER_VECTOR

extern "C" void weft_context_entry() noexcept;

// Makes a context that starts at `point` on the stack below `stack_top` (16-byte aligned), under
// the 160 bytes in which a called function saves registers of its caller.
inline void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    c.fp = nullptr;
    c.got = const_cast<entry_point*>(&point);
    c.lit = &c;
    c.pc = reinterpret_cast<void*>(&weft_context_entry);
    c.sp = static_cast<char*>(stack_top) - 160;
}

}  // namespace weft
