// switch_to: the switch for riscv64 under the ABIs lp64 and lp64d, with and without vectors.
//
//                 from                               to
//        +0  +------------+                 +0  +------------+
//            | pc  = 1f   |  by the agent   |   | pc         | --> jalr, to 1: below
//        +8  +------------+  that arrives   +8  +------------+
//            | sp  = sp   |                     | sp         | --> sp
//        +16 +------------+                 +16 +------------+
//            | fp  = s0   |                     | fp         | --> s0
//        +24 +------------+  where a clobber+24 +------------+
//            | bp  = s1   |  is refused         | bp         |  restored by the agent itself,
//        +32 +------------+                 +32 +------------+  at its own 1:
//
//     in:  a0 = from, a1 = to, a2 = word
//     out: the same three registers, as the other agent's switch loaded them: the context that
//          switched here, this context, and the word
//
// The jump of a switch leaves the address after it in t2, and the agent that arrives stores it as
// the pc of the context that it comes from: an address that is computed would cost two
// instructions more. t1 and t2 are not the registers that the return predictor takes for a call's
// or a return's.
//
// Registers are declared clobbered, so that the compiler saves those that are live and no others.
// s0 is saved explicitly because a function with a frame pointer refuses to have it clobbered; so
// is s1 under Clang, which uses it as base pointer. Code of both compilers can be mixed. The stack
// is not written. Each call site has its own jump: one shared jump would have only one history for
// the predictor.
//
// gp is the program's and tp the thread's: the switch does not touch them. All vector registers,
// vl and vtype are given up, as across any call; the processor keeps vxrm and vxsat, which belong
// to the thread.
//
// Limits: GCC accepts the names of vector registers only if the whole file is compiled for them: a
// function that gets them by a target attribute must not suspend inline. A shadow call stack
// (Clang's sanitizer, in gp) is not switched: such a file is refused.
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
    void* bp;

    // The canonical frame address of `enter`, the last frame of the context's owner: a forced
    // unwind must stop there.
    void* outermost(void* stack_top) const noexcept { return stack_top; }
    void* stack_pointer() const noexcept { return sp; }
};
static_assert(sizeof(context) == 32, "the offsets in the assembly below are those of this struct");

#if WEFT_CLANG
#define WEFT_SAVE_BP "sd s1, 24(a0)\n\t"
#define WEFT_RESTORE_BP "\n\tld s1, 24(a1)"
#define WEFT_CLOBBER_BP
#else
#define WEFT_SAVE_BP ""
#define WEFT_RESTORE_BP ""
#define WEFT_CLOBBER_BP , "s1"
#endif

#if defined(__riscv_flen)
#define WEFT_CLOBBER_FLOATING                                                                      \
    , "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "ft10", "ft11", "fa0", \
        "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs0", "fs1", "fs2", "fs3", "fs4", "fs5", \
        "fs6", "fs7", "fs8", "fs9", "fs10", "fs11"
#else
#define WEFT_CLOBBER_FLOATING
#endif

#if WEFT_CLANG || defined(__riscv_vector)
#define WEFT_CLOBBER_VECTOR                                                                        \
    , "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",      \
        "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", \
        "v27", "v28", "v29", "v30", "v31", "vl", "vtype"
#else
#define WEFT_CLOBBER_VECTOR
#endif

WEFT_ALWAYS_INLINE arrival switch_to(context& from, context& to, void* word) noexcept {
    register context* came __asm__("a0") = &from;
    register context* self __asm__("a1") = &to;
    register void* brought __asm__("a2") = word;
    asm volatile(WEFT_SAVE_BP
                 "sd sp, 8(a0)\n\t"
                 "sd s0, 16(a0)\n\t"
                 "ld t1, 0(a1)\n\t"
                 "ld sp, 8(a1)\n\t"
                 "ld s0, 16(a1)\n\t"
                 "jalr t2, 0(t1)\n"
                 "1:\n\t"
                 "sd t2, 0(a0)" WEFT_RESTORE_BP
                 : "+r"(came), "+r"(self), "+r"(brought)
                 :
                 : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a3", "a4", "a5", "a6", "a7",
                   "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10",
                   "s11" WEFT_CLOBBER_BP WEFT_CLOBBER_FLOATING WEFT_CLOBBER_VECTOR, "memory");
    return {brought, came, self};
}

// As switch_to, for an agent that never runs again: none of its registers is saved. `from` names
// the sender, and its pc is written once more.
[[noreturn]] WEFT_ALWAYS_INLINE void switch_to_last(context& from, context& to,
                                                    void* word) noexcept {
    register context* came __asm__("a0") = &from;
    register context* self __asm__("a1") = &to;
    register void* brought __asm__("a2") = word;
    asm volatile(
        "ld t1, 0(a1)\n\t"
        "ld sp, 8(a1)\n\t"
        "ld s0, 16(a1)\n\t"
        "jr t1"
        :
        : "r"(came), "r"(self), "r"(brought)
        : "t1", "memory");
    __builtin_unreachable();
}

#undef WEFT_SAVE_BP
#undef WEFT_RESTORE_BP
#undef WEFT_CLOBBER_BP
#undef WEFT_CLOBBER_FLOATING
#undef WEFT_CLOBBER_VECTOR

extern "C" void weft_context_entry() noexcept;

// Makes a context that starts at `point` on the stack below `stack_top` (16-byte aligned).
inline void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    c.pc = reinterpret_cast<void*>(&weft_context_entry);
    c.sp = stack_top;
    c.fp = nullptr;  // ends a chain of frame pointers
    c.bp = const_cast<entry_point*>(&point);
}

}  // namespace weft
