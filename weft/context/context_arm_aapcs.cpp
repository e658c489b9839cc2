// The first frame of every context made on arm, and the handling of an exception that reaches it.
//
//     stack_top        +-----------------+  <- sp at entry, CFA of `enter`
//                      | frame of enter  |     its lr: weft_context_entry_left
//                      +-----------------+
//
// To unwinders, which read the tables of ARM's EHABI, the personality routine says that this is the
// outermost frame, and it catches every exception (entry_personality.hpp). To debuggers, which read
// DWARF, an "undefined" return address says it.
#include "weft/context/context.hpp"

#if !WEFT_BACKEND_UCONTEXT && WEFT_ARM

#include "weft/context/detail/entry_personality.hpp"

#if WEFT_EXCEPTIONS
#define WEFT_ENTRY_PERSONALITY                          \
    "    .personality weft_context_entry_personality\n" \
    "    .handlerdata\n"
#define WEFT_ENTRY_CATCH                 \
    ".hidden weft_context_entry_catch\n" \
    ".globl weft_context_entry_catch\n"  \
    "weft_context_entry_catch:\n"        \
    "    mov r1, r5\n"                   \
    "    mov r2, r4\n"                   \
    "    bl weft_context_entry_caught\n"
#else
#define WEFT_ENTRY_PERSONALITY "    .cantunwind\n"
#define WEFT_ENTRY_CATCH ""
#endif

// The file's own instruction set is resumed at the end.
#if defined(__thumb__)
#define WEFT_ENTRY_END "    .thumb\n"
#else
#define WEFT_ENTRY_END ""
#endif

// In:  r0 = from, r1 = self, r2 = word, as every switch leaves them and as `enter` takes them, and
// r6 = self's bp, the entry_point. The frame claims a CFA above the stack, so that it differs from
// enter's. r4 and r5 are callee-saved, so an unwinder that lands in the middle restores them.
// `left` is reached by a jump, with a return address of zero. This is ARM code; `bx` and `bl`
// change to Thumb where that is where they lead.
//
// `enter` too is reached by a jump, with a return address that no call has made. It may switch away
// and not come back, or make the last switch itself; so the processor's return predictor stays as
// the resumer left it. For a return address an unwinder uses the table row of the byte before it,
// so that byte is of another instruction (the nop).
asm(R"(
    .syntax unified
    .text
    .arm
    .p2align 2
    .cfi_sections .debug_frame
    .globl weft_context_entry
    .type weft_context_entry, %function
weft_context_entry:
    .fnstart
    .cfi_startproc
    .cfi_undefined lr
    .cfi_def_cfa sp, 16
    mov r4, r6
    mov r5, r1
    adr lr, weft_context_entry_left
    ldr ip, [r4]
    bx ip
    nop
)" WEFT_ENTRY_CATCH R"(
weft_context_entry_left:
    mov r0, r5
    mov lr, 0
    ldr ip, [r4, 8]
    bx ip
    .cfi_endproc
)" WEFT_ENTRY_PERSONALITY R"(
    .fnend
    .size weft_context_entry, .-weft_context_entry
)" WEFT_ENTRY_END);

#endif
