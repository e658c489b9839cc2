// platform: every question has an answer, and the answers agree with the build.
#include "weft/base/platform.hpp"

#include <gtest/gtest.h>

namespace {

constexpr bool yes_or_no(int answer) { return answer == 0 || answer == 1; }

TEST(platform, defines_every_macro_as_zero_or_one) {
    EXPECT_TRUE(yes_or_no(WEFT_CLANG));
    EXPECT_TRUE(yes_or_no(WEFT_GCC));
    EXPECT_TRUE(yes_or_no(WEFT_LINUX));
    EXPECT_TRUE(yes_or_no(WEFT_WINDOWS));
    EXPECT_TRUE(yes_or_no(WEFT_X86_64));
    EXPECT_TRUE(yes_or_no(WEFT_AARCH64));
    EXPECT_TRUE(yes_or_no(WEFT_RISCV64));
    EXPECT_TRUE(yes_or_no(WEFT_ARM));
    EXPECT_TRUE(yes_or_no(WEFT_I386));
    EXPECT_TRUE(yes_or_no(WEFT_S390X));
    EXPECT_TRUE(yes_or_no(WEFT_PPC64LE));
    EXPECT_TRUE(yes_or_no(WEFT_BACKEND_UCONTEXT));
    EXPECT_TRUE(yes_or_no(WEFT_ASAN));
    EXPECT_TRUE(yes_or_no(WEFT_TSAN));
    EXPECT_TRUE(yes_or_no(WEFT_EXCEPTIONS));
    EXPECT_TRUE(yes_or_no(WEFT_DEBUG));
}

TEST(platform, detects_exactly_one_compiler) { EXPECT_EQ(WEFT_CLANG + WEFT_GCC, 1); }

TEST(platform, never_detects_both_sanitizers) { EXPECT_LE(WEFT_ASAN + WEFT_TSAN, 1); }

TEST(platform, detects_the_sanitizer_of_the_build) {
    EXPECT_EQ(WEFT_ASAN, WEFT_TEST_ASAN);
    EXPECT_EQ(WEFT_TSAN, WEFT_TEST_TSAN);
}

TEST(platform, tests_are_built_with_exceptions) { EXPECT_EQ(WEFT_EXCEPTIONS, 1); }

constexpr int processors =
    WEFT_X86_64 + WEFT_AARCH64 + WEFT_RISCV64 + WEFT_ARM + WEFT_I386 + WEFT_S390X + WEFT_PPC64LE;

TEST(platform, detects_at_most_one_processor) { EXPECT_LE(processors, 1); }

TEST(platform, selects_the_asm_backend_only_where_it_is_written) {
    if (WEFT_BACKEND_UCONTEXT == 0) {
        EXPECT_EQ(processors, 1);
        EXPECT_EQ(WEFT_LINUX + (WEFT_WINDOWS & WEFT_X86_64), 1);
    }
}

TEST(platform, cache_line_size_is_a_power_of_two) {
    EXPECT_EQ(weft::cache_line_bytes & (weft::cache_line_bytes - 1), 0U);
}

}  // namespace
