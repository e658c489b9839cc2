// The first frame of every context made on riscv64, and the handling of an exception that reaches
// it.
//
//     stack_top        +-----------------+  <- sp at entry, CFA of `enter`
//                      | frame of enter  |     its ra: weft_context_entry_left
//                      +-----------------+
//
// The entry frame's return address is "undefined" in its call-frame information: that is DWARF for
// the outermost frame, where debuggers and unwinders stop. Its personality routine catches every
// exception (entry_personality.hpp).
#include "weft/context/context.hpp"

#if !WEFT_BACKEND_UCONTEXT && WEFT_RISCV64

#include "weft/context/detail/entry_personality.hpp"

#if WEFT_EXCEPTIONS
#define WEFT_ENTRY_PERSONALITY ".cfi_personality 0x1b, weft_context_entry_personality\n"
#define WEFT_ENTRY_CATCH                 \
    ".hidden weft_context_entry_catch\n" \
    ".globl weft_context_entry_catch\n"  \
    "weft_context_entry_catch:\n"        \
    "    mv a1, s2\n"                    \
    "    mv a2, s1\n"                    \
    "    call weft_context_entry_caught\n"
#else
#define WEFT_ENTRY_PERSONALITY ""
#define WEFT_ENTRY_CATCH ""
#endif

// In:  a0 = from, a1 = self, a2 = word, as every switch leaves them and as `enter` takes them, and
// t2 = the pc of `from`; self's bp is the entry_point. The frame claims a CFA above the stack, so
// that it differs from enter's. s1 and s2 are callee-saved, so an unwinder that lands in the middle
// restores them. `left` is reached by a jump, with a return address of zero.
//
// `enter` too is reached by a jump, with a return address that no call has made. It may switch away
// and not come back, or make the last switch itself; so the processor's return predictor stays as
// the resumer left it. For a return address an unwinder uses the table row of the byte before it,
// so that byte is of another instruction (the nop).
asm(R"(
    .text
    .p2align 2
    .globl weft_context_entry
    .type weft_context_entry, @function
weft_context_entry:
    .cfi_startproc
)" WEFT_ENTRY_PERSONALITY R"(
    .cfi_undefined ra
    .cfi_def_cfa sp, 16
    sd t2, 0(a0)
    mv s2, a1
    ld s1, 24(a1)
    lla ra, weft_context_entry_left
    ld t1, 0(s1)
    jr t1
    nop
)" WEFT_ENTRY_CATCH R"(
weft_context_entry_left:
    mv a0, s2
    li ra, 0
    ld t1, 16(s1)
    jr t1
    .cfi_endproc
    .size weft_context_entry, .-weft_context_entry
)");

#endif
