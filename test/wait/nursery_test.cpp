#include "weft/wait/nursery.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "test/support/loop_thread.hpp"
#include "test/task/on_loop.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task_handle.hpp"
#include "weft/task/with_nursery.hpp"
#include "weft/task/with_timeout.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace on_loop;
using weft::nursery;
using weft::task;

// Runs f in a fiber, which comes to its end by itself; how long that took.
template <class F>
weft::duration in_a_fiber(F f) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    weft::fiber root(f, {.on = l});
    l.run();
    EXPECT_FALSE(root.join().is_stopped());
    return l.now() - before;
}

TEST(nursery, in_a_fiber_returns_the_results_of_its_children) {
    weft::testing::virtual_loop l(1);
    weft::fiber f(
        [] {
            nursery n;
            auto x = n.spawn(number_in(2ms, 1));
            auto y = n.spawn(number_in(1ms, 20));
            EXPECT_EQ(x.get() + y.get(), 21);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(nursery, on_a_thread_runs_tasks_while_the_thread_waits) {
    nursery n;
    auto x = n.spawn(number_in(2ms, 1));
    n.spawn(number_in(1ms, 20));
    n.join();
    EXPECT_EQ(x.get(), 1);
}

TEST(nursery, stops_and_joins_remaining_children_at_block_end) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    weft::fiber f(
        [&] {
            {
                nursery n;
                n.spawn(hold_for_an_hour(live_count));
                weft::this_fiber::sleep_for(1ms);
                EXPECT_EQ(live_count, 1);
            }
            EXPECT_EQ(live_count, 0);
        },
        {.on = l});
    l.run();
    f.join();
}

// One that ends by itself before the deadline, or in spite of it, is no reason to say so.
TEST(nursery, join_reports_a_deadline_that_ended_children) {
    int live_count = 0;
    in_a_fiber([&] {
        for (const bool lasts : {true, false}) {
            nursery n;
            if (lasts)
                n.spawn(hold_for_an_hour(live_count));
            else
                n.spawn(number_in(2ms, 1));
            const weft::timeout_scope limit(50ms);
            bool notified = false;
            try {
                n.join();
            } catch (const weft::stopped& s) {
                notified = s.reason == weft::stop_reason::deadline && limit.has_expired();
            }
            EXPECT_EQ(notified, lasts);
            EXPECT_EQ(n.living_count(), 0u);
        }
    });
    in_a_fiber([&] {
        for (const bool lasts : {true, false}) {
            const auto said = weft::await(weft::with_nursery([&](nursery& n) -> task<bool> {
                if (lasts)
                    n.spawn(hold_for_an_hour(live_count));
                else
                    n.spawn(number_in(2ms, 1));
                const auto r = co_await weft::with_timeout(n.async_join(), 50ms);
                EXPECT_EQ(n.living_count(), 0u);
                co_return !r && r.error() == std::errc::timed_out;
            }));
            EXPECT_EQ(said, lasts);
        }
    });
    EXPECT_EQ(live_count, 0);
}

TEST(nursery, later_join_does_not_repeat_a_reported_deadline) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    weft::fiber f(
        [&] {
            nursery n;
            n.spawn(hold_for_an_hour(live_count));
            {
                const weft::timeout_scope limit(5ms);
                EXPECT_THROW(n.join(), weft::stopped);
            }
            bool ended = false;
            n.spawn([&] {
                const weft::shield to_its_end;
                weft::this_fiber::sleep_for(20ms);
                ended = true;
            });
            const weft::timeout_scope limit(5ms);
            EXPECT_NO_THROW(n.join());
            EXPECT_TRUE(ended);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(nursery, join_waits_for_all_and_throws_the_first_error) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    weft::fiber f(
        [] {
            nursery n;
            n.spawn(number_in(7ms, 1));
            n.join();
            auto slow = n.spawn(number_in(1h, 1));
            n.spawn(failing_in(1ms, 4));
            EXPECT_THROW(n.join(), int);
            EXPECT_EQ(n.errors().size(), 1u);
            EXPECT_THROW(slow.get(), int);  // stopped because of it
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(l.now() - before, 8ms);
}

TEST(nursery, throws_an_unretrieved_child_error_at_block_end) {
    weft::testing::virtual_loop l(1);
    weft::fiber f(
        [] {
            nursery n;
            n.spawn(failing_in(1ms, 4));
            weft::this_fiber::sleep_for(2ms);
        },
        {.on = l});
    l.run();
    EXPECT_THROW(f.join(), int);
}

TEST(nursery, an_exception_of_the_block_wins_over_child_errors) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    weft::fiber f(
        [&] {
            nursery n;
            n.spawn(hold_for_an_hour(live_count));
            n.spawn([] {
                const weft::shield s;
                weft::this_fiber::sleep_for(2ms);
                throw 4;
            });
            weft::this_fiber::sleep_for(1ms);
            throw 'c';
        },
        {.on = l});
    l.run();
    EXPECT_THROW(f.join(), char);
    EXPECT_EQ(live_count, 0);
}

TEST(nursery, a_stop_of_the_joining_fiber_stops_the_children) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    weft::fiber f(
        [&] {
            nursery n;
            n.spawn(hold_for_an_hour(live_count));
            n.join();
            weft::this_fiber::sleep_for(1ms);
            ADD_FAILURE() << "the next wait finds the stop";
        },
        {.on = l});
    l.loop().run_until_idle();
    const weft::time_point before = l.now();
    f.request_stop();
    l.run();
    EXPECT_TRUE(f.join().is_stopped());
    EXPECT_EQ(l.now(), before);
    EXPECT_EQ(live_count, 0);
}

TEST(nursery, kills_its_children_when_its_fiber_is_killed) {
    int live_count = 0;
    {
        weft::testing::virtual_loop l(1);
        weft::fiber f(
            [&] {
                nursery n;
                n.spawn(hold_for_an_hour(live_count));
                const weft::shield s;
                weft::this_fiber::sleep_for(2h);
            },
            {.on = l});
        l.loop().run_until_idle();
        EXPECT_EQ(live_count, 1);
        f.detach();
    }
    EXPECT_EQ(live_count, 0);
}

// Its child has its first turn while the exception is in flight, and its stop is requested then.
TEST(nursery, on_a_thread_stops_a_child_that_starts_during_unwinding) {
    int live_count = 0;
    const weft::time_point before = weft::steady_now();
    EXPECT_THROW(
        {
            nursery n;
            n.spawn(hold_for_an_hour(live_count));
            throw 'c';
        },
        char);
    EXPECT_LE(weft::steady_now() - before, 30min);
    EXPECT_EQ(live_count, 0);
}

// -- a fiber's block and a task's: the same -----------------------------------------------------

task<int> failing_under_a_shield_in(weft::duration d, int n) {
    const weft::shield s;
    co_await weft::sleep_for(d);
    throw n;
}

// The number that ends a wait of an hour; -1: it was stopped.
task<int> what_a_wait_throws() {
    try {
        co_await weft::sleep_for(1h);
    } catch (const weft::stopped&) {
        co_return -1;
    } catch (int e) {
        co_return e;
    }
    co_return 0;
}

TEST(nursery, request_stop_stops_only_the_children) {
    int live_count = 0;
    EXPECT_EQ(in_a_fiber([&] {
                  nursery n;
                  n.spawn(hold_for_an_hour(live_count));
                  weft::this_fiber::sleep_for(1ms);
                  EXPECT_TRUE(n.request_stop());
                  weft::this_fiber::sleep_for(1ms);
                  EXPECT_EQ(live_count, 0);
                  n.join();
              }),
              2ms);
    EXPECT_EQ(in_a_fiber([&] {
                  weft::await(weft::with_nursery([&](nursery& n) -> task<> {
                      n.spawn(hold_for_an_hour(live_count));
                      co_await weft::sleep_for(1ms);
                      EXPECT_TRUE(n.request_stop());
                      co_await weft::sleep_for(1ms);
                      EXPECT_EQ(live_count, 0);
                      co_await n.async_join();
                  }));
              }),
              2ms);
}

TEST(nursery, a_failed_childs_error_ends_each_wait_of_the_block) {
    EXPECT_EQ(in_a_fiber([] {
                  EXPECT_THROW(
                      {
                          nursery n;
                          n.spawn(failing_in(2ms, 7));
                          EXPECT_THROW(weft::this_fiber::sleep_for(1h), int);
                          weft::this_fiber::sleep_for(1h);
                      },
                      int);
                  weft::this_fiber::sleep_for(1ms);
              }),
              3ms);
    const auto block = [](nursery& n) -> task<> {
        n.spawn(failing_in(2ms, 7));
        EXPECT_EQ(co_await what_a_wait_throws(), 7);
        co_await weft::sleep_for(1h);
    };
    EXPECT_EQ(in_a_fiber([&] {
                  EXPECT_THROW(weft::await(weft::with_nursery(block)), int);
                  weft::this_fiber::sleep_for(1ms);
              }),
              3ms);
}

TEST(nursery, a_child_failing_after_request_stop_still_stops_the_block) {
    EXPECT_EQ(in_a_fiber([] {
                  EXPECT_THROW(
                      {
                          nursery n;
                          n.spawn(failing_under_a_shield_in(2ms, 7));
                          weft::this_fiber::sleep_for(1ms);
                          n.request_stop();
                          weft::this_fiber::sleep_for(1h);
                      },
                      int);
              }),
              2ms);
    const auto block = [](nursery& n) -> task<> {
        n.spawn(failing_under_a_shield_in(2ms, 7));
        co_await weft::sleep_for(1ms);
        n.request_stop();
        EXPECT_EQ(co_await what_a_wait_throws(), 7);
    };
    EXPECT_EQ(in_a_fiber([&] { EXPECT_THROW(weft::await(weft::with_nursery(block)), int); }), 2ms);
}

TEST(nursery, spawn_of_a_task_with_options_runs_it_on_their_scheduler) {
    weft::testing::loop_thread there;
    const auto runs_there = [](weft::executor& on) -> task<bool> {
        co_return on.running_in_this_thread();
    };
    nursery n;
    EXPECT_TRUE(n.spawn(runs_there(there.loop()), {.on = there}).get());
    EXPECT_FALSE(n.spawn(runs_there(there.loop())).get());
}
TEST(nursery, spawn_of_a_function_takes_its_options_in_braces) {
    weft::testing::loop_thread there;
    nursery n;
    EXPECT_EQ(
        n.spawn([] { return std::string(weft::this_fiber::name()); }, {.name = "b", .on = there})
            .get(),
        "b");
}

TEST(nursery, a_name_of_a_task_is_in_its_info_until_the_task_has_ended) {
    weft::testing::virtual_loop l(1);
    const auto info_here = []() -> task<std::string> {
        const weft::agent_info about = weft::current_flow()->info();
        co_return std::string(about.kind) + " " + (about.name != nullptr ? about.name : "-");
    };
    weft::fiber f(
        [&] {
            nursery n;
            std::string name = "b";
            auto named = n.spawn(info_here(), {.name = name, .on = l});
            name = "changed";
            EXPECT_EQ(named.get(), "task b");
            EXPECT_EQ(n.spawn(info_here(), {.on = l}).get(), "task -");
        },
        {.on = l});
    l.run();
    f.join();
}
TEST(nursery, a_task_with_a_name_ends_as_one_without) {
    const auto sleeps = []() -> task<> { co_await weft::sleep_for(1h); };
    int there = 5;
    const auto refers = [&]() -> task<int&> { co_return there; };
    const auto makes = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
    EXPECT_EQ(in_a_fiber([&] {
                  nursery n;
                  EXPECT_EQ(&n.spawn(refers(), {.name = "refers"}).get(), &there);
                  EXPECT_EQ(*n.spawn(makes(), {.name = "makes"}).get(), 7);
                  n.spawn(sleeps(), {.name = "dropped"});
                  auto stopped = n.spawn(sleeps(), {.name = "stopped"});
                  EXPECT_TRUE(stopped.request_stop());
                  EXPECT_THROW(stopped.get(), weft::stopped);
                  n.spawn(failing_in(1ms, 7), {.name = "fails"});
                  EXPECT_THROW(n.join(), int);
              }),
              1ms);
}
TEST(nursery_death, a_deadlock_names_a_task_as_it_names_a_fiber) {
    const auto deadlocked = [] {
        weft::testing::virtual_loop l(1);
        weft::manual_reset_event never_set;
        weft::fiber f(
            [&] {
                nursery n;
                n.spawn([](weft::manual_reset_event& e) -> task<> { co_await e.async_wait(); }(
                                                            never_set),
                        {.name = "reader"});
                n.join();
            },
            {.name = "owner", .on = l});
        l.run();
    };
    EXPECT_DEATH(deadlocked(), "task [0-9]+ \"reader\" waits for");
}
TEST(nursery_death, a_result_of_a_named_task_asked_for_twice_names_the_task) {
    EXPECT_DEATH(
        {
            nursery n;
            auto x = n.spawn(number_in(0ms, 1), {.name = "twice"});
            x.get();
            x.get();
        },
        "asked for twice: task [0-9]+ \"twice\"");
}
TEST(nursery_death, a_spawn_of_an_empty_task_with_a_name_is_refused_at_its_line) {
    EXPECT_DEATH(
        {
            nursery n;
            n.spawn(task<int>(), {.name = "none"});
        },
        "a task that is empty or has begun is to be run.*nursery_test.cpp");
}

// What spawns may be no coroutine, and then it is no part of the block that its children stop.
TEST(nursery, a_failed_child_spawned_before_the_block_began_stops_it) {
    weft::testing::loop_thread there;
    const auto sleeps = []() -> task<> { co_await weft::sleep_for(1h); };
    for (int i = 1; i <= 20; ++i)
        EXPECT_THROW(weft::sync_wait(weft::with_nursery([&](nursery& n) {
                         n.spawn(failing_in(0ms, i), {.on = there});
                         return sleeps();
                     })),
                     int);
}

// Whether the failure comes before the join or meanwhile.
TEST(nursery, join_waits_for_all_children_even_after_a_failure) {
    for (const auto joins_at : {1ms, 5ms}) {
        const auto block = [=](nursery& n) -> task<> {
            n.spawn(failing_in(2ms, 7));
            bool ended = false;
            const auto slow = [](bool& at_end) -> task<> {
                const weft::shield s;
                co_await weft::sleep_for(9ms);
                at_end = true;
            };
            n.spawn(slow(ended));
            {
                const weft::shield s;
                co_await weft::sleep_for(joins_at);
            }
            co_await n.async_join();
            EXPECT_TRUE(ended);
            EXPECT_EQ(n.living_count(), 0u);
            n.rethrow();
        };
        EXPECT_EQ(in_a_fiber([&] { EXPECT_THROW(weft::await(weft::with_nursery(block)), int); }),
                  9ms);
        EXPECT_EQ(in_a_fiber([&] {
                      nursery n;
                      n.spawn(failing_in(2ms, 7));
                      n.spawn(failing_under_a_shield_in(9ms, 8));
                      {
                          const weft::shield s;
                          weft::this_fiber::sleep_for(joins_at);
                      }
                      try {
                          n.join();
                          ADD_FAILURE() << "it reports the error";
                      } catch (int e) {
                          EXPECT_EQ(e, 7);
                      }
                      EXPECT_EQ(n.errors().size(), 2u);
                      weft::this_fiber::sleep_for(1ms);  // and the failure is delivered
                  }),
                  10ms);
    }
}

TEST(nursery, a_stop_of_the_caller_stops_the_block) {
    const auto block = [](nursery& n) -> task<> {
        n.spawn(number_in(1h, 1));
        co_await weft::sleep_for(1h);
    };
    weft::testing::virtual_loop l(1);
    weft::fiber f(
        [] {
            nursery n;
            n.spawn(number_in(1h, 1));
            weft::this_fiber::sleep_for(1h);
        },
        {.on = l});
    weft::fiber g([&] { weft::await(weft::with_nursery(block)); }, {.on = l});
    l.loop().run_until_idle();
    const weft::time_point before = l.now();
    f.request_stop();
    g.request_stop();
    l.run();
    EXPECT_TRUE(f.join().is_stopped());
    EXPECT_TRUE(g.join().is_stopped());
    EXPECT_EQ(l.now(), before);
}

// -- the owner of the block ---------------------------------------------------------------------

// The failure of a child has no receiver then, and the flow of the block is there nevertheless.
TEST(nursery_death, destruction_by_a_thread_that_did_not_make_it) {
    weft::testing::loop_thread there;
    alignas(nursery) static std::byte place[sizeof(nursery)];  // there is no destructor to be had
    nursery* left_behind = nullptr;
    std::thread maker([&] {
        left_behind = new (place) nursery;
        left_behind->spawn(failing_in(0ms, 7), {.on = there});
    });
    maker.join();
    while (left_behind->living_count() != 0) std::this_thread::yield();
    EXPECT_EQ(left_behind->errors().size(), 1u);
    EXPECT_DEATH(left_behind->~nursery(),
                 "weft: a nursery is destroyed by another than its maker, whose block it is: "
                 "thread [0-9]+");
}

TEST(nursery_death, destruction_by_another_fiber) {
    EXPECT_DEATH(
        {
            weft::testing::virtual_loop l(1);
            std::optional<nursery> n;
            weft::fiber maker([&] { n.emplace(), weft::this_fiber::sleep_for(1h); }, {.on = l});
            weft::fiber other([&] { n.reset(); }, {.on = l});
            l.run();
        },
        "weft: a nursery is destroyed by another than its maker, whose block it is: fiber [0-9]+");
}

TEST(nursery_death, a_refused_spawn_names_the_calling_line) {
    const std::string here = " \\(.*/nursery_test\\.cpp:";
    EXPECT_DEATH(
        {
            nursery n;
            n.spawn(task<>());
        },
        "a task that is empty or has begun is to be run" + here);
    EXPECT_DEATH(
        {
            nursery n;
            n.spawn([] {});
        },
        "a fiber is made outside of any executor: wrap it in weft::run, or name one: .*" + here);
}

}  // namespace
