#include "weft/task/sync_wait.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "test/task/on_loop.hpp"
#include "test/task/tasks.hpp"
#include "weft/fiber/fiber.hpp"

namespace {

using namespace on_loop;
using weft::sync_wait;

using tasks::nothing;
using tasks::number;
task<int&> reference(int& n) { co_return n; }
task<std::unique_ptr<int>> movable(int n) { co_return std::make_unique<int>(n); }
task<> failing_at_once() {
    throw 4;
    co_return;
}

TEST(sync_wait, returns_the_outcome_of_the_task_to_a_thread) {
    int place = 3;
    EXPECT_EQ(sync_wait(number(5)), 5);
    EXPECT_EQ(&sync_wait(reference(place)), &place);
    EXPECT_EQ(*sync_wait(movable(6)), 6);
    sync_wait(nothing());
    EXPECT_THROW(sync_wait(failing_at_once()), int);
    EXPECT_EQ(sync_wait(number_in(1ms, 7)), 7);
}

TEST(sync_wait, takes_an_lvalue_task_or_a_started_task) {
    task<int> named = number(5);
    EXPECT_EQ(sync_wait(named), 5);
    EXPECT_FALSE(named);
    task<int> begun = number_in(1ms, 6);
    const auto body = [](task<int>& t) -> task<int> {
        t.start();
        co_return co_await t;
    };
    EXPECT_EQ(sync_wait(body(begun)), 6);
    task<int> ended = number(7);
    ended.start();
    EXPECT_EQ(sync_wait(ended), 7);
}

TEST(await, of_a_task_in_a_fiber_suspends_only_the_fiber) {
    weft::testing::virtual_loop l(1);
    std::string order;
    weft::fiber a([&] { order += std::to_string(weft::await(number_in(2ms, 2))); }, {.on = l});
    weft::fiber b([&] { order += std::to_string(weft::await(number_in(1ms, 1))); }, {.on = l});
    l.run();
    a.join();
    b.join();
    EXPECT_EQ(order, "12");
}

TEST(await, of_a_task_runs_it_at_once_and_on_the_fibers_thread) {
    weft::testing::virtual_loop l(1);
    std::thread::id where;
    const auto body = [&]() -> task<int> {
        where = std::this_thread::get_id();
        co_return 1;
    };
    weft::fiber f(
        [&] {
            const std::uint64_t turns = l.loop().turn_count();
            EXPECT_EQ(weft::await(body()), 1);
            EXPECT_EQ(l.loop().turn_count(), turns);
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(await, of_a_task_that_fails_throws_in_the_fiber) {
    weft::testing::virtual_loop l(1);
    weft::fiber f([&] { EXPECT_THROW(weft::await(failing_in(1ms, 3)), int); }, {.on = l});
    l.run();
    EXPECT_FALSE(f.join().is_stopped());
}

TEST(await, of_a_task_forwards_a_stop_of_the_fiber_and_waits) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    weft::fiber f([&] { weft::await(hold_for_an_hour(live_count)); }, {.on = l});
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 1);
    const weft::time_point before = l.now();
    f.request_stop();
    l.run();
    EXPECT_EQ(l.now(), before);
    EXPECT_EQ(live_count, 0);
    EXPECT_TRUE(f.join().is_stopped());
}

TEST(await, of_a_task_in_a_stopped_fiber_ends_at_its_first_wait) {
    weft::testing::virtual_loop l(1);
    weft::fiber f(
        [&] {
            weft::current_flow()->request_stop(weft::stop_reason::user);
            EXPECT_EQ(weft::await(number(4)), 4);  // it does not wait
            int live_count = 0;
            EXPECT_THROW(weft::await(hold_for_an_hour(live_count)), weft::stopped);
            const weft::shield s;
            EXPECT_EQ(weft::await(number_in(1ms, 5)), 5);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(await, of_a_task_ends_with_a_fiber_that_is_killed) {
    int live_count = 0;
    {
        weft::testing::virtual_loop l(1);
        weft::fiber f(
            [&] {
                const weft::shield s;
                weft::await(hold_for_an_hour(live_count));
            },
            {.on = l});
        l.loop().run_until_idle();
        EXPECT_EQ(live_count, 1);
        f.detach();
    }
    EXPECT_EQ(live_count, 0);
}

// In later turns too, of which the exception that unwinds the fiber is not a part.
TEST(await, of_a_task_in_a_destructor_during_unwinding_is_not_stopped) {
    weft::testing::virtual_loop l(1);
    int said = 0;
    const auto farewell = [](int& n) -> task<> {
        for (int i = 0; i < 3; ++i) {
            co_await weft::sleep_for(1ms);
            ++n;
        }
    };
    struct says_farewell {
        decltype(farewell)& say;
        int& said;
        ~says_farewell() { weft::await(say(said)); }
    };
    weft::fiber f(
        [&] {
            const says_farewell at_end{farewell, said};
            weft::this_fiber::sleep_for(1h);
        },
        {.on = l});
    l.loop().run_until_idle();
    f.request_stop();
    l.run();
    EXPECT_TRUE(f.join().is_stopped());
    EXPECT_EQ(said, 3);
    EXPECT_EQ(l.now(), weft::time_point(3ms));
}

using sync_wait_deathtest = ::testing::Test;
TEST_F(sync_wait_deathtest, in_a_coroutine_ends_the_program) {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto body = []() -> task<int> { co_return sync_wait(number_in(1ms, 1)); };
    EXPECT_DEATH(sync_wait(body()), "a blocking wait in a coroutine: co_await it");
}

}  // namespace
