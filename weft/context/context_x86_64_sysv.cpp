// The first frame of every context made on x86-64, and the handling of an exception that reaches
// it.
//
//     stack_top        +-----------------+  <- sp at entry, CFA of `enter`
//                      | return address  |     into weft_context_entry
//                      +-----------------+
//                      | frame of enter  |
//
// The entry frame's return address is "undefined" in its call-frame information: that is DWARF for
// the outermost frame, and gdb, libunwind, perf and libgcc all stop there. Its personality routine
// catches every exception and lands it at weft_context_entry_catch, so no body needs a try block
// around it, and a kill meets no handler.
#include "weft/context/context.hpp"

#if !WEFT_WINDOWS && WEFT_X86_64 && !WEFT_BACKEND_UCONTEXT

#if WEFT_EXCEPTIONS
#include <unwind.h>

extern "C" __attribute__((visibility("hidden"))) const char weft_context_entry_catch[];

extern "C" __attribute__((visibility("hidden"), used)) _Unwind_Reason_Code
weft_context_entry_personality(int, _Unwind_Action actions, _Unwind_Exception_Class,
                               _Unwind_Exception* exception, _Unwind_Context* frame) {
    if ((actions & _UA_FORCE_UNWIND) != 0) return _URC_CONTINUE_UNWIND;
    if ((actions & _UA_SEARCH_PHASE) != 0) return _URC_HANDLER_FOUND;
    _Unwind_SetGR(frame, __builtin_eh_return_data_regno(0),
                  reinterpret_cast<_Unwind_Word>(exception));
    _Unwind_SetIP(frame, reinterpret_cast<_Unwind_Ptr>(weft_context_entry_catch));
    return _URC_INSTALL_CONTEXT;
}
#define WEFT_ENTRY_PERSONALITY ".cfi_personality 0x1b, weft_context_entry_personality\n"
#define WEFT_ENTRY_CATCH                 \
    ".hidden weft_context_entry_catch\n" \
    ".globl weft_context_entry_catch\n"  \
    "weft_context_entry_catch:\n"        \
    "    movq %rax, %rdi\n"              \
    "    call __cxa_begin_catch@PLT\n"   \
    "    movq %r12, %rdi\n"              \
    "    call *8(%rbx)\n"                \
    "    call __cxa_end_catch@PLT\n"     \
    "    jmp weft_context_entry_left\n"
#else
#define WEFT_ENTRY_PERSONALITY ""
#define WEFT_ENTRY_CATCH ""
#endif

// In:  %rdi = from, %rsi = self, %rdx = word, as every switch leaves them and as `enter` takes
// them; self's bx is the entry_point. The frame claims a CFA above the stack, so that it differs
// from enter's. %rbx and %r12 are callee-saved, so an unwinder that lands in the middle restores
// them. `left` is reached by a jump, over a return address of zero.
//
// `enter` too is reached by a jump, over a return address that no call has made. It may switch away
// and not come back, or make the last switch itself; so the processor's return predictor stays as
// the resumer left it. For a return address an unwinder uses the table row of the byte before it,
// so that byte is a separate one (the nop).
asm(R"(
    .text
    .p2align 4
    .globl weft_context_entry
    .type weft_context_entry, @function
weft_context_entry:
    .cfi_startproc
)" WEFT_ENTRY_PERSONALITY R"(
    .cfi_undefined %rip
    .cfi_def_cfa %rsp, 16
    endbr64
    movq %rsi, %r12
    movq 24(%rsi), %rbx
    leaq weft_context_entry_left(%rip), %rax
    pushq %rax
    .cfi_def_cfa_offset 24
    jmp *0(%rbx)
    .cfi_def_cfa_offset 16
    nop
weft_context_entry_left:
    movq %r12, %rdi
    pushq $0
    jmp *16(%rbx)
)" WEFT_ENTRY_CATCH R"(
    .cfi_endproc
    .size weft_context_entry, .-weft_context_entry
)");

#endif
