#include "weft/run/run_scope.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "test/support/waits_while_unwinding.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/run/run.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/task/task.hpp"
#include "weft/task/task_handle.hpp"
#include "weft/task/when_all.hpp"
#include "weft/wait/context_local.hpp"
#include "weft/wait/sleep.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

bool is_plain_thread() { return current_executor() == nullptr && current_flow() == nullptr; }

TEST(run_scope, makes_a_place_for_fibers_that_name_no_loop) {
    EXPECT_TRUE(is_plain_thread());
    {
        run_scope scope;
        EXPECT_EQ(spawn([] { return 7; }).get(), 7);
        EXPECT_FALSE(this_fiber::exists()) << "the thread is no fiber";
    }
    EXPECT_TRUE(is_plain_thread());
}

TEST(run_scope, runs_fibers_only_while_the_thread_waits) {
    run_scope scope;
    bool ran = false;
    fiber f([&] { ran = true; });
    EXPECT_FALSE(ran);
    sync_wait(sleep_for(0ns));
    EXPECT_TRUE(ran);
    fiber at_once([&] { ran = false; }, {.launch = launch::dispatch});
    EXPECT_FALSE(ran) << "this one begins on top of the thread";
}

TEST(run_scope, joins_all_that_is_live_at_its_end) {
    int ended = 0;
    {
        run_scope scope;
        for (int i = 0; i < 10; ++i)
            fiber([&, i] {
                this_fiber::sleep_for(i * 1ms);
                fiber([&] {
                    this_fiber::sleep_for(1ms);
                    ++ended;
                }).detach();
            }).detach();
        EXPECT_EQ(ended, 0);
    }
    EXPECT_EQ(ended, 10);
}

TEST(run_scope, may_be_joined_and_used_again) {
    run_scope scope;
    scope.join();
    for (int i = 0; i < 3; ++i) {
        bool ended = false;
        fiber([&] {
            this_fiber::sleep_for(1ms);
            ended = true;
        }).detach();
        scope.join();
        EXPECT_TRUE(ended);
    }
}

TEST(run_scope, follows_another_on_the_same_thread) {
    for (int i = 0; i < 3; ++i) {
        run_scope scope;
        EXPECT_EQ(spawn([&] { return i; }).get(), i);
    }
    EXPECT_EQ(run([] { return 1; }), 1);
    std::thread([] { EXPECT_TRUE(is_plain_thread()); }).join();
}

TEST(run_scope, lets_fibers_wake_the_thread_and_the_thread_wake_fibers) {
    run_scope scope;
    channel<int> there(0), back(0);
    fiber echo([&] {
        while (const auto n = there.recv()) std::ignore = back.send(*n + 1);
    });
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(there.send(i));
        ASSERT_EQ(back.recv().value(), i + 1);
    }
    there.close();
}

TEST(run_scope, lets_another_thread_wake_the_thread) {
    run_scope scope;
    channel<int> numbers(0);
    int turns = 0;
    fiber beside([&] {
        for (int i = 0; i < 100; ++i, ++turns) this_fiber::yield();
    });
    std::thread other([&] {
        for (int i = 0; i < 100; ++i) EXPECT_TRUE(numbers.send(i));
    });
    for (int i = 0; i < 100; ++i) EXPECT_EQ(numbers.recv().value(), i);
    other.join();
    beside.join();
    EXPECT_EQ(turns, 100);
}

TEST(run_scope, ends_a_wait_of_the_thread_at_a_deadline) {
    run_scope scope;
    manual_reset_event never_set;
    const time_point begin = steady_now();
    EXPECT_FALSE(never_set.wait(2ms));
    {
        timeout_scope limit(2ms);
        EXPECT_THROW(never_set.wait(), stopped);
        EXPECT_TRUE(limit.has_expired());
    }
    sync_wait(sleep_for(2ms));
    EXPECT_GE(steady_now() - begin, 6ms);
}

TEST(run_scope, is_not_bounded_by_a_timeout_scope_while_it_joins) {
    run_scope scope;
    bool ended = false;
    fiber([&] {
        this_fiber::sleep_for(5ms);
        ended = true;
    }).detach();
    const timeout_scope limit(1ms);
    scope.join();
    EXPECT_TRUE(ended);
    EXPECT_THROW(sync_wait(sleep_for(1h)), stopped) << "but the next wait is";
}

stop_reason reason_of_a_stopped_wait() {
    try {
        sync_wait(sleep_for(1h));
    } catch (const stopped& s) {
        return s.reason;
    }
    return stop_reason::none;
}

TEST(run_scope, ends_the_waits_of_the_thread_when_it_is_stopped) {
    {
        run_scope scope;  // by a fiber
        fiber f([&] { EXPECT_TRUE(scope.request_stop()); });
        EXPECT_EQ(reason_of_a_stopped_wait(), stop_reason::user);
        EXPECT_EQ(reason_of_a_stopped_wait(), stop_reason::user) << "a stop is a state";
        EXPECT_FALSE(scope.request_stop()) << "the first request wins";
    }
    {
        run_scope scope;  // by another thread
        std::thread other([&] { scope.request_stop(stop_reason::shutdown); });
        EXPECT_EQ(reason_of_a_stopped_wait(), stop_reason::shutdown);
        other.join();
    }
    {
        run_scope scope;  // by itself, before the wait
        scope.request_stop();
        EXPECT_EQ(reason_of_a_stopped_wait(), stop_reason::user);
    }
    EXPECT_NO_THROW(sync_wait(sleep_for(1ms))) << "the thread is as before";
}

TEST(run_scope, passes_a_stop_on_when_it_joins) {
    for (const bool early : {true, false}) {
        stop_reason seen = stop_reason::none;
        std::thread other;
        {
            run_scope scope;
            fiber([&] { seen = reason_of_a_stopped_wait(); }).detach();
            if (early)
                scope.request_stop();
            else
                other = std::thread([&] {
                    std::this_thread::sleep_for(2ms);
                    scope.request_stop();
                });
        }
        if (other.joinable()) other.join();
        EXPECT_EQ(seen, stop_reason::shutdown);
    }
}

TEST(run_scope, forgets_a_stop_that_comes_when_nothing_waits) {
    for (int i = 0; i < 100; ++i) {
        run_scope scope;
        std::thread([&] { scope.request_stop(); }).join();
    }
}

TEST(run_scope, asks_all_to_stop_when_an_exception_leaves_it) {
    stop_reason seen = stop_reason::none;
    EXPECT_THROW(
        {
            run_scope scope;
            fiber([&] { seen = reason_of_a_stopped_wait(); }).detach();
            sync_wait(sleep_for(1ms));
            throw std::runtime_error("left");
        },
        std::runtime_error);
    EXPECT_EQ(seen, stop_reason::shutdown);
    EXPECT_TRUE(is_plain_thread());
}

TEST(run_scope, delivers_what_leaves_a_fiber_to_the_thread) {
    run_scope scope;
    auto f = spawn([]() -> int { throw std::out_of_range("far"); });
    EXPECT_THROW(f.get(), std::out_of_range);
}

TEST(run_scope, lets_the_thread_wait_in_a_handler) {
    run_scope scope;
    fiber beside([] { EXPECT_EQ(std::current_exception(), nullptr); });
    try {
        throw 7;
    } catch (int) {
        sync_wait(sleep_for(1ms));
        EXPECT_THROW(throw, int);
    }
}

TEST(run_scope, runs_nothing_among_the_exceptions_of_a_thread_that_waits) {
    run_scope scope;
    EXPECT_EQ(testing::exceptions_seen_while_unwinding(), 0);
}

task<int> task_that_sleeps(int n) {
    co_await sleep_for(1ms);
    co_return n;
}

TEST(run_scope, runs_tasks_that_the_thread_awaits) {
    run_scope scope;
    EXPECT_EQ(sync_wait(task_that_sleeps(3)), 3);
    EXPECT_EQ(sync_wait(when_all(task_that_sleeps(1), task_that_sleeps(2))), std::tuple(1, 2));
}

TEST(run_scope, lets_the_thread_open_a_nursery) {
    run_scope scope;
    nursery n;
    auto a = n.spawn([] {
        this_fiber::sleep_for(1ms);
        return 1;
    });
    auto b = n.spawn(task_that_sleeps(2));
    EXPECT_EQ(a.get() + b.get(), 3);
    n.join();
}

TEST(run_scope, lets_a_failed_child_end_a_wait_of_the_thread) {
    run_scope scope;
    EXPECT_THROW(
        {
            nursery n;
            n.spawn([] { throw std::out_of_range("far"); });
            sync_wait(sleep_for(1h));
        },
        std::out_of_range);
    EXPECT_NO_THROW(sync_wait(sleep_for(1ms)));
}

TEST(run_scope, stops_the_nursery_that_the_thread_joins) {
    run_scope scope;
    nursery n;
    auto child = n.spawn([] { return reason_of_a_stopped_wait(); });
    fiber f([&] { scope.request_stop(); });
    n.join();
    const shield from_the_stop;
    EXPECT_EQ(child.get(), stop_reason::user);
}

TEST(run_scope, passes_a_mutex_between_the_thread_and_fibers) {
    run_scope scope;
    mutex m;
    int inside = 0;
    const auto work = [&] {
        for (int i = 0; i < 20; ++i) {
            const std::lock_guard held(m);
            EXPECT_EQ(inside++, 0);
            sync_wait(sleep_for(0ns));
            --inside;
        }
    };
    fiber a(work), b(work);
    work();
}

TEST(run_scope, leaves_what_the_thread_has_locked_before) {
    mutex m;
    const std::lock_guard held(m);
    run_scope scope;
    fiber f([&] { EXPECT_FALSE(m.try_lock()); });
}

TEST(run_scope, inherits_the_bindings_of_the_thread) {
    static context_local<int> number(1);
    const auto bound = number.bind(2);
    run_scope scope;
    EXPECT_EQ(number.get(), 2);
    EXPECT_EQ(spawn([] { return number.get(); }).get(), 2);
}

TEST(run_scope, reports_a_deadlock_of_the_thread_and_fibers) {
    ::testing::internal::CaptureStderr();
    {
        run_scope scope;
        channel<int> numbers(0);
        fiber f([&] { std::ignore = numbers.recv(); }, {.name = "reader"});
        std::thread rescuer([&] {
            std::this_thread::sleep_for(1300ms);
            EXPECT_TRUE(numbers.send(1));
        });
        f.join();
        rescuer.join();
    }
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("weft: deadlock?"), std::string::npos) << said;
    EXPECT_NE(said.find("waits for the end of a fiber: fiber"), std::string::npos) << said;
    EXPECT_NE(said.find("reader"), std::string::npos) << said;
}

TEST(run_scope, works_on_many_threads_at_once) {
    std::atomic<int> sum{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            run_scope scope;
            for (int i = 0; i < 50; ++i)
                fiber([&] {
                    this_fiber::yield();
                    ++sum;
                }).detach();
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(sum, 200);
}

TEST(run_scope_death, is_refused_in_what_an_executor_runs) {
    const std::string refused =
        "weft: a run_scope is made by what an executor runs.*run_scope_test.cpp";
    EXPECT_DEATH(run([] { run_scope scope; }), refused);
    EXPECT_DEATH(
        {
            run_scope outer;
            run_scope inner;
        },
        refused);
}

TEST(run_scope_death, a_blocking_wait_in_a_coroutine_that_the_thread_awaits) {
    const auto blocks_again = []() -> task<> {
        co_await sleep_for(1ms);
        sync_wait(sleep_for(1ms));
    };
    EXPECT_DEATH(
        {
            run_scope scope;
            sync_wait(blocks_again());
        },
        "weft: a blocking wait in a coroutine: co_await it");
}

TEST(run_scope_death, ends_while_its_thread_holds_a_mutex) {
    mutex m;
    EXPECT_DEATH(
        {
            run_scope scope;
            m.lock();
        },
        "weft: a run_scope ended and its thread holds a mutex");
}

TEST(run_scope_death, is_joined_or_destroyed_by_another) {
    EXPECT_DEATH(
        {
            run_scope scope;
            fiber f([&] { scope.join(); });
        },
        "weft: a run_scope is joined by another than the thread.*run_scope_test.cpp");
    EXPECT_DEATH(
        {
            std::optional<run_scope> scope(std::in_place);
            std::thread([&] { scope.reset(); }).join();
        },
        "weft: a run_scope is destroyed by another than the thread");
}

}  // namespace
}  // namespace weft
