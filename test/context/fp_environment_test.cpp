#include "weft/context/fp_environment.hpp"

#include <gtest/gtest.h>

#include <cfenv>

namespace weft::detail {
namespace {

class fp_environment_test : public ::testing::Test {
protected:
    void TearDown() override { std::fesetenv(FE_DFL_ENV); }
};

TEST_F(fp_environment_test, restores_the_rounding_mode) {
    fp_control plain;
    plain.read();
    std::fesetround(FE_UPWARD);
    fp_control up;
    up.read();
    plain.write();
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    up.write();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
}

TEST_F(fp_environment_test, reports_whether_it_is_current) {
    fp_control plain;
    plain.read();
    EXPECT_TRUE(plain.is_current());
    std::fesetround(FE_DOWNWARD);
    EXPECT_FALSE(plain.is_current());
    plain.write();
    EXPECT_TRUE(plain.is_current());
}

// Where the processor has traps.
TEST_F(fp_environment_test, restores_the_traps) {
    fp_control plain;
    plain.read();
    if (::feenableexcept(FE_DIVBYZERO) == -1 || ::fegetexcept() != FE_DIVBYZERO)
        GTEST_SKIP() << "no traps";
    if (plain.is_current()) GTEST_SKIP() << "only the rounding mode is kept here";
    plain.write();
    EXPECT_TRUE(plain.is_current());
    EXPECT_EQ(::fegetexcept(), 0);
}

TEST_F(fp_environment_test, ignores_the_sticky_exception_flags) {
    std::feclearexcept(FE_ALL_EXCEPT);
    fp_control plain;
    plain.read();
    std::feraiseexcept(FE_INEXACT);
    EXPECT_TRUE(plain.is_current());
#if !WEFT_X86_64 && !WEFT_I386  // there a write has those of the read
    plain.write();
    EXPECT_TRUE(std::fetestexcept(FE_INEXACT));
#endif
}

#if WEFT_X86_64 || WEFT_I386
TEST_F(fp_environment_test, restores_flush_to_zero_and_the_x87_control_word) {
    fp_control plain;
    plain.read();
    const std::uint32_t flushing = plain.mxcsr | 0x8000;
    asm volatile("ldmxcsr %0" : : "m"(flushing));
    EXPECT_FALSE(plain.is_current());
    plain.write();
    EXPECT_TRUE(plain.is_current());
    const std::uint16_t single_precision = plain.x87 & ~std::uint16_t{0x300};
    asm volatile("fldcw %0" : : "m"(single_precision));
    EXPECT_FALSE(plain.is_current());
    plain.write();
    EXPECT_TRUE(plain.is_current());
}
#elif WEFT_AARCH64
void set_fpcr(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }

TEST_F(fp_environment_test, restores_flush_to_zero_and_default_nan) {
    constexpr std::uint32_t flush_to_zero = 1u << 24, default_nan = 1u << 25;
    fp_control plain;
    plain.read();
    for (const std::uint32_t bit : {flush_to_zero, default_nan}) {
        set_fpcr(plain.held | bit);
        EXPECT_FALSE(plain.is_current());
        plain.write();
        EXPECT_TRUE(plain.is_current());
    }
}
#endif

}  // namespace
}  // namespace weft::detail
