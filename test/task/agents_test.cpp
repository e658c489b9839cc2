// What tasks wait for, among fibers, tasks and threads, on one loop and on two.
#include "test/support/agents.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "test/task/on_loop.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/task/event_source.hpp"
#include "weft/task/shared_task.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/with_nursery.hpp"

namespace {

using namespace on_loop;

class event_source_among : public weft::testing::among {};
class shared_task_among : public weft::testing::among {};
class nursery_among : public weft::testing::among {};

TEST_P(event_source_among, delivers_each_value_to_its_waiter) {
    weft::event_source<int> e;
    constexpr int rounds = 50;
    int sum = 0;
    run(
        [&](auto wait) -> task<> {
            for (int i = 0; i < rounds; ++i) sum += co_await wait(e.next());
        },
        [&](auto wait) -> task<> {
            for (int i = 0; i < rounds; ++i)
                while (e.set(i) == 0) co_await wait(weft::sleep_for(weft::duration::zero()));
        });
    EXPECT_EQ(sum, rounds * (rounds - 1) / 2);
}

TEST_P(shared_task_among, runs_once_and_delivers_to_all_awaiters) {
    std::atomic<int> runs{0};
    const auto body = [&]() -> task<int> {
        ++runs;
        co_await weft::sleep_for(1ms);
        co_return 7;
    };
    weft::shared_task<int> t(body());
    std::atomic<int> sum{0};
    run_many(6, [&](auto wait) -> task<> {
        const int& n = co_await wait(t);
        sum += n;
    });
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(sum, 42);
}

TEST_P(nursery_among, children_of_two_nurseries_wake_each_other) {
    weft::auto_reset_event ping, pong;
    std::atomic<int> trips{0};
    const auto child = [&](weft::auto_reset_event& in, weft::auto_reset_event& out) -> task<> {
        for (int i = 0; i < 20; ++i) {
            co_await in.async_wait();
            ++trips;
            out.set();
        }
    };
    const auto block = [&](auto& in, auto& out) {
        return weft::with_nursery([&](weft::nursery& n) -> task<> {
            n.spawn(child(in, out));
            co_await n.async_join();
        });
    };
    run([&](auto wait) -> task<> { co_await wait(block(ping, pong)); },
        [&](auto wait) -> task<> {
            ping.set();
            co_await wait(block(pong, ping));
        });
    EXPECT_EQ(trips, 40);
}

WEFT_INSTANTIATE_AMONG(event_source_among);
WEFT_INSTANTIATE_AMONG(shared_task_among);
WEFT_INSTANTIATE_AMONG(nursery_among);

}  // namespace
