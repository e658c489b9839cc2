// The first frame of every context made on aarch64, and the handling of an exception that reaches
// it.
//
//     stack_top        +-----------------+  <- sp at entry, CFA of `enter`
//                      | frame of enter  |     its x30: weft_context_entry_left
//                      +-----------------+
//
// The entry frame's return address is "undefined" in its call-frame information: that is DWARF for
// the outermost frame, where debuggers and unwinders stop. Its personality routine catches every
// exception and lands it at weft_context_entry_catch, so no body needs a try block around it, and a
// kill meets no handler.
#include "weft/context/context.hpp"

#if !WEFT_BACKEND_UCONTEXT && WEFT_AARCH64

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
    "    hint 36\n"                      \
    "    bl __cxa_begin_catch\n"         \
    "    mov x0, x20\n"                  \
    "    ldr x16, [x19, 8]\n"            \
    "    blr x16\n"                      \
    "    bl __cxa_end_catch\n"           \
    "    b weft_context_entry_left\n"
#else
#define WEFT_ENTRY_PERSONALITY ""
#define WEFT_ENTRY_CATCH ""
#endif

// In:  x0 = from, x1 = self, x2 = word, as every switch leaves them and as `enter` takes them, and
// x19 = the entry_point. The frame claims a CFA above the stack, so that it differs from
// enter's. x19 and x20 are callee-saved, so an unwinder that lands in the middle restores them.
// `left` is reached by a jump, with a return address of zero.
//
// `enter` too is reached by a jump, with a return address that no call has made. It may switch away
// and not come back, or make the last switch itself; so the processor's return predictor stays as
// the resumer left it. The jump is by x16, which may land at a function's first `bti c`. For a
// return address an unwinder uses the table row of the byte before it, so that byte is of another
// instruction (the nop).
asm(R"(
    .text
    .p2align 4
    .globl weft_context_entry
    .type weft_context_entry, %function
weft_context_entry:
    .cfi_startproc
)" WEFT_ENTRY_PERSONALITY R"(
    .cfi_undefined x30
    .cfi_def_cfa sp, 16
    hint 36
    mov x20, x1
    adr x30, weft_context_entry_left
    ldr x16, [x19]
    br x16
    nop
weft_context_entry_left:
    mov x0, x20
    mov x30, 0
    ldr x16, [x19, 16]
    br x16
)" WEFT_ENTRY_CATCH R"(
    .cfi_endproc
    .size weft_context_entry, .-weft_context_entry
)");

#endif
