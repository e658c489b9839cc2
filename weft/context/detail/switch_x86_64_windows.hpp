// switch_to: the switch for x86-64 under Windows' ABI, by the assembler of GCC and Clang.
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
//            | handlers   | <-- TIB +0x00       | handlers   | --> TIB +0x00
//        +40 +------------+                 +40 +------------+
//            | base       | <-- TIB +0x08       | base       | --> TIB +0x08
//        +48 +------------+                 +48 +------------+
//            | limit      | <-- TIB +0x10       | limit      | --> TIB +0x10
//        +56 +------------+                 +56 +------------+
//            | allocation | <-- TIB +0x1478     | allocation | --> TIB +0x1478
//        +64 +------------+                 +64 +------------+
//            | fiber      | <-- TIB +0x20       | fiber      | --> TIB +0x20
//        +72 +------------+                 +72 +------------+
//
//     in:  %rcx = from, %rdx = to, %r8 = word
//     out: the same three registers, as the other agent's switch loaded them: the context that
//          switched here, this context, and the word
//
// Registers are declared clobbered, so that the compiler saves those that are live and no others:
// of xmm6 to xmm15, which this ABI has a call keep, a function saves what its caller may have in
// them. %rbp is saved explicitly because a function with a frame pointer refuses to have it
// clobbered; so is %rbx under Clang, which uses it as base pointer. Each call site has its own
// `jmp`: a `ret` would never match a call and always be mispredicted, and one shared jump would
// have only one history for the predictor. There is no red zone in this ABI.
//
// The thread's information block (TIB, at %gs:0) says where the stack of the thread is: its highest
// address (base), the lowest that is committed (limit), the lowest that is reserved (allocation).
// The system takes an exception for lost whose frames are not in between, commits the next page of
// the thread's own stack by them, and moves the limit then: hence all three are the agent's, and
// are stored anew whenever it leaves. What the fibers of Windows have is another word of it; an
// agent that has become one stays one, and no other agent is.
//
// The list of handlers is not of this processor; but Wine's own libraries have theirs in it, in
// frames of the stack, and ask each that is below the frame of an exception, whatever stack it is
// on. That word and the next are moved at once, by a register that is clobbered anyway.
//
// Limits: as on x86-64 elsewhere, shadow stacks are not switched.
#pragma once

#include <cstdint>

#include "weft/base/platform.hpp"
#include "weft/context/entry_point.hpp"

namespace weft {

struct context {
    void* pc;
    void* sp;
    void* bp;
    void* bx;
    void* tib_handlers;
    void* tib_base;
    void* tib_limit;
    void* tib_allocation;
    void* tib_fiber;

    // The canonical frame address of `enter`, the last frame of the context's owner: a forced
    // unwind must stop there. Above it are the room for the four arguments of `enter`, which the
    // ABI wants, and the return address of the entry.
    void* outermost(void* stack_top) const noexcept { return static_cast<char*>(stack_top) - 48; }
    void* stack_pointer() const noexcept { return sp; }
};
static_assert(sizeof(context) == 72, "the offsets in the assembly below are those of this struct");

#if WEFT_CLANG
#define WEFT_SAVE_BX "movq %%rbx, 24(%%rcx)\n\t"
#define WEFT_RESTORE_BX "\n\tmovq 24(%%rdx), %%rbx"
#define WEFT_CLOBBER_BX
#else
#define WEFT_SAVE_BX ""
#define WEFT_RESTORE_BX ""
#define WEFT_CLOBBER_BX , "rbx"
#endif

// Registers that not every processor has. Clang accepts their names for every target; GCC accepts
// only those of the whole file's target.
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

// What the thread's information block is to say once the other agent runs.
#define WEFT_LOAD_TIB              \
    "movups 32(%%rdx), %%xmm0\n\t" \
    "movups %%xmm0, 0(%%r9)\n\t"   \
    "movq 48(%%rdx), %%rax\n\t"    \
    "movq %%rax, 0x10(%%r9)\n\t"   \
    "movq 56(%%rdx), %%rax\n\t"    \
    "movq %%rax, 0x1478(%%r9)\n\t" \
    "movq 64(%%rdx), %%rax\n\t"    \
    "movq %%rax, 0x20(%%r9)\n\t"

WEFT_ALWAYS_INLINE arrival switch_to(context& from, context& to, void* word) noexcept {
    register context* came __asm__("rcx") = &from;
    register context* self __asm__("rdx") = &to;
    register void* brought __asm__("r8") = word;
    asm volatile(
        "movq %%gs:0x30, %%r9\n\t"
        "leaq 1f(%%rip), %%rax\n\t"
        "movq %%rax, 0(%%rcx)\n\t"
        "movq %%rsp, 8(%%rcx)\n\t"
        "movq %%rbp, 16(%%rcx)\n\t" WEFT_SAVE_BX
        "movups 0(%%r9), %%xmm0\n\t"
        "movups %%xmm0, 32(%%rcx)\n\t"
        "movq 0x10(%%r9), %%rax\n\t"
        "movq %%rax, 48(%%rcx)\n\t"
        "movq 0x1478(%%r9), %%rax\n\t"
        "movq %%rax, 56(%%rcx)\n\t"
        "movq 0x20(%%r9), %%rax\n\t"
        "movq %%rax, 64(%%rcx)\n\t" WEFT_LOAD_TIB
        "movq 8(%%rdx), %%rsp\n\t"
        "movq 16(%%rdx), %%rbp\n\t"
        "jmpq *0(%%rdx)\n"
        "1:" WEFT_RESTORE_BX
        : "+r"(came), "+r"(self), "+r"(brought)
        :
        : "rax", "rsi", "rdi", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
          "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
          "xmm13", "xmm14", "xmm15" WEFT_CLOBBER_BX WEFT_CLOBBER_AVX512 WEFT_CLOBBER_MMX, "st",
          "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory", "cc");
    return {brought, came, self};
}

// As switch_to, for an agent that never runs again: nothing of it is saved, `from` only names the
// sender.
[[noreturn]] WEFT_ALWAYS_INLINE void switch_to_last(context& from, context& to,
                                                    void* word) noexcept {
    register void* brought __asm__("r8") = word;
    asm volatile("movq %%gs:0x30, %%r9\n\t" WEFT_LOAD_TIB
                 "movq 8(%%rdx), %%rsp\n\t"
                 "movq 16(%%rdx), %%rbp\n\t"
                 "jmpq *0(%%rdx)"
                 :
                 : "c"(&from), "d"(&to), "r"(brought)
                 : "rax", "r9", "xmm0", "memory");
    __builtin_unreachable();
}

#undef WEFT_SAVE_BX
#undef WEFT_RESTORE_BX
#undef WEFT_CLOBBER_BX
#undef WEFT_CLOBBER_MMX
#undef WEFT_CLOBBER_AVX512
#undef WEFT_LOAD_TIB

extern "C" void weft_context_entry() noexcept;

// Makes a context that starts at `point` on the stack below `stack_top` (16-byte aligned). The
// system takes its stack to reach down to `stack_limit`.
inline void make_context(context& c, void* stack_limit, void* stack_top,
                         const entry_point& point) noexcept {
    c.pc = reinterpret_cast<void*>(&weft_context_entry);
    c.sp = c.outermost(stack_top);
    c.bp = nullptr;
    c.bx = const_cast<entry_point*>(&point);
    c.tib_handlers = reinterpret_cast<void*>(~std::uintptr_t{0});  // the end of the list
    c.tib_base = stack_top;
    c.tib_limit = stack_limit;
    c.tib_allocation = stack_limit;
    c.tib_fiber = nullptr;
}
inline void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    make_context(c, nullptr, stack_top, point);
}

}  // namespace weft
