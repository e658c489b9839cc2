// The first frame of every context made on i386, and the handling of an exception that reaches it.
//
//     stack_top        +-----------------+
//                      | word self from  |     the arguments of `enter`, the lowest first
//                      +-----------------+  <- sp at entry, CFA of `enter`
//                      | return address  |     weft_context_entry_left
//                      | frame of enter  |
//                      +-----------------+
//
// The entry frame's return address is "undefined" in its call-frame information: that is DWARF for
// the outermost frame, where debuggers and unwinders stop. Its personality routine catches every
// exception (entry_personality.hpp).
#include "weft/context/context.hpp"

#if !WEFT_BACKEND_UCONTEXT && WEFT_I386

#include "weft/context/detail/entry_personality.hpp"

#if WEFT_EXCEPTIONS
#define WEFT_ENTRY_PERSONALITY ".cfi_personality 0x1b, weft_context_entry_personality\n"
#define WEFT_ENTRY_CATCH                 \
    ".hidden weft_context_entry_catch\n" \
    ".globl weft_context_entry_catch\n"  \
    "weft_context_entry_catch:\n"        \
    "    movl %eax, 0(%esp)\n"           \
    "    movl %esi, 4(%esp)\n"           \
    "    movl %edi, 8(%esp)\n"           \
    "    call weft_context_entry_caught\n"
#else
#define WEFT_ENTRY_PERSONALITY ""
#define WEFT_ENTRY_CATCH ""
#endif

// In:  %eax = from, %edx = self, %ecx = word, as every switch leaves them; self's si is the
// entry_point. The frame claims a CFA above enter's. %esi and %edi are callee-saved, so an unwinder
// that lands in the middle restores them. `left` is reached by a jump, over a return address of
// zero.
//
// `enter` too is reached by a jump, over a return address that no call has made (the `call` is that
// of the next instruction, see switch_i386_sysv.hpp). It may switch away and not come back, or make
// the last switch itself; so the processor's return predictor stays as the resumer left it. For a
// return address an unwinder uses the table row of the byte before it, so that byte is a separate
// one (the nop).
asm(R"(
    .text
    .p2align 4
    .globl weft_context_entry
    .type weft_context_entry, @function
weft_context_entry:
    .cfi_startproc
)" WEFT_ENTRY_PERSONALITY R"(
    .cfi_undefined %eip
    .cfi_def_cfa %esp, 16
    endbr32
    movl %edx, %esi
    movl 12(%edx), %edi
    movl %eax, 0(%esp)
    movl %edx, 4(%esp)
    movl %ecx, 8(%esp)
    call 2f
2:
    .cfi_def_cfa_offset 20
    addl $weft_context_entry_left - 2b, 0(%esp)
    jmp *0(%edi)
    .cfi_def_cfa_offset 16
    nop
)" WEFT_ENTRY_CATCH R"(
weft_context_entry_left:
    movl %esi, 0(%esp)
    pushl $0
    jmp *8(%edi)
    .cfi_endproc
    .size weft_context_entry, .-weft_context_entry
)");

#endif
