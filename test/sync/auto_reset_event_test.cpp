#include "weft/sync/auto_reset_event.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

class auto_reset_event_among : public weft::testing::among {};

TEST_P(auto_reset_event_among, each_set_lets_one_through) {
    weft::auto_reset_event there, back;
    constexpr int rounds = 500;
    int at = 0;
    run(
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < rounds; ++i) {
                EXPECT_EQ(at++, 2 * i);
                there.set();
                co_await wait(back.async_wait());
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < rounds; ++i) {
                co_await wait(there.async_wait());
                EXPECT_EQ(at++, 2 * i + 1);
                back.set();
            }
        });
    EXPECT_EQ(at, 2 * rounds);
}

WEFT_INSTANTIATE_AMONG(auto_reset_event_among);

TEST(auto_reset_event, set_twice_lets_one_through) {
    weft::auto_reset_event e;
    e.set();
    e.set();
    EXPECT_TRUE(e.is_set());
    EXPECT_TRUE(e.try_wait());
    EXPECT_FALSE(e.try_wait());
    EXPECT_FALSE(e.wait(0s));
    e.set();
    e.reset();
    EXPECT_FALSE(e.try_wait());
}

TEST(auto_reset_event, wakes_in_order_of_arrival) {
    weft::loop l;
    weft::auto_reset_event e;
    std::vector<int> order;
    std::vector<weft::fiber> fibers;
    for (int i = 0; i < 3; ++i)
        fibers.emplace_back([&, i] { e.wait(), order.push_back(i); }, weft::fiber_options{.on = l});
    l.run_until_idle();
    for (int i = 0; i < 3; ++i) {
        e.set();
        l.run_until_idle();
    }
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
    for (auto& f : fibers) f.join();
}

TEST(auto_reset_event, a_killed_waiter_consumes_its_granted_signal) {
    weft::auto_reset_event e;
    {
        weft::loop l;
        weft::fiber f([&] { e.wait(); }, {.on = l});
        l.run_until_idle();
        e.set();
        f.detach();
        EXPECT_FALSE(e.is_set()) << "handed over";
    }  // it runs here, and has it
    EXPECT_FALSE(e.is_set());
}

// The same where the frame is destroyed before it ran.
TEST(auto_reset_event, keeps_the_signal_granted_to_a_destroyed_waiter) {
    weft::loop l;
    weft::auto_reset_event e;
    auto body = [&]() -> weft::task<> { co_await e.async_wait(); };
    auto t = std::make_unique<weft::task<>>(body());
    l.post([&] { t->start(); });
    l.run_until_idle();
    l.post([&] {
        e.set();
        EXPECT_FALSE(e.is_set());
        t.reset();
        EXPECT_TRUE(e.is_set());
    });
    l.run_until_idle();
}

}  // namespace
