// refusals: what may pass is tried again, what does not ends the program.
#include "weft/base/refusals.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace {

using namespace std::chrono_literals;
using weft::steady_now;
using weft::detail::refusals;

TEST(refusals, of_a_call_that_was_interrupted_cost_no_pause) {
    refusals r;
    const auto began = steady_now();
    for (int i = 0; i < 999; ++i) r.met("call", EINTR);
    EXPECT_LT(steady_now() - began, 1s);
    EXPECT_FALSE(r.are_doubted());
    r.met("call", EINTR);
    EXPECT_TRUE(r.are_doubted()) << "so many are no signals";
    r.none();
    EXPECT_FALSE(r.are_doubted());
}

TEST(refusals, of_what_is_short_pause_longer_each_time_and_are_told_once) {
    ::testing::internal::CaptureStderr();
    refusals r;
    const auto began = steady_now();
    for (int i = 0; i < 4; ++i) r.met("call", ENOMEM);
    EXPECT_GE(steady_now() - began, 15ms);
    r.none();
    const auto again = steady_now();
    r.met("call", EAGAIN);
    EXPECT_GE(steady_now() - again, 1ms);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "weft: call is refused: Cannot allocate memory; it is tried again\n");
}

using refusals_death = ::testing::Test;

TEST(refusals_death, that_are_for_good_end_the_program_with_a_line) {
    for (const int error : {EPERM, ENOSYS, EBADF, EINVAL})
        EXPECT_EXIT(refusals().met("call", error), ::testing::ExitedWithCode(2),
                    "^weft: call is refused: .*; the program cannot go on without it\n$");
}

TEST(refusals_death, that_do_not_pass_end_it_as_well) {
    for (const int error : {EINTR, ENFILE})
        EXPECT_EXIT(for (refusals r;;) r.met("call", error), ::testing::ExitedWithCode(2),
                    "weft: call is refused: .*; the program cannot go on without it\n$");
}

}  // namespace
