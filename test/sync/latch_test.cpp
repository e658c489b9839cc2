#include "weft/sync/latch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

class latch_among : public weft::testing::among {};

TEST_P(latch_among, opens_when_all_have_counted_down) {
    constexpr int count = 4;
    weft::latch all(count);
    std::atomic<int> arrived{0};
    run_many(count, [&](auto wait) -> weft::task<> {
        co_await wait(weft::sleep_for(0s));
        ++arrived;
        all.count_down();
        co_await wait(all.async_wait());
        EXPECT_EQ(arrived, count);
    });
    EXPECT_TRUE(all.try_wait());
}

WEFT_INSTANTIATE_AMONG(latch_among);

TEST(latch, counts_several_at_once) {
    weft::latch l(3);
    EXPECT_FALSE(l.try_wait());
    l.count_down(2);
    EXPECT_FALSE(l.wait(1ms));
    l.arrive_and_wait();
    EXPECT_TRUE(l.wait(0s));
    EXPECT_TRUE(weft::latch(0).try_wait());
}

TEST(latch, count_down_by_zero_changes_nothing) {
    weft::latch shut(1);
    shut.count_down(0);
    EXPECT_FALSE(shut.try_wait());
    shut.count_down();
    shut.count_down(0);
    EXPECT_TRUE(shut.try_wait());
}

TEST(latch, counts_down_from_its_maximum) {
    weft::latch l(weft::latch::max());
    l.count_down(weft::latch::max() - 1);
    EXPECT_FALSE(l.try_wait());
    l.count_down();
    EXPECT_TRUE(l.try_wait());
}

// A thread that has come back from wait() may destroy the latch, though the other thread is still
// in count_down().
TEST(latch, can_be_destroyed_once_wait_returns) {
    for (int i = 0; i < 300; ++i) {
        auto l = std::make_unique<weft::latch>(1);
        std::thread t([p = l.get()] { p->count_down(); });
        l->wait();
        l.reset();
        t.join();
    }
}

TEST(latch_death, a_count_below_zero) {
    EXPECT_DEATH(weft::latch(1).count_down(2),
                 "a countdown falls below zero \\(.*latch_test\\.cpp:");
}

TEST(latch_death, a_count_outside_of_its_range) {
    EXPECT_DEATH(weft::latch(weft::latch::max() + 1),
                 "a countdown begins beyond its maximum \\(.*latch_test\\.cpp:");
    EXPECT_DEATH(weft::latch(-3), "a latch begins outside of its range \\(.*latch_test\\.cpp:");
    EXPECT_DEATH(weft::latch(1).count_down(-1),
                 "a latch is counted down by less than nothing \\(.*latch_test\\.cpp:");
}

}  // namespace
