// refusals: what may pass is tried again, what does not ends the program.
#include "weft/base/detail/refusals.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace {

using namespace std::chrono_literals;
using weft::steady_now;
using weft::detail::refusals;

TEST(refusals, by_eintr_are_retried_without_a_pause) {
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

TEST(refusals, for_lack_of_resources_back_off_and_warn_once) {
    ::testing::internal::CaptureStderr();
    refusals r;
    const auto began = steady_now();
    for (int i = 0; i < 4; ++i) r.met("call", ENOMEM);
    EXPECT_GE(steady_now() - began, 15ms);
    r.none();
    const auto again = steady_now();
    r.met("call", EAGAIN);
    EXPECT_GE(steady_now() - again, 1ms);
    EXPECT_EQ(
        ::testing::internal::GetCapturedStderr(),
        std::string("weft: call is refused: ") + std::strerror(ENOMEM) + "; it is tried again\n");
}

using refusals_death = ::testing::Test;

TEST(refusals_death, that_are_permanent_exit_with_a_message) {
    for (const int error : {EPERM, ENOSYS, EBADF, EINVAL})
        EXPECT_EXIT(refusals().met("call", error), ::testing::ExitedWithCode(2),
                    "^weft: call is refused: .*; the program cannot go on without it\n$");
}

TEST(refusals_death, that_persist_exit_with_a_message) {
    for (const int error : {EINTR, ENFILE})
        EXPECT_EXIT(for (refusals r;;) r.met("call", error), ::testing::ExitedWithCode(2),
                    "weft: call is refused: .*; the program cannot go on without it\n$");
}

}  // namespace
