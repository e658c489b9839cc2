// The first frame of every context made on s390x, and the handling of an exception that reaches it.
//
//     stack_top        +-----------------+  <- CFA of `enter`
//                      | for registers   |     160 bytes, in which `enter` saves its caller's
//                      | back chain = 0  |
//                      +-----------------+  <- sp at entry
//                      | frame of enter  |     its %r14: weft_context_entry_left
//                      +-----------------+
//
// The entry frame's return address is "undefined" in its call-frame information: that is DWARF for
// the outermost frame, where debuggers and unwinders stop. Its personality routine catches every
// exception (entry_personality.hpp).
#include "weft/context/context.hpp"

#if !WEFT_BACKEND_UCONTEXT && WEFT_S390X

#include "weft/context/detail/entry_personality.hpp"

#if WEFT_EXCEPTIONS
#define WEFT_ENTRY_PERSONALITY ".cfi_personality 0x1b, weft_context_entry_personality\n"
#define WEFT_ENTRY_CATCH                 \
    ".hidden weft_context_entry_catch\n" \
    ".globl weft_context_entry_catch\n"  \
    "weft_context_entry_catch:\n"        \
    "    lgr %r2, %r6\n"                 \
    "    lgr %r3, %r13\n"                \
    "    lgr %r4, %r12\n"                \
    "    brasl %r14, weft_context_entry_caught\n"
#else
#define WEFT_ENTRY_PERSONALITY ""
#define WEFT_ENTRY_CATCH ""
#endif

// In:  %r2 = from, %r3 = self, %r4 = word, as every switch leaves them and as `enter` takes them;
// %r12 = self's got, the entry_point, and %r13 = self's lit, self. The frame claims a CFA above the
// stack, so that it differs from enter's. %r12 and %r13 are callee-saved, so an unwinder that lands
// in the middle restores them. `left` is reached by a jump, with a return address of zero.
//
// `enter` too is reached by a jump, with a return address that no call has made: it may switch away
// and not come back, or make the last switch itself. For a return address an unwinder uses the
// table row of the byte before it, so that byte is of another instruction (the nop).
asm(R"(
    .text
    .p2align 4
    .globl weft_context_entry
    .type weft_context_entry, @function
weft_context_entry:
    .cfi_startproc
)" WEFT_ENTRY_PERSONALITY R"(
    .cfi_undefined %r14
    .cfi_def_cfa %r15, 176
    xc 0(8, %r15), 0(%r15)
    larl %r14, weft_context_entry_left
    lg %r1, 0(%r12)
    br %r1
    nopr
)" WEFT_ENTRY_CATCH R"(
weft_context_entry_left:
    lgr %r2, %r13
    lghi %r14, 0
    lg %r1, 16(%r12)
    br %r1
    .cfi_endproc
    .size weft_context_entry, .-weft_context_entry
)");

#endif
