#include "weft/unwind/detail/unwind_code.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "weft/base/platform.hpp"

#if WEFT_X86_64

using weft::detail::machine_instruction;
using weft::detail::read_instruction;

namespace {

machine_instruction read(const unsigned char* code) {
    return read_instruction(reinterpret_cast<std::uintptr_t>(code));
}

std::ptrdiff_t target_of(const unsigned char* code) {
    return static_cast<std::ptrdiff_t>(read(code).target - reinterpret_cast<std::uintptr_t>(code));
}

}  // namespace

// A sample of instructions, and the length that the assembler gave to each.
extern "C" const unsigned char unwind_code_test_sample[];
extern "C" const unsigned char unwind_code_test_lengths[];
asm(R"(
    .section .rodata
unwind_code_test_lengths:
    .macro sample text:vararg
    .text
1:  \text
2:  .section .rodata
    .byte 2b - 1b
    .endm
    .text
unwind_code_test_sample:
    sample push %rbp
    sample push %r15
    sample push $0x12345
    sample push $1
    sample mov %rsp, %rbp
    sample sub $0x88, %rsp
    sample sub $8, %rsp
    sample mov %fs:0x28, %rax
    sample mov $0x1122334455667788, %rax
    sample mov $1, %eax
    sample movw $1, (%rax)
    sample movl $1, 0x12345(%rax, %rbx, 4)
    sample movq $1, 8(%rsp)
    sample lea 0x100(%rip), %rdi
    sample lea (, %rax, 8), %rdi
    sample movzbl (%r13), %eax
    sample imul $100, %rax, %rbx
    sample imul $1000, %rax, %rbx
    sample testb $1, (%rdi)
    sample testl $1, (%rdi)
    sample negq 8(%rdi)
    sample shl $3, %rax
    sample lock xadd %eax, (%rdi)
    sample cmpxchg16b (%rdi)
    sample endbr64
    sample rep stosq
    sample movaps %xmm0, 0x10(%rsp)
    sample pshufd $1, %xmm0, %xmm1
    sample pshufb %xmm0, %xmm1
    sample palignr $4, %xmm0, %xmm1
    sample vmovdqu 0x20(%rdi), %ymm1
    sample vpalignr $4, %ymm0, %ymm9, %ymm1
    sample vzeroupper
    sample vmovdqu64 0x40(%rdi), %zmm17
    sample nopw 0x200(%rax, %rax, 1)
    sample cmovne %rax, %rbx
    sample sete %al
    sample bt $3, %rax
    sample xchg %ax, %ax
    sample enter $8, $1
    sample leave
    sample cqto
    .section .rodata
    .byte 0
    .purgem sample
    .text
)");

TEST(machine_instruction, has_the_length_that_the_assembler_emitted) {
    const unsigned char* at = unwind_code_test_sample;
    int count = 0;
    for (const unsigned char* length = unwind_code_test_lengths; *length != 0; ++length, ++count) {
        const machine_instruction in = read(at);
        EXPECT_EQ(in.bytes, *length) << "number " << count;
        EXPECT_EQ(in.leads, machine_instruction::next) << "number " << count;
        at += *length;
    }
    EXPECT_GT(count, 40);
}

TEST(machine_instruction, decodes_the_target_of_a_jump_or_call) {
    const unsigned char call[] = {0xe8, 0x10, 0, 0, 0};
    EXPECT_EQ(read(call).leads, machine_instruction::call);
    EXPECT_EQ(target_of(call), 0x15);
    const unsigned char relaxed_call[] = {0x67, 0xe8, 0xf0, 0xff, 0xff, 0xff};
    EXPECT_EQ(read(relaxed_call).leads, machine_instruction::call);
    EXPECT_EQ(target_of(relaxed_call), -10);
    const unsigned char near_jump[] = {0xeb, 0xfe};
    EXPECT_EQ(read(near_jump).leads, machine_instruction::jump);
    EXPECT_EQ(target_of(near_jump), 0);
    const unsigned char far_jump[] = {0xe9, 0, 1, 0, 0};
    EXPECT_EQ(read(far_jump).leads, machine_instruction::jump);
    EXPECT_EQ(target_of(far_jump), 0x105);
    const unsigned char branch[] = {0x75, 0x20};
    EXPECT_EQ(read(branch).leads, machine_instruction::branch);
    EXPECT_EQ(target_of(branch), 0x22);
    const unsigned char far_branch[] = {0x0f, 0x84, 0x20, 0, 0, 0};
    EXPECT_EQ(read(far_branch).leads, machine_instruction::branch);
    EXPECT_EQ(target_of(far_branch), 0x26);
}

TEST(machine_instruction, decodes_a_rip_relative_slot_of_a_call_or_jump) {
    const unsigned char call[] = {0xff, 0x15, 0x10, 0, 0, 0};
    EXPECT_EQ(read(call).leads, machine_instruction::call_slot);
    EXPECT_EQ(target_of(call), 0x16);
    const unsigned char jump[] = {0xf2, 0xff, 0x25, 0x10, 0, 0, 0};
    EXPECT_EQ(read(jump).leads, machine_instruction::jump_slot);
    EXPECT_EQ(target_of(jump), 0x17);
    const unsigned char virtual_call[] = {0xff, 0x50, 0x08};
    EXPECT_EQ(read(virtual_call).leads, machine_instruction::next);
    const unsigned char table_jump[] = {0x3e, 0xff, 0xe0};
    EXPECT_EQ(read(table_jump).leads, machine_instruction::stop);
}

TEST(machine_instruction, reports_stops_and_unknown_instructions) {
    const unsigned char ret[] = {0xc3, 0};
    const unsigned char trap[] = {0x0f, 0x0b};
    const unsigned char breakpoint[] = {0xcc, 0};
    for (const unsigned char* code : {ret, trap, breakpoint})
        EXPECT_EQ(read(code).leads, machine_instruction::stop);
    const unsigned char padding[] = {0, 0};
    EXPECT_EQ(read(padding).leads, machine_instruction::unknown);
    const unsigned char not_in_64_bit[] = {0x06, 0x90};
    EXPECT_EQ(read(not_in_64_bit).leads, machine_instruction::unknown);
}

#endif
