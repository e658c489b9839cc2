// The first frame of every context made on ppc64le, and the handling of an exception that reaches
// it.
//
//     stack_top        +-----------------+
//                      | TOC pointer     |  +24
//                      | for enter's lr  |  +16
//                      | for enter's cr  |  +8
//                      | back chain = 0  |
//                      +-----------------+  <- sp at entry, CFA of `enter`
//                      | frame of enter  |     its lr: weft_context_entry_left
//                      +-----------------+
//
// The entry frame's return address is "undefined" in its call-frame information: that is DWARF for
// the outermost frame, where debuggers and unwinders stop. Its personality routine catches every
// exception (entry_personality.hpp).
#include "weft/context/context.hpp"

#if !WEFT_BACKEND_UCONTEXT && WEFT_PPC64LE

#include "weft/context/detail/entry_personality.hpp"

#if WEFT_EXCEPTIONS
#define WEFT_ENTRY_PERSONALITY ".cfi_personality 0x1b, weft_context_entry_personality\n"
#define WEFT_ENTRY_CATCH                 \
    ".hidden weft_context_entry_catch\n" \
    ".globl weft_context_entry_catch\n"  \
    "weft_context_entry_catch:\n"        \
    "    mr 4, 29\n"                     \
    "    mr 5, 30\n"                     \
    "    bl weft_context_entry_caught\n"
#else
#define WEFT_ENTRY_PERSONALITY ""
#define WEFT_ENTRY_CATCH ""
#endif

// In:  r3 = from, r4 = self, r5 = word, as every switch leaves them and as `enter` takes them, and
// r12 = weft_context_entry; self's bp is the entry_point. The frame claims a CFA above enter's. r29
// and r30 are callee-saved, so an unwinder that lands in the middle restores them; it restores r2
// because what it finds at the return address is the load of r2. `left` is reached by a jump, with
// a return address of zero.
//
// `enter` too is reached by a jump, with a return address that no call has made. It may switch away
// and not come back, or make the last switch itself; so the processor's return predictor stays as
// the resumer left it. For a return address an unwinder uses the table row of the byte before it,
// so that byte is of another instruction (the nop).
asm(R"(
    .text
    .p2align 4
    .globl weft_context_entry
    .type weft_context_entry, @function
weft_context_entry:
    .cfi_startproc
)" WEFT_ENTRY_PERSONALITY R"(
    .cfi_undefined lr
    .cfi_def_cfa 1, 32
    addis 2, 12, .TOC. - weft_context_entry@ha
    addi 2, 2, .TOC. - weft_context_entry@l
    .localentry weft_context_entry, . - weft_context_entry
    std 2, 24(1)
    li 0, 0
    std 0, 0(1)
    mr 29, 4
    ld 30, 32(4)
    addi 11, 12, weft_context_entry_left - weft_context_entry
    mtlr 11
    ld 12, 0(30)
    mtctr 12
    bctr
    nop
)" WEFT_ENTRY_CATCH R"(
weft_context_entry_left:
    ld 2, 24(1)
    mr 3, 29
    li 0, 0
    mtlr 0
    ld 12, 16(30)
    mtctr 12
    bctr
    .cfi_endproc
    .size weft_context_entry, .-weft_context_entry
)");

#endif
