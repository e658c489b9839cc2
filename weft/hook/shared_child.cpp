#include "weft/hook/detail/shared_child.hpp"

#include <pthread.h>
#include <unistd.h>

#include "weft/hook/detail/calls.hpp"

#if defined(__x86_64__) && !WEFT_BACKEND_UCONTEXT
#define WEFT_SEES_SHARED_CHILDREN 1
#else
#define WEFT_SEES_SHARED_CHILDREN 0
#endif
#if defined(__GLIBC__)
#define WEFT_HAS_BARE_FORK __GLIBC_PREREQ(2, 34)
#else
#define WEFT_HAS_BARE_FORK 0
#endif

namespace weft::hook {

constinit atomic<bool> shared_child_is_expected{!WEFT_SEES_SHARED_CHILDREN};

void expect_shared_child() noexcept {
    shared_child_is_expected.store(true, std::memory_order_relaxed);
}

void clear_shared_child() noexcept {
    shared_child_is_expected.store(!WEFT_SEES_SHARED_CHILDREN, std::memory_order_relaxed);
}

namespace {

// A child has to query which process it is: the byte that it has from its parent does not show it.
__attribute__((constructor(101))) void expect_in_children() {
    ::pthread_atfork(nullptr, nullptr, expect_shared_child);
}

}  // namespace
}  // namespace weft::hook

#if WEFT_SEES_SHARED_CHILDREN

extern "C" {
// The next definition behind each symbol.
__attribute__((visibility("hidden"), used)) void* weft_hook_next_vfork() noexcept;
__attribute__((visibility("hidden"), used)) void* weft_hook_next_clone() noexcept;
// The interceptors of a sanitizer that is linked statically, as in calls.cpp.
__attribute__((weak)) int __interceptor_vfork();
__attribute__((weak)) int __interceptor_clone();
}

namespace weft::hook {
namespace {

// One for each of them; relaxed, because every search finds the same.
void* find(const char* name, int (*sanitizers)(), atomic<void*>& kept) noexcept {
    void* found = kept.load(std::memory_order_relaxed);
    if (found != nullptr) return found;
    found = sanitizers != nullptr ? reinterpret_cast<void*>(sanitizers) : real::next_of(name);
    kept.store(found, std::memory_order_relaxed);  // as said above
    return found;
}

constinit atomic<void*> next_vfork{nullptr};
constinit atomic<void*> next_clone{nullptr};
void* find_vfork() noexcept { return find("vfork", __interceptor_vfork, next_vfork); }
void* find_clone() noexcept { return find("clone", __interceptor_clone, next_clone); }
#if WEFT_HAS_BARE_FORK
constinit atomic<void*> next_bare_fork{nullptr};
void* find_bare_fork() noexcept { return find("_Fork", nullptr, next_bare_fork); }
#endif

// Called early, because these are used where no symbol can be looked up: in signal handlers.
__attribute__((constructor(101))) void find_them_early() {
    find_vfork();
    find_clone();
#if WEFT_HAS_BARE_FORK
    find_bare_fork();
#endif
}

}  // namespace
}  // namespace weft::hook

void* weft_hook_next_vfork() noexcept {
    weft::hook::expect_shared_child();
    return weft::hook::find_vfork();
}

void* weft_hook_next_clone() noexcept {
    weft::hook::expect_shared_child();
    return weft::hook::find_clone();
}

#if WEFT_HAS_BARE_FORK
// _Fork() runs no handler (pthread_atfork) for its child, which has a copy of the byte.
extern "C" pid_t _Fork() noexcept {
    weft::hook::expect_shared_child();
    return reinterpret_cast<pid_t (*)()>(weft::hook::find_bare_fork())();
}
#endif

// At the jump all is as at the entry: the registers of the arguments, the stack, and on it the
// caller's return address.
__asm__(R"(
    .pushsection .text
    .globl vfork, __vfork
    .type vfork, @function
    .set __vfork, vfork
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

    .globl clone, __clone
    .type clone, @function
    .set __clone, clone
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
    .popsection
)");

#endif
