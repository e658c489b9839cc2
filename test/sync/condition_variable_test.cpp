#include "weft/sync/condition_variable.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "test/support/agents.hpp"
#include "test/support/manual_executor.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/wait/shield.hpp"

using namespace std::chrono_literals;

namespace {

class condition_variable_among : public weft::testing::among {};

TEST_P(condition_variable_among, a_bounded_queue_loses_nothing) {
    weft::mutex m;
    weft::condition_variable changed;
    std::deque<int> queue;
    std::vector<int> got;
    constexpr int count = 300;
    run(
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < count; ++i) {
                co_await wait(m.async_lock());
                std::unique_lock lock(m, std::adopt_lock);
                while (queue.size() == 3) co_await wait(changed.async_wait(lock));
                queue.push_back(i);
                changed.notify_one();
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < count; ++i) {
                co_await wait(m.async_lock());
                std::unique_lock lock(m, std::adopt_lock);
                while (queue.empty()) co_await wait(changed.async_wait(lock));
                got.push_back(queue.front());
                queue.pop_front();
                changed.notify_one();
            }
        });
    ASSERT_EQ(got.size(), std::size_t{count});
    for (int i = 0; i < count; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
}

TEST_P(condition_variable_among, a_deadline_ends_a_wait_with_the_mutex_held) {
    weft::mutex m;
    weft::condition_variable never_notified;
    int inside = 0;
    run_many(3, [&](auto wait) -> weft::task<> {
        co_await wait(m.async_lock());
        std::unique_lock lock(m, std::adopt_lock);
        const auto until = weft::after(weft::now(), 2ms);
        const auto how = co_await wait(never_notified.async_wait(lock, until));
        EXPECT_EQ(how, std::cv_status::timeout);
        EXPECT_GE(weft::now(), until);
        EXPECT_TRUE(lock.owns_lock());
        EXPECT_EQ(inside++, 0);
        co_await wait(weft::sleep_for(0s));
        EXPECT_EQ(--inside, 0);
    });
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

WEFT_INSTANTIATE_AMONG(condition_variable_among);

TEST(condition_variable, notify_one_wakes_the_first_and_notify_all_the_rest) {
    weft::loop l;
    weft::mutex m;
    weft::condition_variable c;
    std::vector<int> order;
    std::vector<weft::fiber> fibers;
    for (int i = 0; i < 4; ++i)
        fibers.emplace_back(
            [&, i] {
                std::unique_lock lock(m);
                c.wait(lock);
                order.push_back(i);
                weft::this_fiber::yield();
            },
            weft::fiber_options{.on = l});
    l.run_until_idle();
    c.notify_one();
    l.run_until_idle();
    EXPECT_EQ(order, (std::vector<int>{0}));
    c.notify_all();
    l.run();
    EXPECT_EQ(order.size(), 4u);
    for (auto& f : fibers) f.join();
}

TEST(condition_variable, the_predicate_decides) {
    weft::testing::virtual_loop l;
    weft::mutex m;
    weft::condition_variable c;
    bool ready = false;
    weft::fiber waits(
        [&] {
            std::unique_lock lock(m);
            EXPECT_FALSE(c.wait_for(lock, 10ms, [&] { return ready; }));
            EXPECT_TRUE(c.wait_for(lock, 1h, [&] { return ready; }));
            c.wait(lock, [&] { return ready; });
        },
        {.on = l});
    weft::fiber notifies(
        [&] {
            weft::this_fiber::sleep_for(5ms);
            c.notify_all();  // without effect
            weft::this_fiber::sleep_for(15ms);
            const std::lock_guard held(m);
            ready = true;
            c.notify_all();
        },
        {.on = l});
    l.run();
    waits.join();
    notifies.join();
}

// A stop comes while another holds the mutex: the waiter throws only when it has it.
TEST(condition_variable, relocks_the_mutex_even_when_stopped) {
    weft::testing::virtual_loop l;
    weft::mutex m;
    weft::condition_variable c;
    bool held_by_other = false;
    weft::fiber waits(
        [&] {
            std::unique_lock lock(m);
            try {
                c.wait(lock);
                ADD_FAILURE() << "was not stopped";
            } catch (const weft::stopped& s) {
                EXPECT_EQ(s.reason, weft::stop_reason::user);
                EXPECT_TRUE(lock.owns_lock());
                EXPECT_TRUE(m.is_owned_by_caller());
                EXPECT_FALSE(held_by_other);
                EXPECT_THROW(c.wait_for(lock, 1h), weft::stopped) << "it is still stopped";
                throw;
            }
        },
        {.on = l});
    weft::fiber stops(
        [&] {
            weft::this_fiber::sleep_for(1ms);
            const std::lock_guard held(m);
            held_by_other = true;
            waits.request_stop();
            weft::this_fiber::sleep_for(5ms);
            held_by_other = false;
        },
        {.on = l});
    l.run();
    EXPECT_TRUE(waits.join().is_stopped());
    stops.join();
}

TEST(condition_variable, a_killed_waiter_does_not_unlock_a_mutex_it_does_not_own) {
    weft::mutex m;
    weft::condition_variable c;
    {
        weft::loop l;
        weft::fiber f(
            [&] {
                std::unique_lock lock(m);
                const weft::shield s;
                c.wait(lock);
            },
            {.on = l});
        f.detach();
        l.run_until_idle();
    }  // ends it
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(condition_variable, a_loop_of_timed_waits_is_ended_by_a_stop) {
    weft::testing::virtual_loop l;
    weft::mutex m;
    weft::condition_variable c;
    int waits = 0;
    weft::fiber f(
        [&] {
            std::unique_lock lock(m);
            for (; waits < 1'000; ++waits) c.wait_for(lock, 1s);
        },
        {.on = l});
    weft::fiber stops([&] { weft::this_fiber::sleep_for(5s), f.request_stop(); }, {.on = l});
    l.run();
    stops.join();
    EXPECT_TRUE(f.join().is_stopped());
    EXPECT_LT(waits, 10);
}

// The waiter that was woken is destroyed before it runs, or while it waits for the mutex.
TEST(condition_variable, a_destroyed_waiter_forwards_its_notification) {
    for (const bool before_it_runs : {true, false}) {
        weft::loop l;
        weft::mutex m;
        weft::condition_variable c;
        bool passed = false;
        const auto body = [&]() -> weft::task<> {
            co_await m.async_lock();
            std::unique_lock lock(m, std::adopt_lock);
            co_await c.async_wait(lock);
            ADD_FAILURE() << "it was destroyed";
        };
        auto first = std::make_unique<weft::task<>>(body());
        l.post([&] { first->start(); });
        l.run_until_idle();
        weft::fiber second(
            [&] {
                std::unique_lock lock(m);
                c.wait(lock);
                passed = true;
            },
            {.on = l});
        l.run_until_idle();
        l.post([&] {
            ASSERT_TRUE(m.try_lock());
            c.notify_one();
            if (before_it_runs) first.reset();
        });
        l.run_until_idle();
        EXPECT_FALSE(passed) << "the mutex is held";
        l.post([&] {
            first.reset();
            m.unlock();
        });
        l.run();
        EXPECT_TRUE(passed);
        second.join();
    }
}

TEST(condition_variable, a_killed_waiter_forwards_its_notification) {
    weft::mutex m;
    weft::condition_variable c;
    weft::loop other;
    bool passed = false;
    weft::fiber second;
    {
        weft::loop l;
        weft::fiber first(
            [&] {
                std::unique_lock lock(m);
                const weft::shield s;
                c.wait(lock);
            },
            {.on = l});
        first.detach();
        l.run_until_idle();
        second = weft::fiber(
            [&] {
                std::unique_lock lock(m);
                c.wait(lock);
                passed = true;
            },
            {.on = other});
        other.run_until_idle();
        ASSERT_TRUE(m.try_lock());
        c.notify_one();
        l.run_until_idle();
        EXPECT_FALSE(passed);
    }  // ends the first, which waits for the mutex
    m.unlock();
    other.run();
    EXPECT_TRUE(passed);
    second.join();
}

TEST(condition_variable, a_wait_with_a_token_ends_when_it_is_stopped) {
    weft::testing::virtual_loop l;
    weft::mutex m;
    weft::condition_variable c;
    weft::stop_source source;
    bool ready = false;
    std::vector<bool> said;
    weft::fiber waits(
        [&] {
            std::unique_lock lock(m);
            const auto is_ready = [&] { return ready; };
            said.push_back(c.wait_for(lock, source.get_token(), 1ms, is_ready));
            said.push_back(c.wait(lock, source.get_token(), is_ready));  // stopped at 5 ms
            EXPECT_TRUE(m.is_owned_by_caller());
            said.push_back(c.wait(lock, source.get_token(), is_ready));
            ready = true;
            said.push_back(c.wait(lock, source.get_token(), is_ready));
        },
        {.on = l});
    weft::fiber stops([&] { weft::this_fiber::sleep_for(5ms), source.request_stop(); }, {.on = l});
    l.run();
    waits.join();
    stops.join();
    EXPECT_EQ(said, (std::vector{false, false, false, true}));
}

// A stop and a wait on two threads, from just before the wait to just after.
TEST(condition_variable, a_wait_with_a_token_misses_no_stop) {
    for (int round = 0; round < 300; ++round) {
        weft::mutex m;
        weft::condition_variable c;
        weft::stop_source source;
        std::thread stops([&] { source.request_stop(); });
        std::unique_lock lock(m);
        EXPECT_FALSE(c.wait(lock, source.get_token(), [] { return false; }));
        stops.join();
    }
}

// The stop comes while notify_all() has claimed both and has woken the first only.
TEST(condition_variable, a_stop_does_not_override_a_notification) {
    weft::mutex m;
    weft::condition_variable c;
    weft::testing::manual_executor on;
    const auto body = [&]() -> weft::testing::plain_coroutine {
        co_await m.async_lock();
        std::unique_lock lock(m, std::adopt_lock);
        co_await c.async_wait(lock);
    };
    weft::testing::plain_coroutine first = body();
    first.start(on);
    weft::stop_source source;
    std::atomic<bool> waits{false};
    std::atomic<bool> came_back{false};
    std::thread second([&] {
        std::unique_lock lock(m);
        waits = true;
        EXPECT_FALSE(c.wait(lock, source.get_token(), [] { return false; }));
        came_back = true;
    });
    while (!waits) std::this_thread::yield();
    {
        const std::lock_guard held(m);  // the waiter has released the mutex: it is queued
    }
    on.in_next_post([&] { source.request_stop(); });
    c.notify_all();
    on.run_all();
    const auto soon = weft::after(weft::steady_now(), 10s);
    while (!came_back && weft::steady_now() < soon) std::this_thread::yield();
    if (!came_back) weft::fail("the waiter that was notified and stopped still waits");
    second.join();
    on.run_all();
    EXPECT_TRUE(first.done());
}

TEST(condition_variable_death, a_wait_without_the_mutex) {
    EXPECT_DEATH(
        {
            weft::mutex m;
            weft::condition_variable c;
            std::unique_lock lock(m, std::defer_lock);
            c.wait(lock);
        },
        "a wait for a condition without its mutex \\(.*condition_variable_test\\.cpp:");
}

}  // namespace
