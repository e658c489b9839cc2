// Waits on a shared stack, for every kind of awaited object: three fibers take turns on one stack,
// so that each is copied out while it waits, and check their locals when they are back.
#include "weft/wait/detail/off_stack.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "test/support/counted.hpp"
#include "test/support/on_stack.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/barrier.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/counting_semaphore.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/select.hpp"
#include "weft/task/shared_task.hpp"
#include "weft/task/task.hpp"
#include "weft/task/when_all.hpp"
#include "weft/wait/from_callback.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace std::chrono_literals;
using weft::fiber;

class off_stack : public ::testing::Test {
protected:
    static constexpr int fiber_count = 3;

    fiber begin(std::function<void()> f) { return fiber(std::move(f), options()); }
    weft::fiber_options options() { return {.on = loop_, .shared = &group_}; }

    // wait(i) in each of the fibers, twice, with a check of locals of several sizes after each.
    void each(std::function<void(int)> wait) {
        int looked = 0;
        std::vector<fiber> all;
        for (int i = 0; i != fiber_count; ++i)
            all.push_back(begin([&looked, &wait, i] {
                std::array<int, 200> many;
                many.fill(i);
                std::string text(10, static_cast<char>('a' + i));  // within the object itself
                for (int n = 0; n != 2; ++n) {
                    wait(i);
                    for (const int x : many) EXPECT_EQ(x, i);
                    EXPECT_EQ(text, std::string(10, static_cast<char>('a' + i)));
                    ++looked;
                }
            }));
        loop_.run();
        for (fiber& f : all) EXPECT_FALSE(f.join().is_stopped());
        EXPECT_EQ(looked, 2 * fiber_count);
        EXPECT_GT(group_.stats().copy_count, 0u);
    }

    weft::shared_stack_group group_;
    weft::loop loop_;
    int last_ = 0;
};

weft::task<int> gives_later(int n) {
    co_await weft::sleep_for(1ms);
    co_return n;
}
weft::task<int> throws_later() {
    co_await weft::sleep_for(1ms);
    throw std::runtime_error("later");
}
weft::task<> ends_later() { co_await weft::sleep_for(1ms); }

weft::shared_task<int> shared_later(int n) { co_return co_await gives_later(n); }

TEST_F(off_stack, sleeps) {
    each([](int) { weft::this_fiber::sleep_for(1ms); });
}

TEST_F(off_stack, yields) {
    each([](int) { weft::this_fiber::yield(); });
}

TEST_F(off_stack, waits_for_a_mutex) {
    weft::mutex m;
    each([&](int) {
        const std::lock_guard held(m);
        weft::this_fiber::sleep_for(1ms);
    });
}

TEST_F(off_stack, waits_for_a_mutex_with_a_time_limit) {
    weft::mutex m;
    weft::auto_reset_event all_tried;
    fiber owner = begin([&] {
        const std::lock_guard held(m);
        all_tried.wait();
    });
    each([&](int) {
        EXPECT_FALSE(m.try_lock_for(1ms));
        if (++last_ == 2 * fiber_count) all_tried.set();
    });
}

TEST_F(off_stack, sends_and_receives) {
    weft::channel<std::string> there(0);
    weft::channel<std::string> back(0);
    fiber echo(
        [&] {
            for (std::string s : there) ASSERT_TRUE(back.send(std::move(s)));
        },
        {.on = loop_});
    each([&](int i) {
        static weft::mutex turn;
        const std::lock_guard held(turn);
        const std::string said(100, static_cast<char>('0' + i));
        ASSERT_TRUE(there.send(said));
        EXPECT_EQ(back.recv().value(), said);
        if (++last_ == 2 * fiber_count) there.close();
    });
}

TEST_F(off_stack, waits_for_an_event_a_semaphore_and_a_barrier) {
    weft::auto_reset_event event;
    weft::counting_semaphore<> permits(0);
    weft::barrier all(fiber_count);
    fiber giver(
        [&] {
            for (int n = 0; n != 2 * fiber_count; ++n) {
                weft::this_fiber::sleep_for(1ms);
                event.set();
                permits.release();
            }
        },
        {.on = loop_});
    each([&](int) {
        event.wait();
        permits.acquire();
        all.arrive_and_wait();
    });
}

TEST_F(off_stack, waits_for_a_condition) {
    weft::mutex m;
    weft::condition_variable changed;
    int turn = 0;
    each([&](int i) {
        std::unique_lock lock(m);
        changed.wait(lock, [&] { return turn % fiber_count == i; });
        ++turn;
        changed.notify_all();
    });
}

TEST_F(off_stack, waits_for_a_condition_with_a_stop_token) {
    weft::mutex m;
    weft::condition_variable changed;
    weft::stop_source source;
    fiber stopper(
        [&] {
            weft::this_fiber::sleep_for(5ms);
            source.request_stop(weft::stop_reason::user);
        },
        {.on = loop_});
    each([&](int) {
        std::unique_lock lock(m);
        EXPECT_FALSE(changed.wait(lock, source.get_token(), [] { return false; }));
    });
}

TEST_F(off_stack, waits_for_a_fiber_and_gets_its_value) {
    each([&](int i) {
        // The child is on the same stack, and what it returns is not.
        auto child = weft::spawn(
            [i] {
                weft::this_fiber::sleep_for(1ms);
                return std::string(100, static_cast<char>('0' + i));
            },
            options());
        EXPECT_EQ(child.get(), std::string(100, static_cast<char>('0' + i)));
    });
}

TEST_F(off_stack, waits_for_tasks) {
    each([&](int i) {
        EXPECT_EQ(weft::await(gives_later(i)), i);
        weft::await(ends_later());
        EXPECT_THROW(weft::await(throws_later()), std::runtime_error);
        const auto [a, b] = weft::await(weft::when_all(gives_later(i), gives_later(i + 1)));
        EXPECT_EQ(a + b, 2 * i + 1);
    });
}

TEST_F(off_stack, waits_for_a_shared_task) {
    each([&](int i) {
        const weft::shared_task<int> t = shared_later(i);
        EXPECT_EQ(weft::await(t), i);
        EXPECT_EQ(weft::await(t), i);
    });
}

TEST_F(off_stack, selects) {
    weft::channel<int> numbers(0);
    weft::channel<int> never_any(0);
    fiber giver(
        [&] {
            for (int n = 0; n != 2 * fiber_count; ++n) {
                weft::this_fiber::sleep_for(1ms);
                ASSERT_TRUE(numbers.send(7));
            }
        },
        {.on = loop_});
    each([&](int) {
        int got = 0;
        EXPECT_EQ(weft::select(weft::on_recv(never_any, [](int) {}),
                               weft::on_recv(numbers, [&](int n) { got = n; })),
                  1u);
        EXPECT_EQ(got, 7);
    });
}

TEST_F(off_stack, waits_for_a_blocking_call_and_a_callback) {
    std::vector<std::thread> others;
    weft::blocking_pool threads;  // its own, which go with it
    each([&](int i) {
        const auto call = [i] {
            std::this_thread::sleep_for(1ms);
            return i;
        };
        EXPECT_EQ(weft::run_blocking(call, threads), i);
        const auto n = weft::await_callback<int>([&](auto done) {
            others.emplace_back([done = std::move(done), i]() mutable { done(i); });
        });
        EXPECT_EQ(n.value(), i);
    });
    for (std::thread& t : others) t.join();
}

TEST_F(off_stack, is_stopped_and_times_out) {
    weft::auto_reset_event silent;
    std::vector<fiber> all;
    for (int i = 0; i != fiber_count; ++i) all.push_back(begin([&] { silent.wait(); }));
    fiber stopper(
        [&] {
            weft::this_fiber::sleep_for(2ms);
            for (fiber& f : all) f.request_stop();
        },
        {.on = loop_});
    loop_.run();
    for (fiber& f : all) EXPECT_TRUE(f.join().is_stopped());
    each([&](int) {
        const weft::timeout_scope limit(1ms);
        EXPECT_THROW(silent.wait(), weft::stopped);
    });
}

TEST_F(off_stack, unwinds_a_killed_fiber_whose_stack_is_copied_out) {
    int destroyed = 0;
    {
        weft::loop l;
        for (int i = 0; i != fiber_count; ++i)
            fiber(
                [&destroyed] {
                    const weft::testing::counted in_place{destroyed};
                    weft::shield against_stops;
                    weft::this_fiber::sleep_for(1h);
                },
                {.on = l, .shared = &group_})
                .detach();
        l.run_until_idle();
        EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(destroyed, fiber_count);
    EXPECT_EQ(group_.stats().coroutine_count, 0u);
}

TEST_F(off_stack, runs_on_a_worker_of_a_pool) {
    weft::pool p({.thread_count = 2});
    weft::shared_stack_group group;
    int sum = 0;
    {
        std::vector<fiber> all;
        for (int i = 0; i != fiber_count; ++i)
            all.emplace_back(
                [&sum, i] {
                    weft::this_fiber::sleep_for(1ms);
                    sum += i;
                },
                weft::fiber_options{.on = p.worker(0), .shared = &group});
        for (fiber& f : all) f.join();
    }
    EXPECT_EQ(sum, 3);
}

// -- what must not be stored there
// -----------------------------------------------------------------

void in_a_shared_fiber(std::function<void()> f) {
    weft::loop l;
    weft::shared_stack_group group;
    fiber it(std::move(f), {.name = "tenant", .on = l, .shared = &group});
    l.run();
}

TEST(off_stack_death, a_wait_for_a_mutex_on_a_shared_stack) {
    if (!weft::testing::locals_lie_on_the_stack) GTEST_SKIP() << "locals are kept elsewhere";
    EXPECT_DEATH(in_a_shared_fiber([] {
                     weft::mutex m;
                     const std::lock_guard held(m);
                     static_cast<void>(m.try_lock_for(1ms));
                 }),
                 "a wait for something that lies on a shared stack: fiber [0-9]+ \"tenant\"");
}

TEST(off_stack_death, a_select_of_a_channel_on_a_shared_stack) {
    if (!weft::testing::locals_lie_on_the_stack) GTEST_SKIP() << "locals are kept elsewhere";
    EXPECT_DEATH(in_a_shared_fiber([] {
                     weft::channel<int> c;
                     weft::select(weft::on_recv(c, [](int) {}), weft::on_timeout(1ms, [] {}));
                 }),
                 "a select of a channel that lies on a shared stack: fiber [0-9]+ \"tenant\"");
}

TEST(off_stack_death, a_nursery_on_a_shared_stack) {
    if (!weft::testing::locals_lie_on_the_stack) GTEST_SKIP() << "locals are kept elsewhere";
    EXPECT_DEATH(in_a_shared_fiber([] {
                     weft::nursery n;
                     n.spawn([] {});
                 }),
                 "a nursery, or another scope, lies on a shared stack: fiber [0-9]+ \"tenant\"");
}

TEST(off_stack_death, a_fiber_in_a_pool_without_a_named_worker) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // it starts a thread
    EXPECT_DEATH(
        {
            weft::pool p({.thread_count = 1});
            weft::shared_stack_group group;
            fiber it([] {}, {.on = p, .shared = &group});
        },
        "a fiber on a shared stack is begun in a pool: name one of its workers");
}

TEST(off_stack_death, a_wait_in_a_coroutine_on_top_of_it) {
    EXPECT_DEATH(in_a_shared_fiber([] {
                     weft::coroutine<> inner([] { weft::this_fiber::sleep_for(1ms); });
                     inner.resume();
                 }),
                 "a wait of a coroutine that did not resume the caller, or shares its stack");
}

}  // namespace
