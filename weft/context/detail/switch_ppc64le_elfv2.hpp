// switch_to: the switch for little-endian ppc64 under the ELFv2 ABI, with AltiVec, VSX or neither.
//
//                 from                               to
//        +0  +------------+                 +0  +------------+
//            | pc  = 1f   |                     | pc         | --> bctr, to 1: below
//        +8  +------------+                 +8  +------------+
//            | sp  = r1   |                     | sp         | --> r1
//        +16 +------------+                 +16 +------------+
//            | toc = r2   |                     | toc        | --> r2
//        +24 +------------+                 +24 +------------+
//            | fp  = r31  |                     | fp         | --> r31
//        +32 +------------+  where a clobber+32 +------------+
//            | bp  = r30  |  is refused         | bp         |  restored by the agent itself,
//        +40 +------------+                 +40 +------------+  at its own 1:
//
//     in:  r3 = from, r4 = to, r5 = word
//     out: the same three registers, as the other agent's switch loaded them: the context that
//          switched here, this context, and the word; and r12 = pc
//
// Registers are declared clobbered, so that the compiler saves those that are live and no others.
// r31 is saved explicitly because a function with a frame pointer refuses to have it clobbered; so
// is r30 under Clang, which uses it as base pointer. r2 is the table of contents of the module that
// the agent's function is in, which no clobber restores. Code of both compilers can be mixed. The
// stack is not written, so a leaf function may keep data below r1. Each call site has its own
// `bctr`: one shared jump would have only one history for the predictor. The branch-and-link to the
// next instruction is the one form that the predictor does not take for a call.
//
// A clobber of f14 to f31 is one of the whole VSX registers vs14 to vs31, and one of v20 to v31 is
// one of vs52 to vs63. r13 is the thread's: the switch does not touch it. VRSAVE is not touched
// either: this ABI gives it no meaning. VSCR is the thread's, but for its sticky bit, which is
// given up. FPSCR is the environment (fp_environment.hpp).
//
// Limits: GCC accepts the names of AltiVec's registers for every file; one that is not compiled for
// them keeps nothing there.
#pragma once

#include "weft/base/platform.hpp"
#include "weft/context/entry_point.hpp"

namespace weft {

struct context {
    void* pc;
    void* sp;
    void* toc;
    void* fp;
    void* bp;

    // The canonical frame address of `enter`, the last frame of the context's owner: a forced
    // unwind must stop there. Above it is the header of the entry's frame.
    void* outermost(void* stack_top) const noexcept { return static_cast<char*>(stack_top) - 32; }
    void* stack_pointer() const noexcept { return sp; }
};
static_assert(sizeof(context) == 40, "the offsets in the assembly below are those of this struct");

#if WEFT_CLANG
#define WEFT_SAVE_BP "std 30, 32(3)\n\t"
#define WEFT_RESTORE_BP "\n\tld 30, 32(4)"
#define WEFT_CLOBBER_BP
#else
#define WEFT_SAVE_BP ""
#define WEFT_RESTORE_BP ""
#define WEFT_CLOBBER_BP , "r30"
#endif

WEFT_ALWAYS_INLINE arrival switch_to(context& from, context& to, void* word) noexcept {
    register context* came __asm__("r3") = &from;
    register context* self __asm__("r4") = &to;
    register void* brought __asm__("r5") = word;
    asm volatile(
        "bcl 20, 31, 2f\n"
        "2:\n\t"
        "mflr 11\n\t"
        "addi 11, 11, 1f - 2b\n\t"
        "std 11, 0(3)\n\t"
        "std 1, 8(3)\n\t"
        "std 2, 16(3)\n\t"
        "std 31, 24(3)\n\t" WEFT_SAVE_BP
        "ld 12, 0(4)\n\t"
        "ld 1, 8(4)\n\t"
        "ld 2, 16(4)\n\t"
        "ld 31, 24(4)\n\t"
        "mtctr 12\n\t"
        "bctr\n"
        "1:" WEFT_RESTORE_BP
        : "+r"(came), "+r"(self), "+r"(brought)
        :
        : "r0", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r14", "r15", "r16", "r17", "r18",
          "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28",
          "r29" WEFT_CLOBBER_BP, "fr0", "fr1", "fr2", "fr3", "fr4", "fr5", "fr6", "fr7", "fr8",
          "fr9", "fr10", "fr11", "fr12", "fr13", "fr14", "fr15", "fr16", "fr17", "fr18", "fr19",
          "fr20", "fr21", "fr22", "fr23", "fr24", "fr25", "fr26", "fr27", "fr28", "fr29", "fr30",
          "fr31", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
          "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
          "v26", "v27", "v28", "v29", "v30", "v31", "cr0", "cr1", "cr2", "cr3", "cr4", "cr5", "cr6",
          "cr7", "lr", "ctr", "xer", "memory");
    return {brought, came, self};
}

// As switch_to, for an agent that never runs again: none of its registers is saved, `from` only
// names the sender.
[[noreturn]] WEFT_ALWAYS_INLINE void switch_to_last(context& from, context& to,
                                                    void* word) noexcept {
    register context* came __asm__("r3") = &from;
    register context* self __asm__("r4") = &to;
    register void* brought __asm__("r5") = word;
    asm volatile(
        "ld 12, 0(4)\n\t"
        "ld 1, 8(4)\n\t"
        "ld 2, 16(4)\n\t"
        "ld 31, 24(4)\n\t"
        "mtctr 12\n\t"
        "bctr"
        :
        : "r"(came), "r"(self), "r"(brought)
        : "r12", "ctr", "memory");
    __builtin_unreachable();
}

#undef WEFT_SAVE_BP
#undef WEFT_RESTORE_BP
#undef WEFT_CLOBBER_BP

extern "C" void weft_context_entry() noexcept;

// Makes a context that starts at `point` on the stack below `stack_top` (16-byte aligned).
inline void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    c.pc = reinterpret_cast<void*>(&weft_context_entry);
    c.sp = c.outermost(stack_top);
    c.toc = nullptr;  // the entry finds its own
    c.fp = nullptr;
    c.bp = const_cast<entry_point*>(&point);
}

}  // namespace weft
