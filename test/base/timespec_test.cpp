// timespec_of: durations as timespec, also those that it cannot hold.
#include "weft/base/detail/timespec.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <limits>

namespace {

using namespace std::chrono_literals;
using weft::detail::timespec_of;

void expect(weft::duration d, std::time_t seconds, long nanoseconds) {
    const ::timespec t = timespec_of(d);
    EXPECT_EQ(t.tv_sec, seconds);
    EXPECT_EQ(t.tv_nsec, nanoseconds);
}

TEST(timespec, has_seconds_and_the_rest) {
    expect(0ns, 0, 0);
    expect(1ns, 0, 1);
    expect(999'999'999ns, 0, 999'999'999);
    expect(1s, 1, 0);
    expect(3s + 7ns, 3, 7);
}

TEST(timespec, of_a_negative_duration_is_zero) {
    expect(-1ns, 0, 0);
    expect(-5s, 0, 0);
    expect(weft::duration::min(), 0, 0);
}

TEST(timespec, of_a_duration_beyond_it_is_the_last_one) {
    constexpr std::time_t last = std::numeric_limits<std::time_t>::max();
    constexpr std::chrono::seconds longest =
        std::chrono::duration_cast<std::chrono::seconds>(weft::duration::max());
    if constexpr (longest.count() > last) {
        expect(std::chrono::seconds(last), last, 0);
        expect(std::chrono::seconds(last) + 1s, last, 999'999'999);
        expect(weft::duration::max(), last, 999'999'999);
    } else {
        expect(weft::duration::max(), longest.count(), (weft::duration::max() - longest).count());
    }
}

}  // namespace
