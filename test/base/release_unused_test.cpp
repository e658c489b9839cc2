#include "weft/base/detail/release_unused.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "test/support/nothing_spare.hpp"

namespace {

using namespace std::chrono_literals;
using weft::detail::memory_keeper;
using weft::detail::release_unused;
using weft::detail::unused;
using weft::detail::unused_period;

constexpr weft::time_point start = weft::time_point{} + 100s;

// A keeper stays for the life of the process, so those of these tests ask for nothing when done.
std::atomic<int> first_asked{0};
weft::time_point first_answer = weft::never;
constinit memory_keeper first([](weft::time_point) noexcept {
    ++first_asked;
    return first_answer;
});
weft::time_point second_answer = weft::never;
constinit memory_keeper second([](weft::time_point) noexcept { return second_answer; });

TEST(release_unused, calls_every_keeper_and_returns_the_earliest_time) {
    const weft::time_point now = weft::testing::nothing_spare();
    first.enter();
    second.enter();
    first_answer = now + 2s;
    second_answer = now + 1s;
    EXPECT_EQ(release_unused(now), now + 1s);
    second_answer = weft::never;
    EXPECT_EQ(release_unused(now), now + 2s);
    first_answer = weft::never;
    EXPECT_EQ(release_unused(now), weft::never);
}

TEST(release_unused, calls_a_keeper_once_however_often_it_registers) {
    first.enter();
    first.enter();
    const int before = first_asked;
    static_cast<void>(release_unused(start));
    EXPECT_EQ(first_asked, before + 1);
}

std::atomic<int> many_asked{0};
memory_keeper many[] = {
    memory_keeper([](weft::time_point) noexcept { return ++many_asked, weft::never; }),
    memory_keeper([](weft::time_point) noexcept { return ++many_asked, weft::never; }),
    memory_keeper([](weft::time_point) noexcept { return ++many_asked, weft::never; }),
    memory_keeper([](weft::time_point) noexcept { return ++many_asked, weft::never; }),
};

TEST(release_unused, loses_no_keeper_when_threads_register_concurrently) {
    std::vector<std::thread> threads;
    for (int n = 0; n != 2; ++n)
        for (memory_keeper& k : many) threads.emplace_back([&k] { k.enter(); });
    for (auto& t : threads) t.join();
    static_cast<void>(release_unused(start));
    EXPECT_EQ(many_asked, 4);
}

TEST(unused, offers_nothing_before_a_period_has_passed) {
    unused u;
    EXPECT_EQ(u.spare(start, 100, 1), 0u);
    EXPECT_EQ(u.spare(start + unused_period / 2, 100, 1), 0u);
    EXPECT_EQ(u.next(start), start + unused_period);
    EXPECT_EQ(u.spare(start + unused_period, 100, 1), 50u);
    EXPECT_EQ(u.next(start + unused_period), start + unused_period);  // at once
}

TEST(unused, offers_nothing_that_was_used_in_the_period) {
    unused u;
    static_cast<void>(u.spare(start, 100, 1));
    u.taken(30);  // and all came back
    EXPECT_EQ(u.spare(start + unused_period, 100, 1), 15u);
    u.given(15);
    u.taken(0);
    EXPECT_EQ(u.spare(start + 2 * unused_period, 85, 1), 0u);
}

TEST(unused, does_not_count_replacements_of_released_items) {
    unused u;
    static_cast<void>(u.spare(start, 20, 1));
    EXPECT_EQ(u.spare(start + unused_period, 20, 1), 10u);
    u.given(10);
    EXPECT_EQ(u.spare(start + 2 * unused_period, 20, 1), 5u) << "ten are new";
}

TEST(unused, retracts_its_offer_when_items_are_used_again) {
    unused u;
    static_cast<void>(u.spare(start, 100, 1));
    EXPECT_EQ(u.spare(start + unused_period, 100, 1), 50u);
    u.taken(10);
    EXPECT_EQ(u.spare(start + unused_period, 100, 1), 10u);
    EXPECT_EQ(u.spare(start + unused_period, 5, 1), 5u);
    u.taken(0);
    EXPECT_EQ(u.spare(start + unused_period, 5, 1), 0u);
    EXPECT_EQ(u.next(start + unused_period), start + 2 * unused_period);  // not at once
}

TEST(unused, drains_an_unused_stock_within_ten_periods) {
    unused u;
    std::size_t count = 20'000;
    weft::time_point now = start;
    static_cast<void>(u.spare(now, count, 64));
    for (int n = 0; n != 10; ++n) {
        now += unused_period;
        while (const std::size_t all = u.spare(now, count, 64)) {
            const std::size_t some = std::min<std::size_t>(all, 64);
            u.given(some);
            count -= some;
        }
        EXPECT_GT(u.next(now), now);
    }
    EXPECT_EQ(count, 0u);
}

}  // namespace
