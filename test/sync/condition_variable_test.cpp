#include "weft/sync/condition_variable.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "test/support/parties.hpp"
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
        const auto how = co_await wait(never_notified.async_wait_until(lock, until));
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
            weft::fiber_options{.on = &l});
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
            c.notify_all();  // in vain
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
TEST(condition_variable, locks_again_even_when_stopped) {
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
                EXPECT_TRUE(m.is_mine());
                EXPECT_FALSE(held_by_other);
                EXPECT_EQ(c.wait_for(lock, 1h), std::cv_status::timeout) << "it is still stopped";
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
    EXPECT_TRUE(waits.join().stopped());
    stops.join();
}

TEST(condition_variable, a_fiber_that_is_killed_in_a_wait_does_not_unlock_what_it_does_not_hold) {
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
            {.on = &l});
        f.detach();
        l.run_until_idle();
    }  // ends it
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(condition_variable_death, a_wait_without_the_mutex) {
    EXPECT_DEATH(
        {
            weft::mutex m;
            weft::condition_variable c;
            std::unique_lock lock(m, std::defer_lock);
            c.wait(lock);
        },
        "a wait for a condition without its mutex");
}

}  // namespace
