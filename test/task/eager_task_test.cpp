#include "weft/task/eager_task.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "test/task/on_loop.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace on_loop;
using weft::eager_task;

eager_task<int> eager(std::string& order, std::chrono::milliseconds d, int n) {
    order += 'b';
    if (d != 0ms) co_await weft::sleep_for(d);
    order += 'e';
    if (n < 0) throw n;
    co_return n;
}

TEST(eager_task, starts_in_its_call_and_continues_on_its_own) {
    const auto body = []() -> task<> {
        std::string order;
        eager_task<int> t = eager(order, 1ms, 4);
        EXPECT_EQ(order, "b");
        EXPECT_FALSE(t.done());
        co_await weft::sleep_for(2ms);
        EXPECT_EQ(order, "be");
        EXPECT_TRUE(t.done());
        EXPECT_EQ(co_await t, 4);
        EXPECT_FALSE(t);
    };
    run(body());
}

TEST(eager_task, delivers_its_result_to_its_awaiter) {
    const auto body = []() -> task<> {
        std::string order;
        EXPECT_EQ(co_await eager(order, 1ms, 4), 4);
        EXPECT_EQ(co_await eager(order, 0ms, 5), 5);
        auto [a, b] = co_await weft::when_all(eager(order, 3ms, 6), eager(order, 1ms, 7));
        EXPECT_EQ(a * 10 + b, 67);
    };
    run(body());
}

TEST(eager_task, keeps_its_exception_for_its_awaiter) {
    const auto body = []() -> task<> {
        std::string order;
        eager_task<int> t = eager(order, 0ms, -4);
        EXPECT_TRUE(t.done());
        int caught = 0;
        try {
            co_await t;
        } catch (int n) {
            caught = n;
        }
        EXPECT_EQ(caught, -4);
    };
    run(body());
}

TEST(eager_task, is_ended_by_its_destruction) {
    const auto hold = [](int& n) -> eager_task<> {
        const held h(n);
        co_await weft::sleep_for(1h);
    };
    const auto body = [&]() -> task<> {
        int live_count = 0;
        {
            eager_task<> t = hold(live_count);
            EXPECT_EQ(live_count, 1);
            t = hold(live_count);
            EXPECT_EQ(live_count, 1);
        }
        EXPECT_EQ(live_count, 0);
        co_return;
    };
    run(body());
}

TEST(eager_task, is_stopped_with_its_awaiter) {
    weft::testing::virtual_loop l(1);
    const auto body = []() -> task<> {
        std::string order;
        co_await eager(order, 1000ms, 4);
    };
    weft::detail::task_run<void> r(body(), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    r->request_stop(weft::stop_reason::user);
    const weft::time_point before = l.now();
    l.run();
    EXPECT_EQ(l.now(), before);
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(eager_task, can_be_awaited_by_a_thread) {
    std::string order;
    eager_task<int> t = eager(order, 1ms, 4);
    EXPECT_EQ(order, "b");
    EXPECT_EQ(weft::sync_wait(t), 4);
}

TEST(eager_task, dropped_by_its_own_body_is_asked_to_stop_and_completes) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    bool went_on = false, was_stopped = false;
    std::optional<eager_task<>> slot;
    const auto drops_itself = [&]() -> eager_task<> {
        const held h(live_count);
        co_await weft::sleep_for(1ms);
        slot.reset();
        went_on = true;
        EXPECT_EQ(live_count, 1);
        try {
            co_await weft::sleep_for(1h);
        } catch (const weft::stopped&) {
            was_stopped = true;
        }
    };
    const auto body = [&]() -> task<> {
        slot.emplace(drops_itself());
        co_await weft::sleep_for(2ms);
        EXPECT_EQ(live_count, 0);
    };
    run(l, body());
    EXPECT_TRUE(went_on);
    EXPECT_TRUE(was_stopped);
    EXPECT_FALSE(slot);
}

TEST(eager_task, cannot_be_stopped_when_done) {
    const auto body = []() -> task<> {
        std::string order;
        eager_task<int> t = eager(order, 0ms, 4);
        EXPECT_FALSE(t.request_stop());
        EXPECT_EQ(co_await t, 4);
        EXPECT_FALSE(t.request_stop());
    };
    run(body());
}

TEST(eager_task, can_be_awaited_again_after_reassignment) {
    const auto body = []() -> task<> {
        std::string order;
        eager_task<int> t = eager(order, 1ms, 4);
        EXPECT_EQ(co_await t, 4);
        t = eager(order, 1ms, 5);
        EXPECT_EQ(co_await t, 5);
    };
    run(body());
}

TEST(eager_task, can_be_reassigned_after_its_awaiter_is_destroyed) {
    const auto awaits = [](eager_task<int>& t) -> task<> { co_await t; };
    const auto body = [&]() -> task<> {
        std::string order;
        eager_task<int> t = eager(order, 1ms, 4);
        {
            task<> other = awaits(t);
            other.start();
        }
        EXPECT_TRUE(t.done()) << "it ends with what awaits it";
        t = eager(order, 1ms, 5);
        EXPECT_EQ(co_await t, 5);
    };
    run(body());
}

TEST(eager_task_death, refuses_a_second_await) {
    const auto awaits = [](eager_task<int>& t) -> task<int> { co_return co_await t; };
    const auto twice = [&]() -> task<> {
        std::string order;
        eager_task<int> t = eager(order, 1ms, 4);
        co_await weft::when_all(awaits(t), awaits(t));
    };
    EXPECT_DEATH(run(twice()),
                 "weft: second await of an eager_task: task [0-9]+.*eager_task_test.cpp");
}

TEST(eager_task, moved_to_itself_is_unchanged) {
    const auto body = []() -> task<> {
        std::string order;
        eager_task<int> t = eager(order, 1ms, 4);
        eager_task<int>& same = t;
        t = std::move(same);
        EXPECT_EQ(co_await t, 4);
        EXPECT_EQ(order, "be");
    };
    run(body());
}

}  // namespace
