// What a coroutine sets in the floating-point environment is its own, or must be put back.
#include <gtest/gtest.h>

#include <cfenv>
#include <thread>

#include "weft/coroutine/coroutine.hpp"

namespace weft {
namespace {

// A rounding mode as SSE and the x87 have it; they differ if only one was switched.
struct seen {
    int by_sse = 0;
    int by_libm = 0;
};

int rounding_of_sse() {
    volatile double tiny = 1e-30;
    volatile double up = 1.0 + tiny;
    volatile double down = -1.0 - tiny;
    if (up > 1.0) return down < -1.0 ? -1 : FE_UPWARD;
    return down < -1.0 ? FE_DOWNWARD : FE_TONEAREST;
}
seen look() { return {rounding_of_sse(), std::fegetround()}; }

void expect(int mode) {
    EXPECT_EQ(look().by_sse, mode);
    EXPECT_EQ(look().by_libm, mode);
}

class coroutine_fp : public ::testing::Test {
protected:
    void TearDown() override { std::fesetround(FE_TONEAREST); }
};

TEST_F(coroutine_fp, of_a_coroutine_does_not_leak_to_its_resumer) {
    coroutine<> c([] {
        std::fesetround(FE_UPWARD);
        this_coroutine::yield();
        expect(FE_UPWARD);
    });
    c.resume();
    expect(FE_TONEAREST);
    c.resume();
    expect(FE_TONEAREST);
}

TEST_F(coroutine_fp, of_the_resumer_does_not_leak_into_a_started_coroutine) {
    coroutine<> c([] {
        this_coroutine::yield();
        expect(FE_TONEAREST);
    });
    c.resume();
    std::fesetround(FE_DOWNWARD);
    c.resume();
    expect(FE_DOWNWARD);
}

TEST_F(coroutine_fp, of_the_first_resumer_is_inherited_by_a_new_coroutine) {
    coroutine<> c([] { expect(WEFT_BACKEND_UCONTEXT ? look().by_sse : FE_UPWARD); });
    std::fesetround(FE_UPWARD);
    c.resume();
}

TEST_F(coroutine_fp, migrates_with_the_coroutine_and_leaves_the_thread_unchanged) {
    coroutine<> c([] {
        std::fesetround(FE_UPWARD);
        this_coroutine::yield();
        expect(FE_UPWARD);
    });
    c.resume();
    std::thread([&] {
        std::fesetround(FE_DOWNWARD);
        c.resume();
        expect(FE_DOWNWARD);
    }).join();
    expect(FE_TONEAREST);
}

TEST_F(coroutine_fp, of_the_resumer_is_restored_by_return_throw_and_kill) {
    auto set = [] { std::fesetround(FE_UPWARD); };
    coroutine<>(set).resume();
    expect(FE_TONEAREST);
    coroutine<> thrower([&] {
        set();
        throw 1;
    });
    EXPECT_THROW(thrower.resume(), int);
    expect(FE_TONEAREST);
    coroutine<> killed([&] {
        set();
        this_coroutine::yield();
    });
    killed.resume();
    killed.kill();
    expect(FE_TONEAREST);
}

TEST_F(coroutine_fp, stays_with_each_coroutine_across_switch_to) {
    coroutine<> b([] {
        std::fesetround(FE_DOWNWARD);
        this_coroutine::yield();
        expect(FE_DOWNWARD);
    });
    coroutine<> a([&] {
        std::fesetround(FE_UPWARD);
        b.switch_to();
        expect(FE_UPWARD);
    });
    a.resume();
    expect(FE_TONEAREST);
    a.resume();
    b.resume();
    expect(FE_TONEAREST);
}

// The resumer saves none for a coroutine that shares it, and the one that comes back has its own.
TEST_F(coroutine_fp, of_a_resumer_survives_switch_to_by_a_sharing_coroutine) {
    for (const bool nested : {false, true})
        for (const bool ends : {false, true}) {
            coroutine<> last([&] {
                std::fesetround(FE_DOWNWARD);
                if (ends) return;
                this_coroutine::yield();
                expect(FE_DOWNWARD);
            });
            coroutine<> own([&] {
                std::fesetround(FE_UPWARD);
                last.switch_to();
            });
            coroutine<> between([&] { own.switch_to(); }, {.fp = fp_environment::shared});
            coroutine<> first([&] { between.switch_to(); }, {.fp = fp_environment::shared});
            const auto resumes = [&] {
                first.resume();
                expect(FE_TONEAREST);
                if (!ends) last.resume();
                expect(FE_TONEAREST);
            };
            coroutine<> outer(resumes, {.fp = fp_environment::shared});
            nested ? outer.resume() : resumes();
            expect(FE_TONEAREST);
            own.resume();
            between.resume();
            first.resume();
            expect(FE_TONEAREST);
        }
}

#if WEFT_X86_64
// Flush-to-zero, which <cfenv> does not cover.
// The coroutine that comes back is not the one that was entered, and saves its own in another way.
TEST_F(coroutine_fp, of_a_nested_resumer_survives_a_yield_of_another_fp_mode) {
    coroutine<> shared([] { this_coroutine::yield(); }, {.fp = fp_environment::shared});
    coroutine<> own([&] {
        std::fesetround(FE_UPWARD);
        shared.switch_to();
    });
    coroutine<> outer([&] {
        std::fesetround(FE_DOWNWARD);
        own.resume();
        EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
        EXPECT_EQ(own.state(), coroutine_state::suspended);
        EXPECT_EQ(shared.state(), coroutine_state::suspended);
        own.resume();
        EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
        EXPECT_TRUE(own.done());
    });
    outer.resume();
    EXPECT_TRUE(outer.done());
}

TEST_F(coroutine_fp, preserves_flush_to_zero) {
    auto flushes = [] {
        volatile double small = 1e-308;
        volatile double smaller = small * 1e-5;
        return smaller == 0.0;
    };
    coroutine<> c([&] {
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8000);
        EXPECT_TRUE(flushes());
        this_coroutine::yield();
        EXPECT_TRUE(flushes());
    });
    EXPECT_FALSE(flushes());
    c.resume();
    EXPECT_FALSE(flushes());
    c.resume();
    EXPECT_FALSE(flushes());
}
#endif

#if WEFT_DEBUG && !WEFT_BACKEND_UCONTEXT
TEST(coroutine_fp_death, shared_and_changed_at_a_suspension_aborts) {
    coroutine<> c(
        [] {
            std::fesetround(FE_UPWARD);
            this_coroutine::yield();
        },
        {.name = "rounding", .fp = fp_environment::shared});
    EXPECT_DEATH(c.resume(), "weft: a coroutine changed the floating-point.*rounding");
}
#endif

TEST_F(coroutine_fp, shared_can_be_changed_between_suspensions) {
    coroutine<> c(
        [] {
            std::fesetround(FE_UPWARD);
            std::fesetround(FE_TONEAREST);
            this_coroutine::yield();
        },
        {.fp = fp_environment::shared});
    c.resume();
    c.resume();
    expect(FE_TONEAREST);
}

}  // namespace
}  // namespace weft
