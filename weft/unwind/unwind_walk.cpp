// unwind_walk: the walk over a stack by the rules of unwind_rules.hpp.
//
// The caller of the walk is a stub: it stores the callee-saved registers, lets C++ move them up the
// stack, and then either loads them and jumps, or continues unchanged. So each C++ function here
// returns, and its cleanups and the sanitizers' records of it are in order.
#include "weft/base/assert.hpp"
#include "weft/unwind/detail/unwind_frame.hpp"
#include "weft/unwind/detail/unwind_rules.hpp"
#include "weft/unwind/detail/unwind_steps.hpp"

#if WEFT_X86_64

extern "C" {
struct weft_unwind_registers {
    std::uint64_t word[7];  // rbx rbp r12 r13 r14 r15, and the sp after the call has returned
    std::uint64_t pc;
    std::uint64_t first;   // to be loaded into rdi and rax
    std::uint64_t second;  // to be loaded into rdx
};

#if WEFT_ASAN
void __asan_handle_no_return();
#endif

// Called only by the stubs, whose assembly link-time optimisation does not see.
[[gnu::used]] bool weft_unwind_begin(weft::detail::unwinding&, weft_unwind_registers&) noexcept;
[[gnu::used]] bool weft_unwind_proceed(weft::detail::unwinding&, weft_unwind_registers&) noexcept;
[[gnu::used]] bool weft_unwind_stopped(weft::detail::unwinding&, _Unwind_Action, _Unwind_Context*,
                                       weft_unwind_registers&) noexcept;
}

#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetIP
#pragma weak _Unwind_GetGR

namespace weft::detail {
namespace {

using registers = weft_unwind_registers;
static_assert(sizeof(registers) == 80 && offsetof(registers, pc) == 56);

constexpr unsigned sp = 6;
constexpr std::uint64_t no_return_address = 0;

const std::uint64_t* memory(std::uint64_t address) noexcept {
    return reinterpret_cast<const std::uint64_t*>(address);
}

// One frame up.
void step(registers& r, const frame_rule& rule) noexcept {
    const std::uint64_t cfa =
        r.word[rule.cfa_register] + static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset});
    for (unsigned i = 0; i != 6; ++i) {
        const std::int64_t words = rule.saved[i];
        r.word[i] =
            *(words != 0 ? memory(cfa + static_cast<std::uint64_t>(words * 8)) : &r.word[i]);
    }
    r.pc = *(rule.last ? &no_return_address : memory(cfa - 8));
    r.word[sp] = cfa;
}

bool at_end(const unwinding& u, const registers& r) noexcept {
    return r.word[sp] >= reinterpret_cast<std::uintptr_t>(u.end) || r.pc == 0;
}

// Steps over plain frames. Returns null at the end, else the rule of the first other frame.
const frame_rule* advance(const unwinding& u, registers& r, frame_rule& spare) noexcept {
    while (!at_end(u, r)) {
        const frame_rule& rule = rule_at(r.pc, spare);
        if (rule.kind != frame_kind::plain) return &rule;
        step(r, rule);
    }
    return nullptr;
}

// Frames are read one after another, each at an address read from the one before: prefetch them.
void touch(std::uintptr_t from, std::uintptr_t end) noexcept {
    constexpr unsigned lines = 8;  // the size of a few frames
    for (unsigned i = 1; i != lines && from + i * cache_line_bytes < end; ++i)
        __builtin_prefetch(reinterpret_cast<const void*>(from + i * cache_line_bytes));
}

void leave_frames() noexcept {
#if WEFT_ASAN
    __asan_handle_no_return();
#endif
}

// Makes the stub enter finished(), as if the frame at the end had called it.
//
//        sp at the end -> | frame that is not unwound
//   rsp of finished()  -> | return address: as it was; without a caller, two slots lower: 0
void finish(unwinding& u, registers& r) noexcept {
    leave_frames();
    settle(u);
    r.word[sp] = (r.word[sp] & ~std::uint64_t{15}) - (r.pc != 0 ? 8 : 24);
    *reinterpret_cast<std::uint64_t*>(r.word[sp]) = r.pc;
    r.pc = reinterpret_cast<std::uint64_t>(u.finished);
    r.first = reinterpret_cast<std::uint64_t>(&u);
}

// Makes the stub enter the frame's landing pad.
void land(const unwinding& u, registers& r, const frame_rule& rule) noexcept {
    leave_frames();
    r.word[sp] += rule.args_bytes;
    r.pc = rule.pad;
    r.first = reinterpret_cast<std::uint64_t>(u.exception);
    r.second = static_cast<std::uint64_t>(std::int64_t{rule.selector});
}

// With a shadow stack, a jump out of frames would have to pop their return addresses from it.
bool shadow_stack_active() noexcept {
    std::uint64_t top = 0;
    asm volatile("rdsspq %0" : "+r"(top));  // without a shadow stack, does not change it
    return top != 0;
}

}  // namespace
}  // namespace weft::detail

using namespace weft::detail;

// Makes the dry walk and enters the first pad that it found. False: the stub unwinds slowly, with
// the registers it still has.
bool weft_unwind_begin(unwinding& u, registers& r) noexcept {
    WEFT_DEBUG_ASSERT(u.end != nullptr, "an unwinding needs an end");
    u.exception = nullptr;
    u.slow_until = 0;
    if (shadow_stack_active()) return false;
    touch(r.word[sp], reinterpret_cast<std::uintptr_t>(u.end));
    frame_rule spare;
    frame_rule first;
    registers at_first;
    while (const frame_rule* rule = advance(u, r, spare)) {
        if (rule->kind == frame_kind::refused) refuse(u, rule->why, r.pc);
        if (rule->kind == frame_kind::slow) return u.slow_until = r.word[sp], false;
        if (!WEFT_EXCEPTIONS) refuse(u, built_without_exceptions, r.pc);
        if (first.pad == 0) {
            first = *rule;
            at_first = r;
        }
        step(r, *rule);
    }
    if (first.pad == 0) return finish(u, r), true;
    raise(u);
    r = at_first;
    land(u, r, first);
    return true;
}

// Continues from a frame that has no pad, or whose pad has run, to the next pad. False: the
// unwinder does it.
bool weft_unwind_proceed(unwinding& u, registers& r) noexcept {
    if (r.word[sp] < u.slow_until) return false;
    frame_rule spare;
    const frame_rule* rule = advance(u, r, spare);
    if (rule == nullptr) return finish(u, r), true;
    if (rule->kind == frame_kind::pad) return land(u, r, *rule), true;
    u.slow_until = r.word[sp];
    return false;
}

// The unwinder has come to a frame: its registers are enough to walk on without it.
bool weft_unwind_stopped(unwinding& u, _Unwind_Action actions, _Unwind_Context* context,
                         registers& r) noexcept {
    constexpr int dwarf_numbers[] = {3, 6, 12, 13, 14, 15};
    recount(u);
    for (unsigned i = 0; i != 6; ++i) r.word[i] = _Unwind_GetGR(context, dwarf_numbers[i]);
    r.word[sp] = _Unwind_GetCFA(context);
    r.pc = (actions & _UA_END_OF_STACK) != 0 ? 0 : _Unwind_GetIP(context);
    if (at_end(u, r)) return finish(u, r), true;
    return !shadow_stack_active() && weft_unwind_proceed(u, r);
}

// A stub's own frame: 80 bytes of registers and three words of its own. At its entry rsp is 8 below
// a multiple of 16.
#define WEFT_UNWIND_STORE           \
    "    sub $104, %rsp\n"          \
    "    .cfi_def_cfa_offset 112\n" \
    "    mov %rbx, (%rsp)\n"        \
    "    mov %rbp, 8(%rsp)\n"       \
    "    mov %r12, 16(%rsp)\n"      \
    "    mov %r13, 24(%rsp)\n"      \
    "    mov %r14, 32(%rsp)\n"      \
    "    mov %r15, 40(%rsp)\n"
#define WEFT_UNWIND_DROP   \
    "    add $104, %rsp\n" \
    "    .cfi_def_cfa_offset 8\n"

asm(R"(
    .pushsection .text.weft_unwind, "ax", @progbits

    .globl weft_unwind
    .type weft_unwind, @function
    .p2align 4
weft_unwind:                        # (rdi: unwinding&)
    .cfi_startproc
    endbr64
    lea 8(%rsp), %rax
    mov (%rsp), %rdx
)" WEFT_UNWIND_STORE R"(
    mov %rax, 48(%rsp)
    mov %rdx, 56(%rsp)
    mov %rdi, 80(%rsp)
    mov %rsp, %rsi
    call weft_unwind_begin
    test %al, %al
    jnz weft_unwind_load
    mov 80(%rsp), %rdi
)" WEFT_UNWIND_DROP R"(
    jmp weft_unwind_slowly
    .cfi_endproc
    .size weft_unwind, . - weft_unwind

    .globl weft_unwind_resumed
    .type weft_unwind_resumed, @function
    .p2align 4
weft_unwind_resumed:                # (rdi: unwind_header*, rax: where to go if we cannot)
    .cfi_startproc
    lea 8(%rsp), %rcx
    mov (%rsp), %rdx
)" WEFT_UNWIND_STORE R"(
    mov %rcx, 48(%rsp)
    mov %rdx, 56(%rsp)
    mov %rdi, 80(%rsp)
    mov %rax, 88(%rsp)
    mov 24(%rdi), %rdi
    mov %rsp, %rsi
    call weft_unwind_proceed
    test %al, %al
    jnz weft_unwind_load
    mov 80(%rsp), %rdi
    mov 88(%rsp), %rax
)" WEFT_UNWIND_DROP R"(
    jmp *%rax
    .cfi_endproc
    .size weft_unwind_resumed, . - weft_unwind_resumed

    .globl weft_unwind_stop
    .type weft_unwind_stop, @function
    .p2align 4
weft_unwind_stop:                   # (esi: actions, r8: context, r9: unwinding&)
    .cfi_startproc
    endbr64
)" WEFT_UNWIND_STORE R"(
    mov %r9, %rdi
    mov %r8, %rdx
    mov %rsp, %rcx
    call weft_unwind_stopped
    test %al, %al
    jnz weft_unwind_load
    xor %eax, %eax
)" WEFT_UNWIND_DROP R"(
    ret
    .cfi_endproc
    .size weft_unwind_stop, . - weft_unwind_stop

    .type weft_unwind_load, @function
weft_unwind_load:                   # (rsp: registers, in a stub's frame)
    .cfi_startproc
    .cfi_def_cfa_offset 112
    mov (%rsp), %rbx
    mov 8(%rsp), %rbp
    mov 16(%rsp), %r12
    mov 24(%rsp), %r13
    mov 32(%rsp), %r14
    mov 40(%rsp), %r15
    mov 56(%rsp), %rcx
    mov 64(%rsp), %rax
    mov 72(%rsp), %rdx
    mov 48(%rsp), %rsp
    .cfi_undefined %rip
    mov %rax, %rdi
    jmp *%rcx
    .cfi_endproc
    .size weft_unwind_load, . - weft_unwind_load

    .popsection
)");

#else

extern "C" _Unwind_Reason_Code weft_unwind_stop(int, _Unwind_Action actions,
                                                _Unwind_Exception_Class, _Unwind_Exception*,
                                                _Unwind_Context* context, void* argument) {
    using namespace weft::detail;
    unwinding& u = *static_cast<unwinding*>(argument);
    recount(u);
    const bool at_end = sp_of(context) >= reinterpret_cast<std::uintptr_t>(u.end);
    if (!at_end && (actions & _UA_END_OF_STACK) == 0) return _URC_NO_REASON;
    if (WEFT_ARM && !at_end)
        weft::fail("a function without an unwind table is in the way of a kill");
    settle(u);
    u.finished(u);
    weft::fail("unwinding::finished returned");
}

void weft::detail::unwind(unwinding& u) { weft_unwind_slowly(u); }

#endif
