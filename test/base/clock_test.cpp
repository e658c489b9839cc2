#include "weft/base/clock.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <ratio>

namespace weft {
namespace {

using namespace std::chrono_literals;
using days = std::chrono::duration<std::int64_t, std::ratio<86'400>>;
using years = std::chrono::duration<std::int64_t, std::ratio<31'556'952>>;
using float_seconds = std::chrono::duration<float>;
using double_seconds = std::chrono::duration<double>;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

template <class D>
constexpr D most = D(std::numeric_limits<typename D::rep>::max());
template <class D>
constexpr D least = D(std::numeric_limits<typename D::rep>::lowest());

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr time_point start{1h};

// What a user may write, and where it ends.
static_assert(after(start, 0ns) == start);
static_assert(after(start, 1ns) == start + 1ns);
static_assert(after(start, 41s) == start + 41s);
static_assert(after(start, 86'500ms) == start + 86'500ms);
static_assert(after(start, days(1)) == start + 24h);
static_assert(after(start, years(10)) == start + 10 * 8'765h + 10 * 49min + 10 * 12s);
static_assert(after(start, years(300)) == never);
static_assert(after(start, most<duration>) == never);
static_assert(after(start, most<std::chrono::hours>) == never);
static_assert(after(start, most<years>) == never);
static_assert(after(start, std::chrono::duration<std::uint64_t>(~0ull)) == never);
static_assert(after(start, std::chrono::duration<std::int8_t>(100)) == start + 100s);
static_assert(after(start, -1ns) == start);
static_assert(after(start, least<duration>) == start);
static_assert(after(start, least<std::chrono::hours>) == start);
static_assert(after(start, never - start) == never);
static_assert(after(start, never - start - 1ns) == never - 1ns);
static_assert(after(never, 0ns) == never);
static_assert(after(never, 1ns) == never);
static_assert(after(time_point(), most<duration>) == never);
static_assert(after(time_point::min(), 1ns) == time_point::min() + 1ns);
static_assert(after(time_point::min(), most<duration>) == time_point(-1ns));

TEST(clock, converts_floating_point_durations_to_time_points) {
    EXPECT_EQ(after(start, double_seconds(0.25)), start + 250ms);
    EXPECT_EQ(after(start, float_seconds(0.25F)), start + 250ms);
    EXPECT_EQ(after(start, double_seconds(infinite)), never);
    EXPECT_EQ(after(start, double_seconds(-infinite)), start);
    EXPECT_EQ(after(start, double_seconds(1e300)), never);
    EXPECT_EQ(after(start, double_seconds(not_a_number)), start);
    EXPECT_EQ(after(start, most<float_seconds>), never);
}

// Near the end of the range a float has values that a duration cannot hold, beside some that it
// can.
TEST(clock, does_not_overflow_for_the_largest_float_durations) {
    for (float s = 9.2233e9F; s < 9.2234e9F; s = std::nextafter(s, 1e10F)) {
        const duration d = saturated(float_seconds(s));
        EXPECT_GT(d, duration(9'223'200'000s)) << s;
        EXPECT_LT(saturated(float_seconds(-s)), duration(-9'223'200'000s)) << s;
    }
    for (double ns = 9.2233720368547e18; ns < 9.2233720368549e18; ns = std::nextafter(ns, infinite))
        EXPECT_GT(saturated(std::chrono::duration<double, std::nano>(ns)).count(),
                  9'223'372'036'854'600'000);
}

TEST(clock, rounds_deadlines_up) {
    EXPECT_EQ(saturated(picoseconds(1)), 1ns);
    EXPECT_EQ(saturated(picoseconds(1'000)), 1ns);
    EXPECT_EQ(saturated(picoseconds(1'001)), 2ns);
    EXPECT_EQ(saturated(picoseconds(-1'999)), -1ns);
    EXPECT_EQ(saturated(std::chrono::duration<double, std::nano>(1.5)), 2ns);
    EXPECT_EQ(saturated(std::chrono::time_point<clock, picoseconds>(picoseconds(2'001))),
              time_point(3ns));
}

TEST(clock, saturates_time_points_of_any_resolution) {
    EXPECT_EQ(saturated(std::chrono::time_point<clock, std::chrono::hours>(1h)), time_point(1h));
    EXPECT_EQ(saturated(std::chrono::time_point<clock, std::chrono::hours>::max()), never);
    EXPECT_EQ(saturated(never), never);
}

TEST(clock, saturates_the_remaining_time) {
    const time_point t(1h);
    EXPECT_EQ(time_left(t, t + 1s), 1s);
    EXPECT_EQ(time_left(t, t), 0s);
    EXPECT_EQ(time_left(t, time_point::min()), 0s);
    EXPECT_EQ(time_left(t, never), never - t);
    EXPECT_EQ(time_left(time_point(), never), duration::max());
    EXPECT_EQ(time_left(time_point(-1ns), never), duration::max());
    EXPECT_EQ(time_left(time_point(-1ns), never - 1ns), duration::max());
    EXPECT_EQ(time_left(time_point::min(), never), duration::max());
    EXPECT_EQ(time_left(time_point::min(), time_point()), duration::max());
    EXPECT_EQ(time_left(time_point::min(), time_point(-1ns)), duration::max());
    EXPECT_EQ(time_left(time_point::min(), time_point::min() + 1s), 1s);
}

TEST(clock, now_never_goes_backwards) {
    time_point before = steady_now();
    for (int i = 0; i < 1'000; ++i) {
        const time_point t = steady_now();
        ASSERT_GE(t, before);
        before = t;
    }
    EXPECT_LT(before, never);
}

}  // namespace
}  // namespace weft
