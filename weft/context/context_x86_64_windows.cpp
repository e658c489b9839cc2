// The first frame of every context made on Windows for x86-64, and the handling of an exception
// that reaches it.
//
//     stack_top        +-----------------+  <- the base of the stack, as the thread's block says
//                      | 0               |     the entry's return address
//                      |                 |
//                      | four words      |     for the arguments of `enter`, which are in registers
//                      +-----------------+  <- sp at entry, CFA of `enter`
//                      | return address  |     weft_context_entry_left
//                      | frame of enter  |
//
// The system's unwinder ends where a frame is above the base of the stack, which the caller of the
// entry would be, and a debugger at a return address of zero.
//
// The handler of the entry's frame is the one by which libgcc has GCC's personality routines take
// part in the exceptions of Windows, here for entry_personality.hpp. What is no exception of C++,
// and what unwinds by force, passes it, and would be lost: the first frame of a thread calls the
// program's filter of unhandled exceptions, and so does this one.
#include "weft/context/context.hpp"

#if WEFT_WINDOWS && WEFT_X86_64 && !WEFT_BACKEND_UCONTEXT

#include "weft/context/detail/entry_personality.hpp"

#if WEFT_EXCEPTIONS
#include <windows.h>

extern "C" __attribute__((used)) EXCEPTION_DISPOSITION weft_context_entry_handler(
    PEXCEPTION_RECORD record, void* frame, PCONTEXT registers, PDISPATCHER_CONTEXT dispatch) {
    const EXCEPTION_DISPOSITION taken =
        _GCC_specific_handler(record, frame, registers, dispatch, weft_context_entry_personality);
    constexpr DWORD unwinds = 0x66;  // any of the flags of the second walk
    if (taken != ExceptionContinueSearch || (record->ExceptionFlags & unwinds) != 0) return taken;
    EXCEPTION_POINTERS fault = {record, registers};
    return ::UnhandledExceptionFilter(&fault) == EXCEPTION_CONTINUE_EXECUTION
               ? ExceptionContinueExecution
               : taken;
}
#define WEFT_ENTRY_HANDLER ".seh_handler weft_context_entry_handler, @unwind, @except\n"
#define WEFT_ENTRY_CATCH                   \
    ".globl weft_context_entry_catch\n"    \
    "weft_context_entry_catch:\n"          \
    "    movq %rax, %rcx\n"                \
    "    movq %rsi, %rdx\n"                \
    "    movq %rbx, %r8\n"                 \
    "    call weft_context_entry_caught\n" \
    "    jmp weft_context_entry_left\n"
#else
#define WEFT_ENTRY_HANDLER ""
#define WEFT_ENTRY_CATCH ""
#endif

// In:  %rcx = from, %rdx = self, %r8 = word, as every switch leaves them and as `enter` takes them;
// self's bx is the entry_point. %rbx and %rsi are kept by every call, so an unwinder that lands in
// the middle restores them. `left` is reached by a jump, over a return address of zero.
//
// `enter` too is reached by a jump, over a return address that no call has made. It may switch away
// and not come back, or make the last switch itself; so the processor's return predictor stays as
// the resumer left it. For a return address an unwinder asks for the frame of the byte before it,
// so that byte is a separate one (the nop).
asm(R"(
    .text
    .p2align 4
    .globl weft_context_entry
    .def weft_context_entry; .scl 2; .type 32; .endef
    .seh_proc weft_context_entry
weft_context_entry:
)" WEFT_ENTRY_HANDLER R"(
    .seh_stackalloc 40
    .seh_endprologue
    movq $0, 40(%rsp)
    movq %rdx, %rsi
    movq 24(%rdx), %rbx
    leaq weft_context_entry_left(%rip), %rax
    pushq %rax
    jmp *0(%rbx)
    nop
weft_context_entry_left:
    movq %rsi, %rcx
    pushq $0
    jmp *16(%rbx)
)" WEFT_ENTRY_CATCH R"(
    .seh_endproc
)");

#endif
