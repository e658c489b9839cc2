#include "weft/unwind/detail/unwind_rules.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "weft/base/platform.hpp"

using weft::detail::decode_rule;
using weft::detail::frame_kind;
using weft::detail::frame_rule;
using weft::detail::rule_at;
using weft::detail::rules_decoded;

namespace {

bool same(const frame_rule& a, const frame_rule& b) {
    return a.why == b.why && a.pad == b.pad && a.selector == b.selector && a.kind == b.kind &&
           a.args_bytes == b.args_bytes && a.cfa_offset == b.cfa_offset && a.last == b.last &&
           a.cfa_register == b.cfa_register && std::memcmp(a.saved, b.saved, sizeof a.saved) == 0;
}

std::uintptr_t code_of(const char* function) {
    return reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, function));
}

#if WEFT_X86_64
// Each row of call frame information by itself: the address behind the instruction it holds for.
extern "C" const unsigned char unwind_rules_test_rows[];
asm(R"(
    .text
    .cfi_startproc
    nop
unwind_rules_test_rows:
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    nop
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    push %r12
    .cfi_offset %r12, -24
    .cfi_remember_state
    nop
    .cfi_restore %r12
    .cfi_escape 0x2e, 32
    nop
    .cfi_restore_state
    nop
    .cfi_def_cfa %r10, 0
    nop
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    .cfi_undefined %rip
    nop
    .cfi_offset %rdi, -40
    nop
    .cfi_endproc
)");

frame_rule row_at(unsigned offset) {
    return decode_rule(reinterpret_cast<std::uintptr_t>(unwind_rules_test_rows) + offset);
}
#endif

}  // namespace

#if WEFT_X86_64
TEST(frame_rule, applies_call_frame_information_up_to_the_call) {
    constexpr int rbp = 1, r12 = 2;
    const frame_rule entry = row_at(0);
    EXPECT_EQ(entry.kind, frame_kind::plain);
    EXPECT_EQ(entry.cfa_register, 6);
    EXPECT_EQ(entry.cfa_offset, 8);
    EXPECT_EQ(entry.saved[rbp], 0);

    const frame_rule pushed = row_at(2);
    EXPECT_EQ(pushed.cfa_register, 6);
    EXPECT_EQ(pushed.cfa_offset, 16);
    EXPECT_EQ(pushed.saved[rbp], -2);

    const frame_rule framed = row_at(7);
    EXPECT_EQ(framed.cfa_register, rbp);
    EXPECT_EQ(framed.cfa_offset, 16);
    EXPECT_EQ(framed.saved[rbp], -2);
    EXPECT_EQ(row_at(8).saved[r12], -3);
}

TEST(frame_rule, remembers_and_restores_rows) {
    constexpr int r12 = 2;
    EXPECT_EQ(row_at(9).saved[r12], 0);
    EXPECT_EQ(row_at(9).args_bytes, 32u);
    EXPECT_EQ(row_at(10).saved[r12], -3);
}

TEST(frame_rule, is_slow_when_the_row_does_not_fit) {
    EXPECT_EQ(row_at(11).kind, frame_kind::slow);  // a CFA in a register that calls do not keep
    EXPECT_EQ(row_at(13).kind, frame_kind::slow);  // such a register that is to be restored
}

TEST(frame_rule, has_no_caller_when_the_return_address_is_undefined) {
    EXPECT_EQ(row_at(12).kind, frame_kind::plain);
    EXPECT_TRUE(row_at(12).last);
    EXPECT_FALSE(row_at(10).last);
}
#endif

TEST(frame_rule, refuses_an_address_that_is_not_code) {
    static const char data[64] = {};
    const frame_rule rule = decode_rule(reinterpret_cast<std::uintptr_t>(data) + 32);
    EXPECT_EQ(rule.kind, frame_kind::refused);
    EXPECT_NE(rule.why, nullptr);
}

TEST(rule_at, decodes_each_address_once_even_when_the_table_grows) {
    constexpr unsigned count = 3'000;
    const std::uintptr_t code = code_of("qsort");
    ASSERT_NE(code, 0u);
    frame_rule spare;
    for (unsigned i = 1; i <= count; ++i) rule_at(code + i, spare);
    const std::size_t decoded = rules_decoded();
    for (unsigned i = 1; i <= count; ++i)
        EXPECT_TRUE(same(rule_at(code + i, spare), decode_rule(code + i))) << i;
    EXPECT_EQ(rules_decoded(), decoded);
}

TEST(rule_at, returns_the_same_rules_on_many_threads) {
    const std::uintptr_t code = code_of("strtod");
    ASSERT_NE(code, 0u);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t != 4; ++t) {
        threads.emplace_back([&, t] {
            frame_rule spare;
            for (unsigned i = 1; i <= 2'000; ++i) {
                const std::uintptr_t pc = code + (i * (2 * t + 1)) % 2'000 + 1;
                if (!same(rule_at(pc, spare), decode_rule(pc))) ++wrong;
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
}

TEST(rule_at, keeps_the_module_of_a_cached_address_loaded) {
    void* module = ::dlopen("libthread_db.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (module == nullptr) GTEST_SKIP() << ::dlerror();
    void* code = ::dlsym(module, "td_init");
    ASSERT_NE(code, nullptr);
    frame_rule spare;
    const std::size_t decoded = rules_decoded();
    rule_at(reinterpret_cast<std::uintptr_t>(code) + 1, spare);  // refused, where C has no tables
    EXPECT_EQ(rules_decoded(), decoded + 1);
    ::dlclose(module);
    EXPECT_NE(::dlopen("libthread_db.so.1", RTLD_LAZY | RTLD_NOLOAD), nullptr);
}
