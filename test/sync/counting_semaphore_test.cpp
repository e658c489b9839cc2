#include "weft/sync/counting_semaphore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

class semaphore_among : public weft::testing::among {};

TEST_P(semaphore_among, admits_at_most_its_count_at_once) {
    weft::counting_semaphore<> places(2);
    std::atomic<int> inside{0}, most{0}, count{0};
    run_many(5, [&](auto wait) -> weft::task<> {
        for (int i = 0; i < 100; ++i) {
            co_await wait(places.async_acquire());
            most = std::max(most.load(), ++inside);
            if (i % 10 == 0) co_await wait(weft::sleep_for(0s));
            --inside;
            ++count;
            places.release();
        }
    });
    EXPECT_LE(most, 2);
    EXPECT_EQ(count, 500);
    EXPECT_TRUE(places.try_acquire());
    EXPECT_TRUE(places.try_acquire());
    EXPECT_FALSE(places.try_acquire());
}

TEST_P(semaphore_among, of_count_one_alternates_two_agents) {
    weft::binary_semaphore mine(1), yours(0);
    std::vector<int> order;
    run(
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < 100; ++i) {
                co_await wait(mine.async_acquire());
                order.push_back(2 * i);
                yours.release();
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < 100; ++i) {
                co_await wait(yours.async_acquire());
                order.push_back(2 * i + 1);
                mine.release();
            }
        });
    ASSERT_EQ(order.size(), 200u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

WEFT_INSTANTIATE_AMONG(semaphore_among);

TEST(counting_semaphore, serves_in_arrival_order_without_barging) {
    weft::loop l;
    weft::counting_semaphore<10> s(0);
    std::vector<int> order;
    std::vector<weft::fiber> fibers;
    for (int i = 0; i < 4; ++i)
        fibers.emplace_back([&, i] { s.acquire(), order.push_back(i); },
                            weft::fiber_options{.on = l});
    l.run_until_idle();
    s.release(2);
    EXPECT_FALSE(s.try_acquire()) << "both are handed over";
    l.run_until_idle();
    EXPECT_EQ(order, (std::vector<int>{0, 1}));
    s.release(3);
    l.run_until_idle();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_TRUE(s.try_acquire()) << "one was left";
    EXPECT_FALSE(s.try_acquire_for(1ms));
    for (auto& f : fibers) f.join();
}

TEST(counting_semaphore_death, a_release_of_a_negative_count) {
    EXPECT_DEATH(
        {
            weft::counting_semaphore<> s(1);
            s.release(-1);
        },
        "release of a semaphore by less than nothing \\(.*counting_semaphore_test\\.cpp:");
}

TEST(counting_semaphore_death, a_release_above_the_maximum) {
    EXPECT_DEATH(
        {
            weft::binary_semaphore s(1);
            s.release();
        },
        "release of a semaphore above its maximum \\(.*counting_semaphore_test\\.cpp:");
}

}  // namespace
