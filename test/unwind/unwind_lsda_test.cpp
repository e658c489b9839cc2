#include "weft/unwind/detail/unwind_lsda.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "weft/base/platform.hpp"

using weft::detail::dwarf_bases;
using weft::detail::landing;
using weft::detail::pad_terminates;
using weft::detail::read_lsda;
using weft::detail::table_language;

namespace {

// A function of 64 bytes, each of them a return, with pads that may be read as code.
const std::vector<unsigned char> padded_code(64, 0xc3);

struct site {
    unsigned char start, length, pad, action;
};

// A table whose numbers are single bytes: sites, actions, and one type, "catch (...)".
class lsda {
public:
    lsda(std::initializer_list<site> sites, std::initializer_list<unsigned char> actions,
         std::initializer_list<unsigned char> specifications = {}) {
        const auto sites_bytes = static_cast<unsigned char>(sites.size() * 4);
        const auto types = static_cast<unsigned char>(2 + sites_bytes + actions.size() + 4);
        bytes_ = {0xff, 0x03, types, 0x01, sites_bytes};
        for (const site& s : sites)
            bytes_.insert(bytes_.end(), {s.start, s.length, s.pad, s.action});
        bytes_.insert(bytes_.end(), actions);
        bytes_.insert(bytes_.end(), 4, 0);
        for (const unsigned char s : specifications) {
            bytes_.push_back(s);
            if (WEFT_ARM) bytes_.insert(bytes_.end(), 3, 0);  // in words
        }
    }

    landing at(unsigned offset, table_language language = table_language::cpp) const {
        dwarf_bases bases;
        bases.function = reinterpret_cast<std::uintptr_t>(padded_code.data());
        return read_lsda(bytes_.data(), bases.function + offset, bases, language);
    }

private:
    std::vector<unsigned char> bytes_;
};

std::uintptr_t pad(unsigned offset) {
    return reinterpret_cast<std::uintptr_t>(padded_code.data()) + offset;
}

}  // namespace

TEST(lsda, has_no_action_for_a_call_without_a_landing_pad) {
    const lsda table({{0, 8, 0, 0}, {8, 8, 40, 0}}, {});
    EXPECT_EQ(table.at(3).pad, 0u);
    EXPECT_EQ(table.at(3).why, nullptr);
    EXPECT_TRUE(table.at(3).known);
}

TEST(lsda, enters_a_cleanup_with_selector_zero) {
    const lsda table({{0, 8, 0, 0}, {8, 8, 40, 0}}, {});
    for (const unsigned offset : {8u, 15u}) {
        EXPECT_EQ(table.at(offset).pad, pad(40));
        EXPECT_EQ(table.at(offset).selector, 0);
    }
}

TEST(lsda, refuses_unlisted_calls_in_cpp_and_passes_them_in_c) {
    const lsda table({{0, 8, 0, 0}, {16, 8, 40, 0}}, {});
    for (const unsigned offset : {8u, 15u, 24u, 60u}) {
        EXPECT_NE(table.at(offset).why, nullptr) << offset;
        const landing in_c = table.at(offset, table_language::c);
        EXPECT_EQ(in_c.why, nullptr);
        EXPECT_EQ(in_c.pad, 0u);
    }
    EXPECT_EQ(table.at(17, table_language::c).pad, pad(40));
}

TEST(lsda, enters_a_catch_all_with_its_filter) {
    const lsda table({{0, 8, 40, 1}}, {1, 0});
    EXPECT_EQ(table.at(0).pad, pad(40));
    EXPECT_EQ(table.at(0).selector, 1);
}

TEST(lsda, prefers_a_handler_to_the_cleanup_listed_before_it) {
    const lsda table({{0, 8, 40, 1}}, {0, 1, 1, 0});
    EXPECT_EQ(table.at(0).selector, 1);
}

TEST(lsda, refuses_an_empty_exception_specification) {
    const lsda nothing({{0, 8, 40, 1}}, {0x7f, 0}, {0});
    ASSERT_NE(nothing.at(0).why, nullptr);
    EXPECT_NE(std::string(nothing.at(0).why).find("throw()"), std::string::npos);
    const lsda something({{0, 8, 40, 1}}, {0x7f, 0}, {1, 0});
    EXPECT_EQ(something.at(0).why, nullptr);
    EXPECT_EQ(something.at(0).pad, 0u);
}

TEST(lsda, reports_an_unknown_table_encoding) {
    const unsigned char table[] = {0xff, 0xff, 0x05, 4, 0, 8, 0, 0};
    EXPECT_FALSE(read_lsda(table, 3, {}, table_language::cpp).known);
}

#if WEFT_X86_64 && WEFT_LINUX  // where a pad is read
// Pads as compilers write them. Each starts a function, so that it has an address.
extern "C" const unsigned char unwind_lsda_test_cleanup[], unwind_lsda_test_clang_noexcept[],
    unwind_lsda_test_gcc_noexcept[], unwind_lsda_test_handler[], unwind_lsda_test_typed[],
    unwind_lsda_test_aborts[], unwind_lsda_test_lost[];
asm(R"(
    .text
unwind_lsda_test_clang_call_terminate:
    push %rax
    call __cxa_begin_catch@PLT
    call _ZSt9terminatev@PLT
unwind_lsda_test_cleanup:
    mov %rax, %rbx
    cmpq $0, 8(%rsp)
    je 1f
    call _ZSt9terminatev@PLT
1:  mov %rbx, %rdi
    call _Unwind_Resume@PLT
unwind_lsda_test_clang_noexcept:
    mov %rax, %rdi
    call unwind_lsda_test_clang_call_terminate
unwind_lsda_test_gcc_noexcept:
    lea 8(%rsp), %rdi
    call unwind_lsda_test_destructor
    jmp 2f
unwind_lsda_test_handler:
    mov %rax, %rdi
    call *__cxa_begin_catch@GOTPCREL(%rip)
    call unwind_lsda_test_clang_call_terminate
unwind_lsda_test_typed:
    cmp $2, %edx
    je unwind_lsda_test_handler
    jmp unwind_lsda_test_clang_noexcept
unwind_lsda_test_aborts:
    test %rax, %rax
    je 3f
    call *abort@GOTPCREL(%rip)
    call _Unwind_Resume@PLT
3:  call _ZSt9terminatev@PLT
unwind_lsda_test_lost:
    jmp *%rax
unwind_lsda_test_destructor:
    ret
2:  call *_ZSt9terminatev@GOTPCREL(%rip)
)");

TEST(pad, terminates_only_when_every_path_calls_terminate) {
    const auto terminates = [](const unsigned char* at, std::int32_t selector) {
        return pad_terminates(reinterpret_cast<std::uintptr_t>(at), selector);
    };
    EXPECT_FALSE(terminates(unwind_lsda_test_cleanup, 0));
    EXPECT_TRUE(terminates(unwind_lsda_test_clang_noexcept, 1));
    EXPECT_TRUE(terminates(unwind_lsda_test_gcc_noexcept, 0));
    EXPECT_FALSE(terminates(unwind_lsda_test_handler, 1));
    EXPECT_TRUE(terminates(unwind_lsda_test_typed, 1));
    EXPECT_TRUE(terminates(unwind_lsda_test_aborts, 0));
    EXPECT_FALSE(terminates(unwind_lsda_test_lost, 0));
}
#endif
