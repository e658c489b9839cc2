// switch_to: the switch for i386 under the System V ABI, position-independent or not.
//
//                 from                               to
//        +0  +------------+                 +0  +------------+
//            | pc  = 1f   |                     | pc         | --> jmp, to 1: below
//        +4  +------------+                 +4  +------------+
//            | sp  = %esp |                     | sp         | --> %esp
//        +8  +------------+                 +8  +------------+
//            | bp  = %ebp |                     | bp         | --> %ebp
//        +12 +------------+                 +12 +------------+
//            | si  = %esi |  where a clobber    | si         |  restored by the agent itself,
//        +16 +------------+  is refused     +16 +------------+  at its own 1:
//
//     in:  %eax = from, %edx = to, %ecx = word
//     out: the same three registers, as the other agent's switch loaded them: the context that
//          switched here, this context, and the word
//
// Registers are declared clobbered, so that the compiler saves those that are live and no others;
// %ebx is among them, whether or not it holds the address of the global offset table. %ebp is saved
// explicitly because a function with a frame pointer refuses to have it clobbered; so is %esi under
// Clang, which uses it as base pointer. Code of both compilers can be mixed.
//
// Position-independent code has no instruction that yields the address of its own label. A `call`
// of the next instruction pushes it, which is what processors expect of that form: it does not
// enter their stack of return addresses, nor the shadow stack. There is no red zone in this ABI, so
// the push below %esp harms nothing. Each call site has its own `jmp`: a `ret` would never match a
// call and always be mispredicted, and one shared jump would have only one history for the
// predictor.
//
// Limits: as on x86-64, shadow stacks are not switched, and the tiles of AMX and their
// configuration are given up. GCC accepts the names of the registers of MMX, SSE and AVX-512 only
// if the whole file is compiled for them: a function that gets them by a target attribute must not
// suspend inline.
#pragma once

#include "weft/base/platform.hpp"
#include "weft/context/entry_point.hpp"

namespace weft {

struct context {
    void* pc;
    void* sp;
    void* bp;
    void* si;

    // The canonical frame address of `enter`, the last frame of the context's owner: a forced
    // unwind must stop there. Above it are the arguments of `enter`.
    void* outermost(void* stack_top) const noexcept { return static_cast<char*>(stack_top) - 16; }
    void* stack_pointer() const noexcept { return sp; }
};
static_assert(sizeof(context) == 4 * sizeof(void*),
              "the offsets in the assembly below are those of this struct");

#if defined(__CET__) && (__CET__ & 1)
#define WEFT_LANDING "\n\tendbr32"
#else
#define WEFT_LANDING ""
#endif

#if defined(__PIC__)
#define WEFT_SAVE_PC    \
    "call 2f\n"         \
    "2:\n\t"            \
    "popl 0(%%eax)\n\t" \
    "addl $1f - 2b, 0(%%eax)\n\t"
#else
#define WEFT_SAVE_PC "movl $1f, 0(%%eax)\n\t"
#endif

#if WEFT_CLANG
#define WEFT_SAVE_SI "movl %%esi, 12(%%eax)\n\t"
#define WEFT_RESTORE_SI "\n\tmovl 12(%%edx), %%esi"
#define WEFT_CLOBBER_SI
#else
#define WEFT_SAVE_SI ""
#define WEFT_RESTORE_SI ""
#define WEFT_CLOBBER_SI , "esi"
#endif

// Registers that not every processor has, see Limits. Clang accepts their names for every target.
#if WEFT_CLANG || defined(__MMX__)
#define WEFT_CLOBBER_MMX , "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7"
#else
#define WEFT_CLOBBER_MMX
#endif

#if WEFT_CLANG || defined(__SSE__)
#define WEFT_CLOBBER_SSE , "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7"
#else
#define WEFT_CLOBBER_SSE
#endif

#if WEFT_CLANG || defined(__AVX512F__)
#define WEFT_CLOBBER_AVX512 , "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define WEFT_CLOBBER_AVX512
#endif

WEFT_ALWAYS_INLINE arrival switch_to(context& from, context& to, void* word) noexcept {
    context* came = &from;
    context* self = &to;
    asm volatile(
        WEFT_SAVE_PC
        "movl %%esp, 4(%%eax)\n\t"
        "movl %%ebp, 8(%%eax)\n\t" WEFT_SAVE_SI
        "movl 4(%%edx), %%esp\n\t"
        "movl 8(%%edx), %%ebp\n\t"
        "jmp *0(%%edx)\n"
        "1:" WEFT_LANDING WEFT_RESTORE_SI
        : "+a"(came), "+d"(self), "+c"(word)
        :
        : "ebx", "edi" WEFT_CLOBBER_SI WEFT_CLOBBER_SSE WEFT_CLOBBER_AVX512 WEFT_CLOBBER_MMX, "st",
          "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory", "cc");
    return {word, came, self};
}

// As switch_to, for an agent that never runs again: none of its registers is saved, `from` only
// names the sender.
[[noreturn]] WEFT_ALWAYS_INLINE void switch_to_last(context& from, context& to,
                                                    void* word) noexcept {
    asm volatile(
        "movl 4(%%edx), %%esp\n\t"
        "movl 8(%%edx), %%ebp\n\t"
        "jmp *0(%%edx)"
        :
        : "a"(&from), "d"(&to), "c"(word)
        : "memory");
    __builtin_unreachable();
}

#undef WEFT_LANDING
#undef WEFT_SAVE_PC
#undef WEFT_SAVE_SI
#undef WEFT_RESTORE_SI
#undef WEFT_CLOBBER_SI
#undef WEFT_CLOBBER_MMX
#undef WEFT_CLOBBER_SSE
#undef WEFT_CLOBBER_AVX512

extern "C" void weft_context_entry() noexcept;

// Makes a context that starts at `point` on the stack below `stack_top` (16-byte aligned).
inline void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    c.pc = reinterpret_cast<void*>(&weft_context_entry);
    c.sp = c.outermost(stack_top);
    c.bp = nullptr;  // ends a chain of frame pointers
    c.si = const_cast<entry_point*>(&point);
}

}  // namespace weft
