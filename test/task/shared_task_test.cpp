#include "weft/task/shared_task.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "test/support/allocation_fails.hpp"
#include "test/task/on_loop.hpp"
#include "test/task/tasks.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace on_loop;
using weft::shared_task;

shared_task<std::string> text(int& runs, std::chrono::milliseconds d) {
    ++runs;
    if (d != 0ms) co_await weft::sleep_for(d);
    co_return "text";
}

TEST(shared_task, runs_once_for_all_its_awaiters) {
    int runs = 0;
    const auto reads = [](shared_task<std::string> t) -> task<const std::string*> {
        co_return &co_await t;
    };
    const auto body = [&]() -> task<> {
        shared_task<std::string> t = text(runs, 1ms);
        EXPECT_EQ(runs, 0);
        auto [a, b] = co_await weft::when_all(reads(t), reads(t));
        EXPECT_EQ(a, b);
        EXPECT_EQ(*a, "text");
        EXPECT_EQ(co_await t, "text");
        EXPECT_EQ(runs, 1);
    };
    run(body());
}

TEST(shared_task, gives_a_copy_to_the_awaiter_of_a_temporary) {
    int runs = 0;
    const auto body = [&]() -> task<std::string> {
        std::string&& s = co_await text(runs, 1ms);
        co_return s;
    };
    EXPECT_EQ(run(body()), "text");
}

TEST(shared_task, throws_its_exception_to_each_awaiter) {
    const auto body = []() -> task<int> {
        shared_task<int> t(failing_in(1ms, 5));
        int sum = 0;
        for (int i = 0; i < 3; ++i) {
            try {
                co_await t;
            } catch (int n) {
                sum += n;
            }
        }
        co_return sum;
    };
    EXPECT_EQ(run(body()), 15);
}

TEST(shared_task, a_stop_of_one_awaiter_leaves_it_to_the_others) {
    weft::testing::virtual_loop l(1);
    int runs = 0;
    shared_task<std::string> t = text(runs, 5ms);
    const auto reads = [](shared_task<std::string> s) -> task<std::string> {
        co_return co_await s;
    };
    weft::detail::task_run<std::string> a(reads(t), l.loop()), b(reads(t), l.loop());
    a->post_first_turn();
    b->post_first_turn();
    l.loop().run_until_idle();
    a->request_stop(weft::stop_reason::user);
    l.run();
    EXPECT_THROW(a.take(), weft::stopped);
    EXPECT_EQ(b.take(), "text");
}

TEST(shared_task, runs_to_its_end_without_a_handle) {
    weft::testing::virtual_loop l(1);
    bool ended = false;
    const auto slow = [](bool& e) -> shared_task<> {
        co_await weft::sleep_for(5ms);
        e = true;
    };
    const auto body = [&]() -> task<> { co_await slow(ended); };
    weft::detail::task_run<void> r(body(), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    r->request_stop(weft::stop_reason::user);
    l.run();
    EXPECT_TRUE(ended);
}

TEST(shared_task, can_be_awaited_by_several_threads) {
    for (int round = 0; round < 50; ++round) {
        int runs = 0;
        std::atomic<int> right{0};
        {
            const shared_task<std::string> t = text(runs, 1ms);
            std::vector<std::thread> threads;
            for (int i = 0; i < 3; ++i)
                threads.emplace_back([&] { right += weft::sync_wait(t) == "text"; });
            for (std::thread& x : threads) x.join();
        }
        EXPECT_EQ(right, 3);
        EXPECT_EQ(runs, 1);
    }
}

TEST(shared_task, can_be_stopped_after_the_loop_that_created_it_is_destroyed) {
    int runs = 0;
    shared_task<std::string> t;
    {
        weft::testing::virtual_loop gone(1);
        gone.loop().post([&] { t = text(runs, 1ms); });
        gone.loop().run_until_idle();
    }
    EXPECT_TRUE(t.request_stop());
    EXPECT_THROW(weft::sync_wait(t), weft::stopped);
    EXPECT_EQ(runs, 1) << "it is at its first wait that it is stopped";
}

TEST(shared_task, a_stop_of_another_thread_and_the_first_await_may_race) {
    for (int round = 0; round < 300; ++round) {
        shared_task<int> t(number_in(1h, 1));
        std::thread stops([t]() mutable { EXPECT_TRUE(t.request_stop()); });
        EXPECT_THROW(weft::sync_wait(t), weft::stopped);
        stops.join();
    }
}

TEST(shared_task, cannot_be_stopped_when_done) {
    shared_task<int> t(tasks::number(1));
    EXPECT_EQ(weft::sync_wait(t), 1);
    EXPECT_FALSE(t.request_stop());
}

TEST(shared_task, without_memory_throws_and_destroys_its_parameters_once) {
    int live_count = 0;
    const auto holds = [](std::shared_ptr<held>) -> shared_task<> { co_return; };
    weft::sync_wait(holds(nullptr));  // there are blocks in the cache now
    for (int which = 1; which <= 3; ++which) {
        auto parameter = std::make_shared<held>(live_count);
        const weft::testing::allocation_fails no_memory(which);
        try {
            const shared_task<> t = holds(std::move(parameter));
        } catch (const std::bad_alloc&) {
        }
    }
    EXPECT_EQ(live_count, 0);
    // Nor was a frame freed twice.
    const auto one = std::make_shared<held>(live_count), two = std::make_shared<held>(live_count);
    {
        const shared_task<> a = holds(one), b = holds(two);
        EXPECT_EQ(one.use_count() + two.use_count(), 4);
    }
    EXPECT_EQ(one.use_count() + two.use_count(), 2);
}

TEST(shared_task, in_a_cycle_waits_until_one_is_stopped) {
    weft::testing::virtual_loop l(1);
    shared_task<> a, b;
    const auto awaits = [](shared_task<>& other) -> task<> { co_await other; };
    a = shared_task<>(awaits(b));
    b = shared_task<>(awaits(a));
    weft::detail::task_run<void> r(awaits(a), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    EXPECT_FALSE(a.done() || b.done());
    EXPECT_TRUE(b.request_stop());
    l.run();
    EXPECT_TRUE(a.done() && b.done());
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(shared_task, moved_to_itself_is_unchanged) {
    shared_task<int> t(tasks::number(3));
    shared_task<int>& same = t;
    t = std::move(same);
    EXPECT_EQ(weft::sync_wait(t), 3);
}

}  // namespace
