#include "weft/wait/wait_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "test/wait/names.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace {

using namespace testing::names;

plain_coroutine note_pass(gate& g, std::vector<int>& order, int number) {
    co_await g.async_pass();
    order.push_back(number);
}

plain_coroutine note_end(gate& g, time_point t, std::vector<wait_status>& ends) {
    ends.push_back(co_await g.async_pass_until(t));
}

TEST(wait_queue, wakes_in_arrival_order) {
    manual_executor on;
    gate g;
    std::vector<int> order;
    std::vector<plain_coroutine> all;
    for (int i = 0; i < 5; ++i) {
        all.push_back(note_pass(g, order, i));
        all.back().start(on);
    }
    EXPECT_TRUE(g.let_one_pass());
    EXPECT_TRUE(g.let_one_pass());
    g.open();
    on.run_all();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST(wait_queue, wakes_all_in_arrival_order_on_a_loop) {
    loop l;
    gate g;
    std::vector<int> order;
    for (int i = 0; i < 5; ++i)
        fiber(
            [&, i] {
                await(g.async_pass());
                order.push_back(i);
            },
            {.on = l})
            .detach();
    fiber([&] { g.open(); }, {.on = l}).detach();
    l.run();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST(wait_queue, skips_a_waiter_whose_wait_has_ended) {
    manual_executor on;
    gate g;
    waiter ended(on);
    waiter next(on);
    wait_node first(&ended);
    wait_node second(&next);
    wait_queue queue;
    const std::lock_guard held(queue);
    queue.push_back(first);
    queue.push_back(second);
    EXPECT_TRUE(ended.claim());  // in place of a deadline, which then calls cancel
    EXPECT_EQ(queue.claim_first(), &second);
    EXPECT_TRUE(queue.empty());
    EXPECT_FALSE(first.is_linked());
    queue.remove(first);  // what cancel does: nothing any more
    EXPECT_EQ(queue.claim_first(), nullptr);
}

TEST(wait_queue, keeps_its_order_when_a_waiter_is_cancelled) {
    manual_executor on;
    gate g;
    std::vector<int> order;
    std::vector<wait_status> ends;
    coroutine_flow f(on);
    plain_coroutine a = note_pass(g, order, 1);
    plain_coroutine b = note_end(g, on.now() + 1ms, ends);
    plain_coroutine c = note_pass(g, order, 2);
    a.start(on);
    b.start(on, &f);
    c.start(on);
    on.advance(1ms);
    EXPECT_EQ(ends, std::vector{wait_status::timed_out});
    g.open();
    on.run_all();
    EXPECT_EQ(order, (std::vector{1, 2}));
}

// Threads wait for tokens, and many time out: each token that found a waiter let that waiter pass,
// and no token is lost between a deadline and a wake.
TEST(wait_queue, loses_no_wake_to_waiters_that_time_out) {
    constexpr int threads = 3;
    const int tokens = slow ? 1'000 : 10'000;
    gate g;
    std::atomic<int> passed{0};
    std::atomic<bool> over{false};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            while (!over)
                if (sync_wait(g.async_pass_until(steady_now() + t * 10us)) == wait_status::woken)
                    ++passed;
        });
    int given = 0;
    while (given < tokens) {
        if (g.let_one_pass())
            ++given;
        else
            std::this_thread::yield();
    }
    over = true;
    for (std::thread& t : all) t.join();
    EXPECT_EQ(passed, given);
    EXPECT_FALSE(g.anybody_waits());
}

}  // namespace
}  // namespace weft
