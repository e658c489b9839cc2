#include "weft/wait/sleep.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "test/wait/names.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace {

using namespace testing::names;

plain_coroutine sleep_then_note(time_point t, std::vector<int>& order, int number) {
    co_await sleep_until(t);
    order.push_back(number);
}

TEST(sleep, ends_at_its_deadline_and_never_earlier) {
    manual_executor on;
    std::vector<int> order;
    plain_coroutine late = sleep_then_note(on.now() + 3ms, order, 2);
    plain_coroutine soon = sleep_then_note(on.now() + 2ms, order, 1);
    late.start(on);
    soon.start(on);
    on.advance(2ms - 1ns);
    EXPECT_TRUE(order.empty());
    on.advance(1ns);
    EXPECT_EQ(order, std::vector{1});
    on.advance(1ms);
    EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(sleep, until_a_past_time_point_lets_others_run_first) {
    manual_executor on;
    std::vector<int> order;
    plain_coroutine c = sleep_then_note(on.now() - 1s, order, 1);
    c.start(on);
    EXPECT_FALSE(c.done());
    order.push_back(0);
    on.advance(0ns);
    EXPECT_EQ(order, (std::vector{0, 1}));
}

TEST(sleep, uses_the_clock_of_its_executor) {
    manual_executor on;
    std::vector<int> order;
    on.set(time_point(24'000h));
    const auto body = [](std::vector<int>& o) -> plain_coroutine {
        co_await sleep_for(24h);
        o.push_back(1);
    };
    plain_coroutine c = body(order);
    c.start(on);
    on.advance(24h - 1ns);
    EXPECT_TRUE(order.empty());
    on.advance(1ns);
    EXPECT_EQ(order, std::vector{1});
}

TEST(sleep, for_a_duration_begins_when_it_is_awaited) {
    manual_executor on;
    std::vector<int> order;
    const auto body = [](std::vector<int>& o) -> plain_coroutine {
        auto pause = sleep_for(10ms);
        co_await sleep_for(1h);
        co_await pause;
        o.push_back(1);
    };
    plain_coroutine c = body(order);
    c.start(on);
    on.advance(1h);
    on.advance(10ms - 1ns);
    EXPECT_TRUE(order.empty());
    on.advance(1ns);
    EXPECT_EQ(order, std::vector{1});
}

TEST(sleep, until_a_time_of_the_system_clock_is_not_early) {
    const auto end = std::chrono::system_clock::now() + 2ms;
    const time_point begin = steady_now();
    sync_wait(sleep_until(end));
    EXPECT_GE(steady_now(), begin + 1ms);
    sync_wait(sleep_until(std::chrono::system_clock::time_point()));
}

TEST(sleep, for_ever_ends_only_by_a_stop) {
    manual_executor on;
    coroutine_flow f(on);
    stop_reason seen = stop_reason::none;
    const auto body = [](stop_reason& reason) -> plain_coroutine {
        try {
            co_await sleep_for(std::chrono::hours::max());
        } catch (const stopped& s) {
            reason = s.reason;
        }
    };
    plain_coroutine c = body(seen);
    c.start(on, &f);
    EXPECT_EQ(on.timer_count(), 0u);
    on.advance(100'000h);
    EXPECT_FALSE(c.done());
    f.request_stop(stop_reason::user);
    on.run_all();
    EXPECT_EQ(seen, stop_reason::user);
}

TEST(sleep, whose_frame_is_destroyed_leaves_no_timer) {
    manual_executor on;
    std::vector<int> order;
    plain_coroutine c = sleep_then_note(on.now() + 1ms, order, 1);
    c.start(on);
    EXPECT_EQ(on.timer_count(), 1u);
    c.destroy();
    EXPECT_EQ(on.timer_count(), 0u);
}

TEST(sleep, of_a_thread_is_not_early) {
    const time_point end = steady_now() + 2ms;
    sync_wait(sleep_until(end));
    EXPECT_GE(steady_now(), end);
    sync_wait(sleep_for(-1h));
    sync_wait(sleep_until(time_point()));
}

}  // namespace
}  // namespace weft
