// switch_to: the switch for 32-bit arm under the procedure call standard AAPCS with VFP registers
// (hard-float), in ARM and in Thumb-2 code.
//
//                 from                               to
//        +0  +------------+                 +0  +------------+
//            | pc  = 1f   |                     | pc         | --> bx, to 1: below
//        +4  +------------+                 +4  +------------+
//            | bp  = r6   |                     | bp         | --> r6
//        +8  +------------+                 +8  +------------+
//            | r7  = r7   |                     | r7         | --> r7
//        +12 +------------+                 +12 +------------+
//            | r11 = r11  |                     | r11        | --> r11
//        +16 +------------+                 +16 +------------+
//            | sp  = sp   |                     | sp         | --> sp
//        +20 +------------+                 +20 +------------+
//
//     in:  r0 = from, r1 = to, r2 = word
//     out: the same three registers, as the other agent's switch loaded them: the context that
//          switched here, this context, and the word
//
// Registers are declared clobbered, so that the compiler saves those that are live and no others.
// Those that a compiler refuses are saved explicitly, all with one instruction: the frame pointers
// r7 (Thumb) and r11 (ARM), and r6, which Clang uses as base pointer. So code of both compilers and
// of both instruction sets can be mixed: the lowest bit of pc says which one continues. The stack
// is not written. Each call site has its own `bx`, by a register that no return uses: one shared
// jump would have only one history for the predictor.
//
// The thread pointer is in a coprocessor and is the thread's. The bits GE and Q of the status word
// are given up as across any call; FPSCR is the environment (fp_environment.hpp).
//
// Limits: the soft-float ABI and Thumb-1 have no switch here. The names d16 to d31 are accepted for
// every file, but a program that is compiled for sixteen of these registers keeps nothing there.
#pragma once

#include "weft/base/platform.hpp"
#include "weft/context/entry_point.hpp"

namespace weft {

struct context {
    void* pc;
    void* bp;
    void* r7;
    void* r11;
    void* sp;

    // The canonical frame address of `enter`, the last frame of the context's owner: a forced
    // unwind must stop there.
    void* outermost(void* stack_top) const noexcept { return stack_top; }
    void* stack_pointer() const noexcept { return sp; }
};
static_assert(sizeof(context) == 5 * sizeof(void*), "the order is that of the registers' numbers");

#if defined(__thumb__)
#define WEFT_LANDING "adr.w r3, 1f + 1\n\t"
#else
#define WEFT_LANDING "adr r3, 1f\n\t"
#endif

#if WEFT_CLANG
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winline-asm"  // d16 to d31, where the target has sixteen
#endif

WEFT_ALWAYS_INLINE arrival switch_to(context& from, context& to, void* word) noexcept {
    register context* came __asm__("r0") = &from;
    register context* self __asm__("r1") = &to;
    register void* brought __asm__("r2") = word;
    asm volatile(WEFT_LANDING
                 "mov ip, sp\n\t"
                 "stm r0, {r3, r6, r7, r11, ip}\n\t"
                 "ldm r1, {r3, r6, r7, r11, ip}\n\t"
                 "mov sp, ip\n\t"
                 "bx r3\n"
                 "1:"
                 : "+r"(came), "+r"(self), "+r"(brought)
                 :
                 : "r3", "r4", "r5", "r8", "r9", "r10", "ip", "lr", "d0", "d1", "d2", "d3", "d4",
                   "d5", "d6", "d7", "d8", "d9", "d10", "d11", "d12", "d13", "d14", "d15", "d16",
                   "d17", "d18", "d19", "d20", "d21", "d22", "d23", "d24", "d25", "d26", "d27",
                   "d28", "d29", "d30", "d31", "memory", "cc");
    return {brought, came, self};
}

#if WEFT_CLANG
#pragma clang diagnostic pop
#endif

// As switch_to, for an agent that never runs again: none of its registers is saved, `from` only
// names the sender.
[[noreturn]] WEFT_ALWAYS_INLINE void switch_to_last(context& from, context& to,
                                                    void* word) noexcept {
    register context* came __asm__("r0") = &from;
    register context* self __asm__("r1") = &to;
    register void* brought __asm__("r2") = word;
    asm volatile(
        "ldm r1, {r3, r6, r7, r11, ip}\n\t"
        "mov sp, ip\n\t"
        "bx r3"
        :
        : "r"(came), "r"(self), "r"(brought)
        : "r3", "ip", "memory");
    __builtin_unreachable();
}

#undef WEFT_LANDING

extern "C" void weft_context_entry() noexcept;

// Makes a context that starts at `point` on the stack below `stack_top` (16-byte aligned).
inline void make_context(context& c, void* stack_top, const entry_point& point) noexcept {
    c.pc = reinterpret_cast<void*>(&weft_context_entry);
    c.bp = const_cast<entry_point*>(&point);
    c.r7 = c.r11 = nullptr;  // either ends a chain of frame pointers
    c.sp = stack_top;
}

}  // namespace weft
