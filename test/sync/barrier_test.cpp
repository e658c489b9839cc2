#include "weft/sync/barrier.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "test/support/agents.hpp"
#include "weft/sched/virtual_loop.hpp"

using namespace std::chrono_literals;

namespace {

class barrier_among : public weft::testing::among {};

TEST_P(barrier_among, releases_no_waiter_before_all_have_arrived) {
    constexpr int count = 3;
    constexpr int phases = 50;
    int arrived = 0, completed = 0;  // written by the completion alone
    std::atomic<int> here{0};
    weft::barrier b(count, [&]() noexcept {
        arrived += here.exchange(0);
        ++completed;
    });
    run_many(count, [&](auto wait) -> weft::task<> {
        for (int i = 0; i < phases; ++i) {
            ++here;
            co_await wait(b.async_arrive_and_wait());
            EXPECT_EQ(completed, 2 * i + 1);
            EXPECT_EQ(arrived, count * (i + 1));
            co_await wait(b.async_arrive_and_wait());
        }
    });
    EXPECT_EQ(completed, 2 * phases);
}

WEFT_INSTANTIATE_AMONG(barrier_among);

TEST(barrier, arrive_and_drop_reduces_the_expected_count) {
    weft::barrier b(3);
    auto first = b.arrive();
    b.arrive_and_drop();
    b.arrive_and_wait();
    b.wait(std::move(first));  // done
    auto second = b.arrive();
    b.arrive_and_wait();
    b.wait(std::move(second));
}

TEST(barrier, a_stopped_waiter_counts_as_arrived) {
    weft::testing::virtual_loop l;
    weft::barrier b(2);
    weft::fiber waits([&] { b.arrive_and_wait(); }, {.on = l});
    weft::fiber stops(
        [&] {
            weft::this_fiber::sleep_for(1ms);
            waits.request_stop();
            weft::this_fiber::sleep_for(1ms);
            b.arrive_and_wait();  // the second of two
        },
        {.on = l});
    l.run();
    EXPECT_TRUE(waits.join().is_stopped());
    EXPECT_FALSE(stops.join().is_stopped());
}

TEST(barrier_death, arrival_of_fewer_than_one) {
    weft::barrier b(1);
    EXPECT_DEATH(static_cast<void>(b.arrive(0)),
                 "arrival of less than one at a barrier \\(.*barrier_test\\.cpp:");
}

TEST(barrier_death, arrival_of_more_than_expected) {
    EXPECT_DEATH(
        {
            weft::barrier b(1);
            static_cast<void>(b.arrive(2));
        },
        "more arrive at a barrier than it expects \\(.*barrier_test\\.cpp:");
}

}  // namespace
