#include "weft/posix/detail/timespec.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace {

using namespace std::chrono_literals;
using namespace weft::detail;

TEST(timespec, keeps_the_distance_from_now_on_either_clock) {
    for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
        timespec t{};
        ::clock_gettime(clock, &t);
        t.tv_sec += 100;
        weft::time_point m;
        const weft::time_point before = weft::steady_now();
        ASSERT_TRUE(time_point_of(t, clock, m));
        EXPECT_GT(m, before + 99s);
        EXPECT_LE(m, weft::steady_now() + 100s);
    }
}

TEST(timespec, clamps_past_and_far_future_times) {
    weft::time_point m;
    ASSERT_TRUE(time_point_of({0, 0}, CLOCK_REALTIME, m));
    EXPECT_LE(m, weft::steady_now());
    ASSERT_TRUE(time_point_of({-5, 0}, CLOCK_MONOTONIC, m));
    EXPECT_LE(m, weft::steady_now());
    ASSERT_TRUE(
        time_point_of({std::numeric_limits<time_t>::max(), 999'999'999}, CLOCK_MONOTONIC, m));
    EXPECT_GT(m, weft::steady_now() + std::chrono::hours(24 * 365 * 100));
}

TEST(timespec, is_rejected_for_an_invalid_time_or_clock) {
    weft::time_point m;
    EXPECT_FALSE(time_point_of({0, 1'000'000'000}, CLOCK_REALTIME, m));
    EXPECT_FALSE(time_point_of({0, -1}, CLOCK_REALTIME, m));
    EXPECT_FALSE(time_point_of({0, 0}, CLOCK_THREAD_CPUTIME_ID, m));
}

TEST(duration_of, saturates) {
    EXPECT_EQ(duration_of({1, 5}), 1s + 5ns);
    EXPECT_EQ(duration_of({std::numeric_limits<time_t>::max(), 0}), weft::duration::max());
    EXPECT_EQ(duration_of({9'223'372'036, 999'999'999}), weft::duration::max());
    EXPECT_EQ(duration_of({std::numeric_limits<time_t>::min(), 0}), weft::duration::min());
}

}  // namespace
