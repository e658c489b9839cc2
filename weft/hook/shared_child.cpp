#include "weft/hook/shared_child.hpp"

#include <pthread.h>

#include "weft/hook/calls.hpp"

#if defined(__x86_64__) && !WEFT_BACKEND_UCONTEXT
#define WEFT_SEES_SHARED_CHILDREN 1
#else
#define WEFT_SEES_SHARED_CHILDREN 0
#endif

namespace weft::hook {

constinit atomic<bool> shared_child_is_expected{!WEFT_SEES_SHARED_CHILDREN};

void expect_shared_child() noexcept {
    shared_child_is_expected.store(true, std::memory_order_relaxed);
}

void forget_shared_child() noexcept {
    shared_child_is_expected.store(!WEFT_SEES_SHARED_CHILDREN, std::memory_order_relaxed);
}

namespace {

// Whose child it is has to be asked there: the byte that it had from its parent says nothing.
__attribute__((constructor(101))) void expect_in_children() {
    ::pthread_atfork(nullptr, nullptr, expect_shared_child);
}

}  // namespace
}  // namespace weft::hook

#if WEFT_SEES_SHARED_CHILDREN

extern "C" {
// What comes behind each symbol.
__attribute__((visibility("hidden"), used)) void* weft_hook_next_vfork() noexcept;
__attribute__((visibility("hidden"), used)) void* weft_hook_next_clone() noexcept;
// Of a sanitizer that is linked statically, as in calls.cpp.
__attribute__((weak)) int __interceptor_vfork();
__attribute__((weak)) int __interceptor_clone();
}

namespace weft::hook {
namespace {

// Kept for each of the two; relaxed, as whatever looks for one finds the same.
void* next(const char* name, void* sanitizers, atomic<void*>& kept) noexcept {
    expect_shared_child();
    void* found = kept.load(std::memory_order_relaxed);
    if (found != nullptr) return found;
    found = sanitizers != nullptr ? sanitizers : real::next_of(name);
    kept.store(found, std::memory_order_relaxed);
    return found;
}

constinit atomic<void*> next_vfork{nullptr};
constinit atomic<void*> next_clone{nullptr};

}  // namespace
}  // namespace weft::hook

void* weft_hook_next_vfork() noexcept {
    auto* const sanitizers = reinterpret_cast<void*>(__interceptor_vfork);
    return weft::hook::next("vfork", sanitizers, weft::hook::next_vfork);
}

void* weft_hook_next_clone() noexcept {
    auto* const sanitizers = reinterpret_cast<void*>(__interceptor_clone);
    return weft::hook::next("clone", sanitizers, weft::hook::next_clone);
}

// At the jump all is as at the entry: the registers of the arguments, the stack, and on it where
// the caller goes on.
__asm__(R"(
    .text
    .globl vfork
    .type vfork, @function
vfork:
    .cfi_startproc
    endbr64
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call weft_hook_next_vfork
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size vfork, . - vfork

    .globl clone
    .type clone, @function
clone:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %r9
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call weft_hook_next_clone
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size clone, . - clone
)");

#endif
