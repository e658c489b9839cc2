// platform: every question has an answer, and the answers agree with the build.
#include "weft/base/platform.hpp"

#include <gtest/gtest.h>

namespace {

constexpr bool yes_or_no(int answer) { return answer == 0 || answer == 1; }

TEST(platform, answers_every_question_with_zero_or_one) {
    EXPECT_TRUE(yes_or_no(WEFT_CLANG));
    EXPECT_TRUE(yes_or_no(WEFT_GCC));
    EXPECT_TRUE(yes_or_no(WEFT_LINUX));
    EXPECT_TRUE(yes_or_no(WEFT_X86_64));
    EXPECT_TRUE(yes_or_no(WEFT_BACKEND_UCONTEXT));
    EXPECT_TRUE(yes_or_no(WEFT_ASAN));
    EXPECT_TRUE(yes_or_no(WEFT_TSAN));
    EXPECT_TRUE(yes_or_no(WEFT_EXCEPTIONS));
    EXPECT_TRUE(yes_or_no(WEFT_DEBUG));
}

TEST(platform, knows_exactly_one_compiler) { EXPECT_EQ(WEFT_CLANG + WEFT_GCC, 1); }

TEST(platform, never_sees_both_sanitizers) { EXPECT_LE(WEFT_ASAN + WEFT_TSAN, 1); }

TEST(platform, sees_the_sanitizer_the_build_asked_for) {
    EXPECT_EQ(WEFT_ASAN, WEFT_TEST_ASAN);
    EXPECT_EQ(WEFT_TSAN, WEFT_TEST_TSAN);
}

TEST(platform, tests_are_built_with_exceptions) { EXPECT_EQ(WEFT_EXCEPTIONS, 1); }

TEST(platform, the_asm_backend_is_claimed_only_where_it_is_written) {
    if (WEFT_BACKEND_UCONTEXT == 0) {
        EXPECT_EQ(WEFT_X86_64, 1);
        EXPECT_EQ(WEFT_LINUX, 1);
    }
}

TEST(platform, a_cache_line_is_a_power_of_two) {
    EXPECT_EQ(weft::cache_line_bytes & (weft::cache_line_bytes - 1), 0U);
}

}  // namespace
