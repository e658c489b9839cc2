// Several threads at one task: the first wins, and everything is delivered once.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "test/support/loop_thread.hpp"
#include "test/support/manual_executor.hpp"
#include "test/support/slow.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/sched/pool.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/wait/shield.hpp"

using namespace std::chrono_literals;

namespace {

using weft::managed_handle;
using weft::managed_status;
using weft::task_manager;
using weft::testing::loop_thread;

const int managed_rounds = weft::testing::slow ? 200 : 1'500;

// One task a round, which suspends three times; four threads cancel, kill, time out and resume it.
class all_at_one : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(kinds, all_at_one, ::testing::Bool(), [](const auto& info) {
    return std::string(info.param ? "coroutine" : "fiber");
});

TEST_P(all_at_one, end_a_task_once_and_call_its_hooks_once) {
    loop_thread there;
    task_manager<> m({.on = there.loop(), .start = weft::steady_now(), .grace = 0s});
    std::atomic<std::uint64_t> id{0};
    std::atomic<bool> over{false};
    std::atomic<int> hooks{0}, ends{0};
    const auto end = [&](auto how) {
        for (std::uint64_t last = 0; !over;) {
            const std::uint64_t now = id;
            if (now == last || now == 0) {
                std::this_thread::yield();
                continue;
            }
            last = now;
            how(now);
        }
    };
    std::thread a(end, [&](std::uint64_t i) { ends += !m.cancel(i) ? 1 : 0; });
    std::thread b(end, [&](std::uint64_t i) { ends += !m.kill(i) ? 1 : 0; });
    std::thread c(end, [&](std::uint64_t i) {
        m.set_time_limit(i, m.now());
        m.tick(m.now());
    });
    std::thread d(end, [&](std::uint64_t i) {
        for (int n = 0; n < 3; ++n) m.resume(i, n);
    });
    int done = 0, late = 0, ended = 0;
    for (int round = 0; round < managed_rounds; ++round) {
        const auto fiber = [] {
            for (int n = 0; n < 3; ++n) weft::this_managed::suspend<int>();
        };
        const auto coroutine = []() -> weft::task<> {
            for (int n = 0; n < 3; ++n) co_await weft::this_managed::async_suspend<int>();
        };
        const auto h = GetParam() ? m.spawn_with_handle(coroutine) : m.spawn_with_handle(fiber);
        m.on_finish(*h, [&] { ++hooks; });
        id = h->id();
        // It may have been left alone.
        std::this_thread::yield();
        if (round % 8 == 0) m.kill(h->id());
        const auto how = h->join();
        EXPECT_TRUE(how);
        done += *how == managed_status::done ? 1 : 0;
        late += *how == managed_status::timed_out ? 1 : 0;
        ++ended;
        EXPECT_EQ(hooks, ended) << "before who joins is woken";
    }
    over = true;
    a.join(), b.join(), c.join(), d.join();
    EXPECT_EQ(hooks, managed_rounds);
    const auto s = m.stats();
    EXPECT_EQ(s.done_count + s.cancelled_count + s.killed_count + s.timed_out_count,
              static_cast<std::uint64_t>(managed_rounds));
    EXPECT_EQ(s.done_count, static_cast<std::uint64_t>(done));
    EXPECT_EQ(s.timed_out_count, static_cast<std::uint64_t>(late));
    m.check();
}

TEST(manager_races, spawns_from_many_threads_all_end) {
    loop_thread x, y;
    task_manager<> m({.timers = &x.loop()});
    constexpr int thread_count = 4;
    const int each = weft::testing::slow ? 100 : 1'000;
    std::atomic<int> ran{0}, gone{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i)
        threads.emplace_back([&, i] {
            std::minstd_rand random(static_cast<unsigned>(i + 1));
            std::vector<std::uint64_t> mine;
            for (int n = 0; n < each; ++n) {
                weft::loop& on = random() % 2 == 0 ? x.loop() : y.loop();
                const auto id = m.spawn(
                    [&] {
                        ++ran;
                        const std::shared_ptr<void> end(nullptr, [&](void*) { ++gone; });
                        weft::this_fiber::sleep_for(10s);
                    },
                    {.on = on, .timeout = std::chrono::milliseconds(random() % 20)});
                mine.push_back(*id);
                const std::uint64_t some = mine[random() % mine.size()];
                switch (random() % 4) {
                    case 0:
                        m.kill(some);
                        break;
                    case 1:
                        m.cancel(some);
                        break;
                    case 2:
                        m.set_time_limit(some, 1ms);
                        break;
                    default:
                        static_cast<void>(m.find(some));
                }
                if (n % 64 == 0) m.for_each([](const managed_handle<>& h) { h.status(); });
            }
        });
    for (auto& t : threads) t.join();
    EXPECT_TRUE(m.wait_until_idle(weft::after(weft::steady_now(), 60s)));
    EXPECT_EQ(ran, gone);
    m.check();
    EXPECT_EQ(m.stats().deadline_count, 0u);
}

TEST(manager_races, all_tasks_of_a_pool_are_killed) {
    weft::pool p({.thread_count = 2});
    std::atomic<int> gone{0};
    {
        task_manager<> m({.on = p});
        const int count = weft::testing::slow ? 100 : 1'000;
        for (int i = 0; i < count; ++i) {
            const auto body = [&gone]() -> weft::task<> {
                const std::shared_ptr<void> end(nullptr, [&gone](void*) { ++gone; });
                for (;;) co_await weft::sleep_for(1ms);
            };
            const auto id = i % 2 == 0 ? m.spawn(body) : m.spawn([&gone] {
                const std::shared_ptr<void> end(nullptr, [&gone](void*) { ++gone; });
                for (;;) weft::this_fiber::sleep_for(1ms);
            });
            if (i % 3 != 0) m.kill(*id);
        }
        m.stop_all(weft::stop_reason::shutdown, 0s);
        EXPECT_TRUE(m.wait_until_idle(weft::after(weft::steady_now(), 60s)));
        EXPECT_EQ(m.stats().killed_count, static_cast<std::uint64_t>(count));
    }
}

TEST(manager_races, manager_is_destroyed_while_its_tasks_run_elsewhere) {
    loop_thread there;
    for (int round = 0; round < 50; ++round) {
        std::atomic<int> gone{0};
        {
            task_manager<> m({.on = there.loop(), .timers = &there.loop()});
            for (int i = 0; i < 10; ++i)
                ASSERT_TRUE(m.spawn(
                    [&] {
                        const std::shared_ptr<void> end(nullptr, [&](void*) { ++gone; });
                        for (;;) weft::this_fiber::yield();
                    },
                    {.timeout = 1h}));
        }
        EXPECT_LE(gone, 10);
    }
}

// -- a task that has left its function, and whose hooks run --------------------------------------

class hooks_under_way : public ::testing::TestWithParam<bool> {
protected:
    template <class M>
    static managed_handle<> spawn(M& m, weft::spawn_options o = {}) {
        if (GetParam())
            return m.spawn_with_handle([]() -> weft::task<> { co_return; }, std::move(o)).value();
        return m.spawn_with_handle([] {}, std::move(o)).value();
    }
};
INSTANTIATE_TEST_SUITE_P(kinds, hooks_under_way, ::testing::Bool(), [](const auto& info) {
    return std::string(info.param ? "coroutine" : "fiber");
});

TEST_P(hooks_under_way, are_not_disturbed_by_a_kill) {
    weft::loop l;
    task_manager<> m({.on = l});
    const auto h = spawn(m);
    std::error_code killed, cancelled;
    ASSERT_FALSE(m.on_finish(h, [&] {
        killed = m.kill(h.id());
        cancelled = m.cancel(h.id());
    }));
    l.run_until_idle();
    EXPECT_EQ(killed, weft::manager_errc::already_stopping);
    EXPECT_EQ(cancelled, weft::manager_errc::already_stopping);
    EXPECT_EQ(h.status(), managed_status::done);
}

TEST_P(hooks_under_way, are_not_disturbed_by_kills_of_another_thread) {
    weft::loop l;
    task_manager<> m({.on = l});
    std::atomic<std::uint64_t> id{0};
    std::atomic<bool> over{false};
    std::thread killer([&] {
        while (!over) m.kill(id);
    });
    const int rounds = weft::testing::slow ? 1'000 : 10'000;
    for (int round = 0; round < rounds; ++round) {
        const auto h = spawn(m);
        id = h.id();
        l.run_until_idle();
        EXPECT_TRUE(h.over());
    }
    over = true;
    killer.join();
    l.run_until_idle();
    EXPECT_EQ(m.live_count(), 0u);
}

TEST_P(hooks_under_way, are_not_disturbed_by_a_deadline) {
    weft::loop l;
    task_manager<> m({.on = l, .start = weft::time_point{}, .grace = 0s});
    const auto h = spawn(m, {.timeout = 10ms});
    std::atomic<bool> in{false}, out{false};
    ASSERT_FALSE(m.on_finish(h, [&] {
        in = true;
        while (!out) std::this_thread::yield();
    }));
    std::thread timer([&] {
        while (!in) std::this_thread::yield();
        m.tick(weft::time_point(1s));
        out = true;
    });
    l.run_until_idle();
    timer.join();
    EXPECT_EQ(h.status(), managed_status::done);
}

// -- a task that migrates from one executor to another
// ---------------------------------------------

// It never waits, and what it catches does not help it.
weft::task<> goes_to_and_fro(weft::executor& a, weft::scheduler& b, std::atomic<int>& gone) {
    const std::shared_ptr<void> end(nullptr, [&](void*) { ++gone; });
    for (;;) {
        try {
            co_await weft::resume_on(a);
            co_await weft::resume_on(b);
        } catch (...) {
        }
    }
}

TEST(manager_races, kill_follows_a_task_that_keeps_migrating) {
    weft::pool p({.thread_count = 2});
    loop_thread there;
    std::atomic<int> gone{0};
    int begun = 0;
    {
        task_manager<> m({.on = p});
        for (int round = 0; round < (weft::testing::slow ? 10 : 50); ++round) {
            for (int i = 0; i < 2; ++i, ++begun)
                ASSERT_TRUE(m.spawn(i == 0 ? goes_to_and_fro(p.worker(0), p.worker(1), gone)
                                           : goes_to_and_fro(there.loop(), p, gone)));
            for (int n = 0; n < round % 7; ++n) std::this_thread::yield();
            m.for_each([&](const managed_handle<>& h) { m.kill(h.id()); });
            ASSERT_TRUE(m.wait_until_idle(weft::after(weft::steady_now(), 60s)))
                << "round " << round;
        }
        EXPECT_EQ(m.stats().killed_count, static_cast<std::uint64_t>(begun));
    }
}

// The kill finds it on its way, from which it comes to a wait that no stop ends.
TEST(manager_races, kill_reaches_a_task_where_its_migration_ends) {
    weft::loop here, there;
    task_manager<> m({.on = here});
    bool gone = false;
    const auto h = m.spawn_with_handle([&]() -> weft::task<> {
                        const std::shared_ptr<void> end(nullptr, [&](void*) { gone = true; });
                        co_await weft::resume_on(there);
                        const weft::shield from_stops;
                        co_await weft::this_managed::async_suspend<int>();
                    }).value();
    here.run_until_idle();
    EXPECT_FALSE(m.kill(h.id()));
    there.run_until_idle();
    EXPECT_TRUE(gone);
    EXPECT_TRUE(h.over());
}

// Its first turn is lost with the executor; so its state is destroyed, and it is done.
TEST(manager_races, unstarted_coroutine_is_killed_with_its_executor) {
    weft::testing::manual_executor here;
    task_manager<> m({.on = here});
    auto had = std::make_shared<int>();
    const auto h =
        m.spawn_with_handle([](std::shared_ptr<int>) -> weft::task<> { co_return; }(had)).value();
    EXPECT_EQ(had.use_count(), 2);
    here.drop_all();
    EXPECT_EQ(had.use_count(), 1);
    EXPECT_TRUE(h.over());
    EXPECT_EQ(h.status(), managed_status::killed);
    EXPECT_EQ(h.reason(), weft::stop_reason::shutdown);
}

// The kill is posted to the executor that the task is about to leave, and which ends then.
TEST(manager_races, kill_follows_a_task_that_left_an_ending_executor) {
    weft::testing::manual_executor here;
    weft::loop there;
    task_manager<> m({.on = here});
    bool gone = false;
    const auto h = m.spawn_with_handle([&]() -> weft::task<> {
                        const std::shared_ptr<void> end(nullptr, [&](void*) { gone = true; });
                        co_await weft::resume_on(there);
                        const weft::shield from_stops;
                        co_await weft::this_managed::async_suspend<int>();
                    }).value();
    here.in_next_strike_off([&] { EXPECT_FALSE(m.kill(h.id())); });
    EXPECT_TRUE(here.run_one());
    EXPECT_EQ(here.pending_count(), 1u) << "the kill";
    here.drop_all();
    there.run_until_idle();
    EXPECT_TRUE(gone);
    EXPECT_TRUE(h.over());
    m.resume(h.id(), 1);  // if it is still live
    there.run_until_idle();
}

}  // namespace
