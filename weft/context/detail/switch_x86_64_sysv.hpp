// switch_to: the switch for x86-64 under the System V ABI.
//
//                 from                               to
//        +0  +------------+                 +0  +------------+
//            | pc  = 1f   |                     | pc         | --> jmp, to 1: below
//        +8  +------------+                 +8  +------------+
//            | sp  = %rsp |                     | sp         | --> %rsp
//        +16 +------------+                 +16 +------------+
//            | bp  = %rbp |                     | bp         | --> %rbp
//        +24 +------------+                 +24 +------------+
//            | bx  = %rbx |  where a clobber    | bx         |  restored by the agent itself,
//        +32 +------------+  is refused     +32 +------------+  at its own 1:
//
//     in:  %rdi = from, %rsi = to, %rdx = word
//     out: the same three registers, as the other agent's switch loaded them: the context that
//          switched here, this context, and the word
//
// Registers are declared clobbered, so that the compiler saves those that are live and no others.
// %rbp is saved explicitly because a function with a frame pointer refuses to have it clobbered; so
// is %rbx under Clang, which uses it as base pointer. Code of both compilers can be mixed. The
// stack is not written, so a leaf function may keep data in the red zone below %rsp. Each call site
// has its own `jmp`: a `ret` would never match a call and always be mispredicted, and one shared
// jump would have only one history for the predictor.
//
// Control-flow enforcement: if the user compiles with -fcf-protection, the landing label has an
// endbr64, so indirect-branch tracking works. Shadow stacks are not switched, so no object of weft
// claims them (cmake/weft_layer.cmake), and the linker clears the claim of the whole program.
//
// Limits: GCC accepts the names of AVX-512's and APX's registers only if the whole file is compiled
// for them: a function that gets them by a target attribute must not suspend inline. The tiles of
// AMX and their configuration are the processor's, as across any call: code that suspends loads
// them again.
#pragma once

#include "weft/base/platform.hpp"
#include "weft/context/entry_point.hpp"

namespace weft {

struct context {
    void* pc;
    void* sp;
    void* bp;
    void* bx;

    // The canonical frame address of `enter`, the last frame of the context's owner: a forced
    // unwind must stop there.
    void* outermost(void* stack_top) const noexcept { return stack_top; }
    void* stack_pointer() const noexcept { return sp; }
};
static_assert(sizeof(context) == 32, "the offsets in the assembly below are those of this struct");

#if defined(__CET__) && (__CET__ & 1)
#define WEFT_LANDING "endbr64\n\t"
#else
#define WEFT_LANDING ""
#endif

#if WEFT_CLANG
#define WEFT_SAVE_BX "movq %%rbx, 24(%%rdi)\n\t"
#define WEFT_RESTORE_BX "movq 24(%%rsi), %%rbx\n\t"
#define WEFT_CLOBBER_BX
#else
#define WEFT_SAVE_BX ""
#define WEFT_RESTORE_BX ""
#define WEFT_CLOBBER_BX , "rbx"
#endif

// Registers that not every processor has. Clang accepts their names for every target, so a function
// with its own target attribute is correct as well; GCC accepts only those of the whole file's
// target.
#if WEFT_CLANG || defined(__MMX__)
#define WEFT_CLOBBER_MMX , "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7"
#else
#define WEFT_CLOBBER_MMX
#endif

#if WEFT_CLANG || defined(__AVX512F__)
#define WEFT_CLOBBER_AVX512                                                                       \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
        "k6", "k7"
#else
#define WEFT_CLOBBER_AVX512
#endif

#if defined(__APX_F__) || (WEFT_CLANG && __clang_major__ >= 18)
#define WEFT_CLOBBER_APX                                                                         \
    , "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", \
        "r29", "r30", "r31"
#else
#define WEFT_CLOBBER_APX
#endif

WEFT_ALWAYS_INLINE arrival switch_to(context& from, context& to, void* word) noexcept {
    context* came = &from;
    context* self = &to;
    asm volatile(
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rax, 0(%%rdi)\n\t"
        "movq %%rsp, 8(%%rdi)\n\t"
        "movq %%rbp, 16(%%rdi)\n\t" WEFT_SAVE_BX
        "movq 8(%%rsi), %%rsp\n\t"
        "movq 16(%%rsi), %%rbp\n\t"
        "jmpq *0(%%rsi)\n"
        "1:\n\t" WEFT_LANDING WEFT_RESTORE_BX
        : "+D"(came), "+S"(self), "+d"(word)
        :
        : "rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
          "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
          "xmm13", "xmm14",
          "xmm15" WEFT_CLOBBER_BX WEFT_CLOBBER_AVX512 WEFT_CLOBBER_APX WEFT_CLOBBER_MMX, "st",
          "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory", "cc");
    return {word, came, self};
}

// As switch_to, for an agent that never runs again: none of its registers is saved, `from` only
// names the sender.
[[noreturn]] WEFT_ALWAYS_INLINE void switch_to_last(context& from, context& to,
                                                    void* word) noexcept {
    asm volatile(
        "movq 8(%%rsi), %%rsp\n\t"
        "movq 16(%%rsi), %%rbp\n\t"
        "jmpq *0(%%rsi)"
        :
        : "D"(&from), "S"(&to), "d"(word)
        : "memory");
    __builtin_unreachable();
}

#undef WEFT_LANDING
#undef WEFT_SAVE_BX
#undef WEFT_RESTORE_BX
#undef WEFT_CLOBBER_BX
#undef WEFT_CLOBBER_MMX
#undef WEFT_CLOBBER_AVX512
#undef WEFT_CLOBBER_APX

extern "C" void weft_context_entry() noexcept;

// Makes a context that starts at `point` on the stack below `stack_top` (16-byte aligned).
inline void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    c.pc = reinterpret_cast<void*>(&weft_context_entry);
    c.sp = stack_top;
    c.bp = nullptr;  // ends a chain of frame pointers
    c.bx = const_cast<entry_point*>(&point);
}

}  // namespace weft
