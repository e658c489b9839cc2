#include "weft/base/time_limit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ratio>
#include <type_traits>

namespace weft {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;

template <class Rep, class Period>
using lasting = std::chrono::duration<Rep, Period>;
template <class Clock, class Rep, class Period>
using point = std::chrono::time_point<Clock, lasting<Rep, Period>>;

constexpr time_point begin{1h};
constexpr time_point end_of(time_limit l) noexcept { return l.deadline_from(begin); }

// One word, so that an operation has the size that it would have with a time point.
static_assert(sizeof(time_limit) == sizeof(time_point));
static_assert(std::is_trivially_copyable_v<time_limit>);
static_assert(std::is_nothrow_default_constructible_v<time_limit>);

// No limit.
static_assert(end_of({}) == never);
static_assert(end_of(never) == never);
static_assert(end_of(no_timeout) == never);
static_assert(time_limit(never) == time_limit() && time_limit(no_timeout) == time_limit());
static_assert(!time_limit().is_timeout());

// A duration of any type: rounded up, saturated, and passed if negative.
static_assert(time_limit(1ns).is_timeout() && time_limit(0s).is_timeout());
static_assert(time_limit(250ms).timeout() == 250ms && time_limit(-1s).timeout() == 0s);
static_assert(time_limit(begin).timeout() == no_timeout);
static_assert(end_of(0ns) == begin);
static_assert(end_of(250ms) == begin + 250ms);
static_assert(end_of(std::chrono::hours::max()) == never);
static_assert(end_of(no_timeout - 1ns) == never);
static_assert(end_of(-1ns) == begin);
static_assert(end_of(std::chrono::hours::min()) == begin);

// A time point of the steady clock, whenever the wait begins.
static_assert(!time_limit(begin).is_timeout());
static_assert(end_of(begin + 5s) == begin + 5s);
static_assert(time_limit(begin).deadline_from(begin + 5s) == begin);
static_assert(end_of(time_point::min()) <= begin);
static_assert(end_of(time_point(-1ns)) == time_point());

// Another clock's time point is no limit, and neither is a bare number.
struct other_clock {
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<other_clock>;
};
static_assert(!std::is_convertible_v<other_clock::time_point, time_limit>);
static_assert(!std::is_convertible_v<int, time_limit>);
static_assert(std::is_convertible_v<lasting<int, std::ratio<60>>, time_limit>);
static_assert(std::is_convertible_v<point<system_clock, long, std::ratio<1>>, time_limit>);

// Not at compile time: where long double is two doubles (powerpc64le), GCC divides none.
TEST(time_limit, of_a_fraction_of_a_nanosecond_is_rounded_up) {
    using picoseconds = lasting<long, std::pico>;
    EXPECT_EQ(end_of(picoseconds(1)), begin + 1ns);
    EXPECT_EQ(end_of(point<clock, long, std::pico>(picoseconds(1))), time_point(1ns));
}

TEST(time_limit, of_a_floating_point_duration) {
    using seconds = lasting<double, std::ratio<1>>;
    EXPECT_EQ(end_of(seconds(0.25)), begin + 250ms);
    EXPECT_EQ(end_of(lasting<float, std::milli>(2)), begin + 2ms);
    EXPECT_EQ(end_of(seconds(std::numeric_limits<double>::infinity())), never);
    EXPECT_EQ(end_of(point<clock, double, std::ratio<1>>(seconds(1.5))), time_point(1500ms));
}

TEST(time_limit, of_a_duration_that_is_no_number_has_passed) {
    const double no_number = std::nan("");
    EXPECT_EQ(end_of(lasting<double, std::ratio<1>>(no_number)), begin);
}

TEST(time_limit, of_a_system_clock_deadline_is_the_time_left_until_it) {
    const time_limit l = system_clock::now() + 1h;
    EXPECT_TRUE(l.is_timeout());
    EXPECT_LE(end_of(l), begin + 1h);
    EXPECT_GT(end_of(l), begin + 59min);
    const time_limit seconds = std::chrono::ceil<std::chrono::seconds>(system_clock::now()) + 1h;
    EXPECT_GT(end_of(seconds), begin + 59min);
    EXPECT_LE(end_of(seconds), begin + 1h + 1s);
}

TEST(time_limit, of_a_past_system_clock_deadline_has_passed) {
    EXPECT_EQ(end_of(system_clock::now() - 1s), begin);
    EXPECT_EQ(end_of(system_clock::time_point()), begin);
    EXPECT_EQ(end_of(system_clock::time_point::min()), begin);
}

TEST(time_limit, of_the_last_system_clock_time_is_no_limit) {
    EXPECT_EQ(time_limit(system_clock::time_point::max()), time_limit());
    EXPECT_EQ(end_of(point<system_clock, long, std::ratio<3600>>::max()), never);
}

}  // namespace
}  // namespace weft
