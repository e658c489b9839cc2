// Laws of a switch, register by register: what a function's caller may keep across a call is there
// after the function has switched away and back, and so is what the compiler kept for the function
// itself. One table per ABI says which registers there are; all tests below are made from it.
//
//     the test ----> weft_test_across ----> a function ----> switch_to ----> weft_test_destroyer
//                    sets each register     holds values         |           destroys all that it
//                    that a call keeps;     of each class        |           can, and switches back
//                    compares them  <-----  compares them <------+
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "weft/context/context.hpp"
#include "weft/context/fp_environment.hpp"

#if !WEFT_BACKEND_UCONTEXT

// A table has
//   KEPT_<class>      the registers that the ABI lets a caller keep across a call, as a list
//   GIVEN_UP_<class>  the others that a program may use, but for those that carry the arrival
//   STORE_, LOAD_, DESTROY_<class>  how `\r` is stored to `at(base)`, loaded, and destroyed; the
//                     base is the register of the first argument
//   ENTER, CALL, LEAVE  of weft_test_across: a frame that keeps the base, the call of the function
//                     at 0(base), after which the base is loaded again, the return
//   EXPLICIT          members of a context that a switch loads before its jump, besides pc and sp
//   ARRIVE, RETURN    a switch to the destroyer and back, in assembly: what every switch does after
//                     and before its jump; and the destroyer stores those above behind its
//                     context, as it has them
//   VALUE_<class>     a constraint for a value of that class
//
// The classes are general, floating, vector, and condition, which only one ABI keeps. The thread's
// and the program's registers (thread pointer, riscv's gp) are in no list: no switch touches them.
// A value that the x87 still holds is lost when eight more are pushed.
#define DESTROY_X87 ".rept \\r\n fldz\n .endr\n .rept \\r\n fstp %st(0)\n .endr"

#if WEFT_WINDOWS
#define KEPT_GENERAL "rbx, rbp, rsi, rdi, r12, r13, r14, r15"
#define KEPT_FLOATING ""
#define KEPT_VECTOR "6, 7, 8, 9, 10, 11, 12, 13, 14, 15"
#define GIVEN_UP_GENERAL "rax, r9, r10, r11"
#define GIVEN_UP_FLOATING "8"
#define GIVEN_UP_VECTOR "0, 1, 2, 3, 4, 5"
#define STORE_GENERAL "movq %\\r, at(%rcx)"
#define LOAD_GENERAL "movq at(%rcx), %\\r"
#define DESTROY_GENERAL "movq $-1, %\\r"
#define STORE_FLOATING ""
#define LOAD_FLOATING ""
#define DESTROY_FLOATING DESTROY_X87
#define STORE_VECTOR "movups %xmm\\r, at(%rcx)"
#define LOAD_VECTOR "movups at(%rcx), %xmm\\r"
#define DESTROY_VECTOR "pcmpeqd %xmm\\r, %xmm\\r"
#define ENTER "pushq %rcx\n subq $32, %rsp"
#define CALL "call *(%rcx)\n movq 32(%rsp), %rcx"
#define LEAVE "addq $32, %rsp\n popq %rcx\n ret"
#define TIB(offset, at) "movq %gs:" #offset ", %rax\n movq %rax, " #at "(%rdx)\n"
#define ARRIVE                                                                         \
    "movq %rbp, 72(%rdx)\n" TIB(0x00, 80) TIB(0x08, 88) TIB(0x10, 96) TIB(0x1478, 104) \
        TIB(0x20, 112)
#define EXPLICIT                                                                \
    &weft::context::bp, &weft::context::tib_handlers, &weft::context::tib_base, \
        &weft::context::tib_limit, &weft::context::tib_allocation, &weft::context::tib_fiber
#define SET_TIB(at, offset) "movq " #at "(%rdx), %rax\n movq %rax, %gs:" #offset "\n"
#define RETURN                                                                                     \
    "xchgq %rcx, %rdx\n" SET_TIB(32, 0x00) SET_TIB(40, 0x08) SET_TIB(48, 0x10) SET_TIB(56, 0x1478) \
        SET_TIB(64, 0x20) "movq 8(%rdx), %rsp\n movq 16(%rdx), %rbp\n jmpq *(%rdx)"
#define VALUE_FLOATING "t"
#define VALUE_VECTOR "x"
#elif WEFT_X86_64
#define KEPT_GENERAL "rbx, rbp, r12, r13, r14, r15"
#define KEPT_FLOATING ""
#define KEPT_VECTOR ""
#define GIVEN_UP_GENERAL "rax, rcx, r8, r9, r10, r11"
#define GIVEN_UP_FLOATING "8"
#define GIVEN_UP_VECTOR "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"
#define STORE_GENERAL "movq %\\r, at(%rdi)"
#define LOAD_GENERAL "movq at(%rdi), %\\r"
#define DESTROY_GENERAL "movq $-1, %\\r"
#define STORE_FLOATING ""
#define LOAD_FLOATING ""
#define DESTROY_FLOATING DESTROY_X87
#define STORE_VECTOR ""
#define LOAD_VECTOR ""
#define DESTROY_VECTOR "pcmpeqd %xmm\\r, %xmm\\r"
#define ENTER "pushq %rdi"
#define CALL "call *(%rdi)\n movq (%rsp), %rdi"
#define LEAVE "popq %rdi\n ret"
#define ARRIVE "movq %rbp, 32(%rsi)"
#define EXPLICIT &weft::context::bp
#define RETURN "xchgq %rdi, %rsi\n movq 8(%rsi), %rsp\n movq 16(%rsi), %rbp\n jmpq *(%rsi)"
#define VALUE_FLOATING "t"
#define VALUE_VECTOR "x"
#elif WEFT_AARCH64
#define KEPT_GENERAL "x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29"
#define KEPT_FLOATING "d8, d9, d10, d11, d12, d13, d14, d15"
#define KEPT_VECTOR ""
#define GIVEN_UP_GENERAL \
    "x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15, x16, x17, x18, x30"
#define GIVEN_UP_FLOATING ""
#define GIVEN_UP_VECTOR                                                                          \
    "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, " \
    "25, 26, 27, 28, 29, 30, 31"
#define STORE_GENERAL "str \\r, [x0, at]"
#define LOAD_GENERAL "ldr \\r, [x0, at]"
#define DESTROY_GENERAL "mov \\r, -1"
#define STORE_FLOATING "str \\r, [x0, at]"
#define LOAD_FLOATING "ldr \\r, [x0, at]"
#define DESTROY_FLOATING ""
#define STORE_VECTOR ""
#define LOAD_VECTOR ""
#define DESTROY_VECTOR "movi v\\r\\().16b, 255"
#define ENTER "stp x0, x30, [sp, -16]!"
#define CALL "ldr x16, [x0]\n blr x16\n ldr x0, [sp]"
#define LEAVE "ldp x0, x30, [sp], 16\n ret"
#define ARRIVE "stp x29, x19, [x1, 32]"
#define EXPLICIT &weft::context::fp, &weft::context::x19
#define RETURN                                                                  \
    "mov x9, x0\n mov x0, x1\n mov x1, x9\n ldp x16, x17, [x1]\n mov sp, x17\n" \
    "ldp x29, x19, [x1, 16]\n br x16"
#define VALUE_FLOATING "w"
#define VALUE_VECTOR "w"
#elif WEFT_RISCV64
#define KEPT_GENERAL "s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11"
#define KEPT_FLOATING "fs0, fs1, fs2, fs3, fs4, fs5, fs6, fs7, fs8, fs9, fs10, fs11"
#define KEPT_VECTOR ""
#define GIVEN_UP_GENERAL "ra, t0, t1, t2, t3, t4, t5, t6, a3, a4, a5, a6, a7"
#define GIVEN_UP_FLOATING                                                                     \
    "ft0, ft1, ft2, ft3, ft4, ft5, ft6, ft7, ft8, ft9, ft10, ft11, fa0, fa1, fa2, fa3, fa4, " \
    "fa5, fa6, fa7"
#define STORE_GENERAL "sd \\r, at(a0)"
#define LOAD_GENERAL "ld \\r, at(a0)"
#define DESTROY_GENERAL "li \\r, -1"
#define STORE_FLOATING "fsd \\r, at(a0)"
#define LOAD_FLOATING "fld \\r, at(a0)"
#define DESTROY_FLOATING "fmv.d.x \\r, t0"
#define STORE_VECTOR ""
#define LOAD_VECTOR ""
#if defined(__riscv_vector)
#define GIVEN_UP_VECTOR                                                                          \
    "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, " \
    "25, 26, 27, 28, 29, 30, 31"
#define DESTROY_VECTOR "vsetivli zero, 1, e8, m1, ta, ma\n vmv1r.v v\\r, v0\n vmv.v.i v\\r, -1"
#else
#define GIVEN_UP_VECTOR ""
#define DESTROY_VECTOR ""
#endif
#define ENTER "addi sp, sp, -16\n sd a0, 0(sp)\n sd ra, 8(sp)"
#define CALL "ld t0, 0(a0)\n jalr t0\n ld a0, 0(sp)"
#define LEAVE "ld ra, 8(sp)\n addi sp, sp, 16\n ret"
#define ARRIVE "sd t2, 0(a0)\n sd s0, 32(a1)"
#define EXPLICIT &weft::context::fp
#define RETURN                                                                          \
    "mv t0, a0\n mv a0, a1\n mv a1, t0\n ld t1, 0(a1)\n ld sp, 8(a1)\n ld s0, 16(a1)\n" \
    "lla t2, weft_test_destroyer\n jr t1"
#define VALUE_FLOATING "f"
#elif WEFT_ARM
#define KEPT_GENERAL "r4, r5, r6, r7, r8, r9, r10, r11"
#define KEPT_FLOATING "d8, d9, d10, d11, d12, d13, d14, d15"
#define KEPT_VECTOR ""
#define GIVEN_UP_GENERAL "r3, ip, lr"
#define GIVEN_UP_FLOATING "d0, d1, d2, d3, d4, d5, d6, d7"
#if defined(__ARM_NEON)
#define GIVEN_UP_VECTOR "8, 9, 10, 11, 12, 13, 14, 15"
#else
#define GIVEN_UP_VECTOR ""
#endif
#define STORE_GENERAL "str \\r, [r0, at]"
#define LOAD_GENERAL "ldr \\r, [r0, at]"
#define DESTROY_GENERAL "mvn \\r, 0"
#define STORE_FLOATING "vstr \\r, [r0, at]"
#define LOAD_FLOATING "vldr \\r, [r0, at]"
#define DESTROY_FLOATING "vmov \\r, r3, r3"
#define STORE_VECTOR ""
#define LOAD_VECTOR ""
#define DESTROY_VECTOR "vmvn.i32 q\\r, 0"
#define ENTER "push {r0, lr}"
#define CALL "ldr ip, [r0]\n blx ip\n ldr r0, [sp]"
#define LEAVE "pop {r0, pc}"
#define ARRIVE "add ip, r1, 20\n stm ip, {r6, r7, r11}"
#define EXPLICIT &weft::context::bp, &weft::context::r7, &weft::context::r11
#define RETURN                                                                            \
    "mov r4, r0\n mov r0, r1\n mov r1, r4\n ldm r1, {r3, r6, r7, r11, ip}\n mov sp, ip\n" \
    "bx r3"
#define VALUE_FLOATING "w"
#if defined(__ARM_NEON)
#define VALUE_VECTOR "w"
#endif
#elif WEFT_I386
#define KEPT_GENERAL "ebx, esi, edi, ebp"
#define KEPT_FLOATING ""
#define KEPT_VECTOR ""
#define GIVEN_UP_GENERAL ""
#define GIVEN_UP_FLOATING "8"
#define STORE_GENERAL "movl %\\r, at(%eax)"
#define LOAD_GENERAL "movl at(%eax), %\\r"
#define DESTROY_GENERAL "movl $-1, %\\r"
#define STORE_FLOATING ""
#define LOAD_FLOATING ""
#define DESTROY_FLOATING DESTROY_X87
#define STORE_VECTOR ""
#define LOAD_VECTOR ""
#if defined(__SSE2__)
#define GIVEN_UP_VECTOR "0, 1, 2, 3, 4, 5, 6, 7"
#define DESTROY_VECTOR "pcmpeqd %xmm\\r, %xmm\\r"
#define VALUE_VECTOR "x"
#else
#define GIVEN_UP_VECTOR ""
#define DESTROY_VECTOR ""
#endif
#define ENTER "movl 4(%esp), %eax\n subl $12, %esp"
#define CALL "call *(%eax)\n movl 16(%esp), %eax"
#define LEAVE "addl $12, %esp\n ret"
#define ARRIVE "movl %ebp, 16(%edx)"
#define EXPLICIT &weft::context::bp
#define RETURN "xchgl %eax, %edx\n movl 4(%edx), %esp\n movl 8(%edx), %ebp\n jmp *(%edx)"
#define VALUE_FLOATING "t"
#elif WEFT_S390X
#define KEPT_GENERAL "%r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13"
#define KEPT_FLOATING "%f8, %f9, %f10, %f11, %f12, %f13, %f14, %f15"
#define KEPT_VECTOR ""
#define GIVEN_UP_GENERAL "%r0, %r1, %r5, %r14"
#define GIVEN_UP_FLOATING "%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7"
#define STORE_GENERAL "stg \\r, at(%r2)"
#define LOAD_GENERAL "lg \\r, at(%r2)"
#define DESTROY_GENERAL "lghi \\r, -1"
#define STORE_FLOATING "std \\r, at(%r2)"
#define LOAD_FLOATING "ld \\r, at(%r2)"
#define DESTROY_FLOATING "ldgr \\r, %r5"
#define STORE_VECTOR ""
#define LOAD_VECTOR ""
#if defined(__VX__)
#define GIVEN_UP_VECTOR                                                                          \
    "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, " \
    "25, 26, 27, 28, 29, 30, 31"
#define DESTROY_VECTOR "vone %v\\r"
#define VALUE_VECTOR "v"
#else
#define GIVEN_UP_VECTOR ""
#define DESTROY_VECTOR ""
#endif
#define ENTER "aghi %r15, -176\n stg %r2, 160(%r15)\n stg %r14, 168(%r15)"
#define CALL "lg %r1, 0(%r2)\n basr %r14, %r1\n lg %r2, 160(%r15)"
#define LEAVE "lg %r14, 168(%r15)\n aghi %r15, 176\n br %r14"
#define ARRIVE "stmg %r11, %r13, 40(%r3)"
#define EXPLICIT &weft::context::fp, &weft::context::got, &weft::context::lit
#define RETURN "lgr %r5, %r2\n lgr %r2, %r3\n lgr %r3, %r5\n lmg %r11, %r15, 0(%r3)\n br %r14"
#define VALUE_FLOATING "f"
#elif WEFT_PPC64LE
#define KEPT_GENERAL "14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31"
#define KEPT_FLOATING "14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31"
#define KEPT_VECTOR "20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31"
// r2 too: an agent of another module has another.
#define GIVEN_UP_GENERAL "0, 2, 6, 7, 8, 9, 10, 11, 12"
#define GIVEN_UP_FLOATING "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13"
#define GIVEN_UP_VECTOR "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19"
#define KEPT_CONDITION "cr"
#define STORE_GENERAL "std \\r, at(3)"
#define LOAD_GENERAL "ld \\r, at(3)"
#define DESTROY_GENERAL "li \\r, -1"
#define STORE_FLOATING "stfd \\r, at(3)"
#define LOAD_FLOATING "lfd \\r, at(3)"
#define DESTROY_FLOATING "mtvsrd \\r, 6"
#define STORE_VECTOR "li 0, at\n stvx \\r, 3, 0"
#define LOAD_VECTOR "li 0, at\n lvx \\r, 3, 0"
#define DESTROY_VECTOR "vspltisb \\r, -1"
#define STORE_CONDITION "mfcr 0\n rlwinm 0, 0, 0, 8, 19\n std 0, at(3)"  // fields 2 to 4
#define LOAD_CONDITION "ld 0, at(3)\n mtcrf 0x38, 0"
#define ENTER "mflr 0\n std 0, 16(1)\n stdu 1, -64(1)\n std 3, 48(1)\n std 2, 24(1)"
#define CALL "ld 12, 0(3)\n mtctr 12\n bctrl\n ld 2, 24(1)\n ld 3, 48(1)"
#define LEAVE "addi 1, 1, 64\n ld 0, 16(1)\n mtlr 0\n blr"
#define ARRIVE "std 2, 40(4)\n std 31, 48(4)"
#define EXPLICIT &weft::context::toc, &weft::context::fp
#define RETURN                                                                                   \
    "mtcrf 255, 6\n mtlr 6\n mtxer 6\n mr 0, 3\n mr 3, 4\n mr 4, 0\n ld 12, 0(4)\n ld 1, 8(4)\n" \
    "ld 2, 16(4)\n ld 31, 24(4)\n mtctr 12\n bctr"
#define VALUE_FLOATING "d"
#define VALUE_VECTOR "v"
#endif

#if !defined(KEPT_CONDITION)
#define KEPT_CONDITION ""
#define STORE_CONDITION ""
#define LOAD_CONDITION ""
#endif
#define COUNT_GENERAL ".set count, count + 1"
#define COUNT_FLOATING COUNT_GENERAL
#define COUNT_VECTOR COUNT_GENERAL
#define COUNT_CONDITION COUNT_GENERAL

// One instruction for each register of a list; one for each that a call keeps, with its cell.
#define FOR_EACH(list, instruction) \
    " .irp r, " list "\n .ifnb \\r\n " instruction "\n .set at, at + 16\n .endif\n .endr\n"
#define FOR_EACH_KEPT(what)                  \
    FOR_EACH(KEPT_GENERAL, what##_GENERAL)   \
    FOR_EACH(KEPT_FLOATING, what##_FLOATING) \
    FOR_EACH(KEPT_VECTOR, what##_VECTOR)     \
    FOR_EACH(KEPT_CONDITION, what##_CONDITION)

#if WEFT_ARM
#define BEGIN " .syntax unified\n .arm\n .text\n .p2align 4\n"
#if defined(__thumb__)
#define END " .thumb\n"
#endif
#else
#define BEGIN " .text\n .p2align 4\n"
#endif
#if !defined(END)
#define END ""
#endif
#if WEFT_WINDOWS  // whose object files have no types
#define FUNCTION(name) ""
#else
#define FUNCTION(name) " .type " name ", %function\n"
#endif

// clang-format off
asm(BEGIN
    " .set at, 0\n .set count, 0\n" FOR_EACH_KEPT(COUNT)
    " .globl weft_test_across\n"
    FUNCTION("weft_test_across")
    "weft_test_across:\n " ENTER "\n"
    " .set at, 16\n" FOR_EACH_KEPT(STORE)
    " .set at, 16 + 16 * count\n" FOR_EACH_KEPT(LOAD)
    " .set at, 16 + 16 * count\n" FOR_EACH_KEPT(STORE)
    " " CALL "\n"
    " .set at, 16 + 32 * count\n" FOR_EACH_KEPT(STORE)
    " .set at, 16\n" FOR_EACH_KEPT(LOAD)
    " " LEAVE "\n"
    " .globl weft_test_destroyer\n"
    FUNCTION("weft_test_destroyer")
    "weft_test_destroyer:\n " ARRIVE "\n"
    FOR_EACH(KEPT_GENERAL, DESTROY_GENERAL) FOR_EACH(GIVEN_UP_GENERAL, DESTROY_GENERAL)
    FOR_EACH(KEPT_FLOATING, DESTROY_FLOATING) FOR_EACH(GIVEN_UP_FLOATING, DESTROY_FLOATING)
    FOR_EACH(KEPT_VECTOR, DESTROY_VECTOR) FOR_EACH(GIVEN_UP_VECTOR, DESTROY_VECTOR)
    " " RETURN "\n" END);
// clang-format on

namespace {

struct alignas(16) cell {
    std::array<std::uint64_t, 2> half;
    bool operator==(const cell&) const = default;
};

// The first cell is the function to be called; then for each register what the test had there, what
// it has while the function runs, and what the function leaves.
extern "C" void weft_test_across(cell* cells);
extern "C" void weft_test_destroyer();

std::vector<std::string> names_in(const char* list) {
    std::istringstream all(list);
    std::vector<std::string> names;
    for (std::string name; std::getline(all >> std::ws, name, ',');) names.push_back(name);
    return names;
}

alignas(64) std::byte stack_of_destroyer[64 * 1024];
weft::context here;
struct : weft::context {
    std::array<void*, 6> seen;  // written by the assembly
} destroyer;

void switch_away() { weft::switch_to(here, destroyer, nullptr); }

class registers : public ::testing::Test {
protected:
    void SetUp() override {
        static const weft::entry_point none = {};
        weft::make_context(destroyer, stack_of_destroyer + sizeof stack_of_destroyer, none);
        destroyer.pc = reinterpret_cast<void*>(&weft_test_destroyer);
    }
};

TEST_F(registers, of_a_caller_are_kept) {
    std::vector<std::string> names;
    for (const char* list : {KEPT_GENERAL, KEPT_FLOATING, KEPT_VECTOR, KEPT_CONDITION})
        for (const std::string& name : names_in(list)) names.push_back(name);
    const std::size_t count = names.size();
    std::vector<cell> cells(1 + 3 * count);
    void (*const function)() = switch_away;
    std::memcpy(cells.data(), &function, sizeof function);
    cell* const before = &cells[1 + count];
    cell* const after = &cells[1 + 2 * count];
    for (std::size_t i = 0; i != count; ++i)
        before[i].half.fill(0x1234567812345678 + i * 0x1000010000100001);
    // What a register leaves of its cell is as before; the first bytes of each must be written.
    std::copy_n(before, count, after);
    for (std::size_t i = 0; i != count; ++i) std::memset(&after[i], 0, 4);
    weft_test_across(cells.data());
    for (std::size_t i = 0; i != count; ++i)
        EXPECT_EQ(before[i].half, after[i].half) << names[i] << ", the " << i << "th";
}

TEST_F(registers, without_a_clobber_are_those_of_the_target) {
    const std::array members = {EXPLICIT};
    for (std::size_t i = 0; i != members.size(); ++i) destroyer.*members[i] = &destroyer.seen[i];
    switch_away();
    for (std::size_t i = 0; i != members.size(); ++i)
        EXPECT_EQ(destroyer.seen[i], &destroyer.seen[i]) << i;
}

template <class T>
bool is_same(const T& a, const T& b) {
    if constexpr (std::is_arithmetic_v<T>)
        return a == b;
    else
        return std::memcmp(&a, &b, sizeof a) == 0;
}

// A loop that keeps one value in a register, if any of the value's class is left to it. Where the
// compiler does not optimise it is in memory.
#define KEEPS(type, constraint)                        \
    [] {                                               \
        static const type first = type{} + 7;          \
        type v = first;                                \
        for (int i = 0; i != 4; ++i) {                 \
            asm volatile("" : "+" constraint(v));      \
            weft::switch_to(here, destroyer, nullptr); \
            asm volatile("" : "+" constraint(v));      \
        }                                              \
        return is_same(v, first);                      \
    }()

TEST_F(registers, with_a_general_value_are_kept) { EXPECT_TRUE(KEEPS(std::uintptr_t, "r")); }

#if defined(VALUE_FLOATING)
#if WEFT_X86_64 || WEFT_I386
using floating = long double;
#else
using floating = double;
#endif
TEST_F(registers, with_a_floating_value_are_kept) { EXPECT_TRUE(KEEPS(floating, VALUE_FLOATING)); }
#endif

#if defined(VALUE_VECTOR)
using vector = std::uint32_t __attribute__((vector_size(16)));
TEST_F(registers, with_a_vector_are_kept) { EXPECT_TRUE(KEEPS(vector, VALUE_VECTOR)); }
#endif

// The switch leaves the environment to its owner (fp_environment.hpp).
TEST_F(registers, of_the_environment_are_not_touched) {
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
        std::fesetround(mode);
        switch_away();
        EXPECT_EQ(std::fegetround(), mode);
    }
}

}  // namespace

#endif
