// spin_wait: a wait that lasts costs next to nothing.
#include "weft/base/detail/spin_wait.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using weft::steady_now;
using weft::detail::spin_wait;

double cpu_seconds() {
    ::timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(spin_wait, uses_little_cpu_when_it_lasts) {
    const double before = cpu_seconds();
    const auto end = steady_now() + 300ms;
    for (spin_wait w; steady_now() < end;) w.once();
    EXPECT_LT(cpu_seconds() - before, 0.1);
}

TEST(nap, lasts_at_least_the_given_time) {
    const auto began = steady_now();
    weft::detail::nap(2ms);
    EXPECT_GE(steady_now() - began, 2ms);
}

}  // namespace
