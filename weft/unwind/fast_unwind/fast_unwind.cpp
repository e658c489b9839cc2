#include "weft/unwind/fast_unwind/fast_unwind.hpp"

#include <dlfcn.h>

#include "weft/base/assert.hpp"

#if WEFT_X86_64

extern "C" {
// Read by the stub, set by enable(). One byte that needs no memory order.
[[gnu::used, gnu::visibility("default")]] constinit bool weft_fast_unwind_enabled = true;

// The next _Unwind_Resume in symbol order. Several threads may look it up concurrently; all find
// the same one.
[[gnu::used, gnu::visibility("hidden")]] constinit void* weft_fast_unwind_next = nullptr;
[[gnu::used, gnu::visibility("hidden")]] void* weft_fast_unwind_find_next() noexcept;
}

void* weft_fast_unwind_find_next() noexcept {
    void* next = ::dlsym(RTLD_NEXT, "_Unwind_Resume");
    WEFT_ASSERT(next != nullptr, "weft::fast_unwind found no _Unwind_Resume to stand before");
    __atomic_store_n(&weft_fast_unwind_next, next, __ATOMIC_RELAXED);  // relaxed: only the pointer
    return next;
}

// An exception belongs to a kill if its stop function is weft_unwind_stop. Only scratch registers
// change, so the function that the stub jumps to sees the call as the landing pad made it.
asm(R"(
    .pushsection .text.weft_fast_unwind, "ax", @progbits
    .weak _Unwind_Resume            # libgcc's own goes before it where it is linked statically
    .type _Unwind_Resume, @function
    .p2align 4
    .globl weft_fast_unwind_stub
weft_fast_unwind_stub:
_Unwind_Resume:                     # (rdi: _Unwind_Exception*)
    .cfi_startproc
    endbr64
    mov weft_fast_unwind_next(%rip), %rax
    test %rax, %rax
    jz 2f
1:  mov weft_unwind_stop@GOTPCREL(%rip), %rcx
    cmp %rcx, 16(%rdi)
    jne 3f
    cmpb $0, weft_fast_unwind_enabled(%rip)
    jne weft_unwind_resumed
3:  jmp *%rax
2:  push %rdi
    .cfi_adjust_cfa_offset 8
    call weft_fast_unwind_find_next
    pop %rdi
    .cfi_adjust_cfa_offset -8
    jmp 1b
    .cfi_endproc
    .size _Unwind_Resume, . - _Unwind_Resume
    .popsection
)");

#endif
