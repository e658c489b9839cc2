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

#ifdef __GLIBC__  // whose functions enable traps
// Why no trap can be tested, or null: the bits that enable them are optional on Arm's processors,
// and read as zero where there are none. This does not go by what is tested here.
const char* why_no_traps() {
#if WEFT_X86_64 || WEFT_I386 || WEFT_S390X || WEFT_PPC64LE
    return nullptr;
#elif WEFT_AARCH64 || WEFT_ARM
#if WEFT_AARCH64
    using bits = std::uint64_t;
    const auto read = [](bits& b) { asm volatile("mrs %0, fpcr" : "=r"(b)); };
    const auto write = [](bits b) { asm volatile("msr fpcr, %0" : : "r"(b)); };
#else
    using bits = std::uint32_t;
    const auto read = [](bits& b) { asm volatile("vmrs %0, fpscr" : "=r"(b)); };
    const auto write = [](bits b) { asm volatile("vmsr fpscr, %0" : : "r"(b)); };
#endif
    constexpr bits divide_by_zero = 1u << 9;
    bits before, after;
    read(before);
    write(before | divide_by_zero);
    read(after);
    write(before);
    return (after & divide_by_zero) != 0 ? nullptr : "this processor has no traps";
#elif WEFT_RISCV64
    return "riscv64 has no traps";
#else
    return "the rounding mode alone is kept here";
#endif
}

// What traps now; x86 has two units, which are to agree.
int traps() {
    const int on = ::fegetexcept();
#if WEFT_X86_64 || WEFT_I386
    std::uint32_t mxcsr;
    asm volatile("stmxcsr %0" : "=m"(mxcsr));
    EXPECT_EQ(static_cast<int>(~mxcsr >> 7) & FE_ALL_EXCEPT, on);
#endif
    return on;
}

TEST_F(fp_environment_test, restores_the_traps) {
    if (const char* const why = why_no_traps()) GTEST_SKIP() << why;
    fp_control plain, trapping;
    plain.read();
    ASSERT_NE(::feenableexcept(FE_DIVBYZERO), -1);
    ASSERT_EQ(traps(), FE_DIVBYZERO);
    EXPECT_FALSE(plain.is_current());
    trapping.read();
    plain.write();
    EXPECT_TRUE(plain.is_current());
    EXPECT_EQ(traps(), 0);
    trapping.write();
    EXPECT_TRUE(trapping.is_current());
    EXPECT_EQ(traps(), FE_DIVBYZERO);
}
#endif

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
