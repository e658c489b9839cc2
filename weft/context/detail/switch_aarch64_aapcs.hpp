// switch_to: the switch for aarch64 under the procedure call standard AAPCS64.
//
//                 from                               to
//        +0  +------------+                 +0  +------------+
//            | pc  = 1f   |                     | pc         | --> br, to 1: below
//        +8  +------------+                 +8  +------------+
//            | sp  = sp   |                     | sp         | --> sp
//        +16 +------------+                 +16 +------------+
//            | fp  = x29  |                     | fp         | --> x29
//        +24 +------------+                 +24 +------------+
//            | x19 = x19  |                     | x19        | --> x19
//            +------------+                     +------------+
//
//     in:  x0 = from, x1 = to, x2 = word
//     out: the same three registers, as the other agent's switch loaded them: the context that
//          switched here, this context, and the word
//
// Registers are declared clobbered, so that the compiler saves those that are live and no others.
// x29 is saved explicitly because a function with a frame pointer refuses to have it clobbered; so
// is x19, which Clang uses as base pointer. Both are one half of a pair, which costs no instruction
// under GCC either, so code of both compilers can be mixed. x18 is the platform's: the switch does
// not touch it, and as the compiler may use it on Linux, it is declared clobbered there. The stack
// is not written. Each call site has its own `br`: a `ret` would never match a call and always be
// mispredicted, and one shared branch would have only one history for the predictor.
//
// Branch targets (BTI): if the user compiles with -mbranch-protection=bti, the landing label has a
// `bti j`, which is one instruction more. Return addresses that are signed (PAC-RET) stay on their
// stack, and are signed with its address: they are as valid after the switch, on any thread. The pc
// of a context is not signed.
//
// Limits: a shadow call stack (Clang's sanitizer, in x18) is not switched: such a file is refused.
// The state of SVE, its predicates and the first-fault register included, is given up like any
// vector register. That of SME is the processor's, as across any call of a function with a private
// ZA: code that suspends is not in streaming mode and has no live ZA.
#pragma once

#include "weft/base/platform.hpp"
#include "weft/context/entry_point.hpp"

#if WEFT_HAS_FEATURE(shadow_call_stack)
#error "the switch does not switch shadow call stacks"
#endif

namespace weft {

struct context {
    void* pc;
    void* sp;
    void* fp;
    void* x19;

    // The canonical frame address of `enter`, the last frame of the context's owner: a forced
    // unwind must stop there.
    void* outermost(void* stack_top) const noexcept { return stack_top; }
    void* stack_pointer() const noexcept { return sp; }
};
static_assert(sizeof(context) == 32, "the offsets in the assembly below are those of this struct");

#if defined(__ARM_FEATURE_BTI_DEFAULT)
#define WEFT_LANDING "hint 36\n\t"  // bti j, by the name that every assembler knows
#else
#define WEFT_LANDING ""
#endif

// The first-fault register of SVE, in which Clang keeps no value and has no name for.
#if WEFT_CLANG
#define WEFT_CLOBBER_FFR
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winline-asm"  // x18, where -ffixed-x18 has reserved it
#else
#define WEFT_CLOBBER_FFR , "ffr"
#endif

WEFT_ALWAYS_INLINE arrival switch_to(context& from, context& to, void* word) noexcept {
    register context* came __asm__("x0") = &from;
    register context* self __asm__("x1") = &to;
    register void* brought __asm__("x2") = word;
    asm volatile(
        "adr x16, 1f\n\t"
        "mov x17, sp\n\t"
        "stp x16, x17, [x0]\n\t"
        "stp x29, x19, [x0, 16]\n\t"
        "ldp x16, x17, [x1]\n\t"
        "ldp x29, x19, [x1, 16]\n\t"
        "mov sp, x17\n\t"
        "br x16\n"
        "1:\n\t" WEFT_LANDING
        : "+r"(came), "+r"(self), "+r"(brought)
        :
        : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
          "x17", "x18", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0",
          "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
          "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
          "v28", "v29", "v30", "v31", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9",
          "p10", "p11", "p12", "p13", "p14", "p15" WEFT_CLOBBER_FFR, "memory", "cc");
    return {brought, came, self};
}

#if WEFT_CLANG
#pragma clang diagnostic pop
#endif

// As switch_to, for an agent that never runs again: none of its registers is saved, `from` only
// names the sender.
[[noreturn]] WEFT_ALWAYS_INLINE void switch_to_last(context& from, context& to,
                                                    void* word) noexcept {
    register context* came __asm__("x0") = &from;
    register context* self __asm__("x1") = &to;
    register void* brought __asm__("x2") = word;
    asm volatile(
        "ldp x16, x17, [x1]\n\t"
        "ldp x29, x19, [x1, 16]\n\t"
        "mov sp, x17\n\t"
        "br x16"
        :
        : "r"(came), "r"(self), "r"(brought)
        : "x16", "x17", "memory");
    __builtin_unreachable();
}

#undef WEFT_LANDING
#undef WEFT_CLOBBER_FFR

extern "C" void weft_context_entry() noexcept;

// Makes a context that starts at `point` on the stack below `stack_top` (16-byte aligned).
inline void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    c.pc = reinterpret_cast<void*>(&weft_context_entry);
    c.sp = stack_top;
    c.fp = nullptr;  // ends a chain of frame pointers
    c.x19 = const_cast<entry_point*>(&point);
}

}  // namespace weft
