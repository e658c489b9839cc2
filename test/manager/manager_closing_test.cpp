// The laws of closing, admission and emptiness: a task that was admitted before the manager closed
// is refused when it enters, or is among those that are ended; and an empty manager had, at one
// point in time, no live task.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "test/support/loop_thread.hpp"
#include "test/support/slow.hpp"
#include "weft/base/errc.hpp"
#include "weft/manager/task_manager.hpp"
#include "weft/sched/pool.hpp"

using namespace std::chrono_literals;

namespace {

using weft::task_manager;
using weft::testing::loop_thread;

// A function that does something when it is moved into its task: between the admission of the task
// and its entry.
struct does_when_moved {
    std::function<void()>* what;

    explicit does_when_moved(std::function<void()>& w) : what(&w) {}
    does_when_moved(does_when_moved&& other) : what(std::exchange(other.what, nullptr)) {
        if (*what) std::exchange(*what, nullptr)();
    }
    void operator()() const { weft::this_fiber::sleep_for(1h); }
};

TEST(manager_closing, refuses_a_spawn_admitted_before_it) {
    weft::loop l;
    task_manager<> m({.on = l});
    std::function<void()> closes = [&] {
        m.stop_all(weft::stop_reason::user, weft::no_timeout);
        EXPECT_EQ(m.live_count(), 1u) << "the one that is being spawned";
    };
    EXPECT_EQ(m.spawn(does_when_moved(closes)).error(), weft::errc::closed);
    EXPECT_EQ(m.live_count(), 0u);
    EXPECT_TRUE(m.wait_until_idle(weft::steady_now()));
    m.restart();
    EXPECT_TRUE(m.spawn([] {}));
    l.run_until_idle();
}

// The destructor waits for a spawn that one of the tasks is at, and has it refused.
TEST(manager_closing, in_the_destructor_refuses_a_spawn_admitted_before_it) {
    loop_thread there;
    for (int round = 0; round < 20; ++round) {
        auto m = std::make_unique<task_manager<>>(weft::manager_options{.on = there.loop()});
        std::atomic<bool> under_way{false}, refused{false};
        std::function<void()> until_closed = [&, &m = *m] {
            under_way = true;
            while (m.spawn([] {})) std::this_thread::yield();
        };
        ASSERT_TRUE(m->spawn([&, &m = *m] {
            refused = m.spawn(does_when_moved(until_closed)).error() == weft::errc::closed;
        }));
        while (!under_way) std::this_thread::yield();
        m.reset();
        EXPECT_TRUE(refused);
    }
}

TEST(manager_closing, leaves_no_task_spawned_concurrently_by_workers) {
    weft::pool p({.thread_count = 3});
    const int rounds = weft::testing::slow ? 5 : 30;
    for (int round = 0; round < rounds; ++round) {
        task_manager<> m({.on = p});
        std::atomic<int> ready{0};
        for (int i = 0; i < 3; ++i)
            ASSERT_TRUE(m.spawn(
                [&] {
                    ++ready;
                    while (m.spawn([] { weft::this_fiber::sleep_for(1h); },
                                   {.launch = weft::launch::dispatch})) {
                    }
                },
                {.on = p.worker(static_cast<unsigned>(i))}));
        while (ready != 3) std::this_thread::yield();
        m.stop_all(weft::stop_reason::user, weft::no_timeout);
        ASSERT_TRUE(m.wait_until_idle(weft::after(weft::steady_now(), 60s)))
            << m.live_count() << " were not asked to stop";
    }
}

// Each starts the next, in a shard that changes with the thread, before it ends.
TEST(manager_closing, never_looks_empty_while_a_task_starts_its_successor) {
    weft::pool p({.thread_count = 4});
    task_manager<> m({.on = p});
    std::atomic<bool> go_on{true};
    std::atomic<unsigned> links{0}, refused{0};
    std::function<void()> link = [&] {
        const unsigned n = links.fetch_add(1);
        if (go_on && !m.spawn([&] { link(); }, {.on = p.worker(n % 4)})) ++refused;
    };
    ASSERT_TRUE(m.spawn([&] { link(); }));
    const unsigned wanted = weft::testing::slow ? 2'000 : 20'000;
    unsigned empty = 0, looks = 0;
    while (links < wanted) {
        empty += m.wait_until_idle(weft::steady_now()) ? 1 : 0;
        ++looks;
    }
    go_on = false;
    EXPECT_TRUE(m.wait_until_idle());
    EXPECT_EQ(empty, 0u) << "of " << looks << " looks";
    EXPECT_EQ(refused, 0u);
}

// The last task ends at any time of the wait for it.
TEST(manager_closing, wakes_the_waiter_when_the_last_task_ends) {
    loop_thread there;
    task_manager<> m({.on = there.loop()});
    std::atomic<bool> go{false};
    const int rounds = weft::testing::slow ? 500 : 5'000;
    for (int round = 0; round < rounds; ++round) {
        go = false;
        ASSERT_TRUE(m.spawn([&] {
            while (!go) std::this_thread::yield();
        }));
        go = true;
        for (int i = round % 300; i != 0; --i) weft::cpu_pause();
        ASSERT_TRUE(m.wait_until_idle(weft::after(weft::steady_now(), 60s))) << "round " << round;
    }
}

TEST(manager_closing, without_tasks_keeps_no_timer) {
    weft::loop l;
    task_manager<> m({.on = l, .timers = &l});
    const weft::time_point before = weft::steady_now();
    l.post([&] { m.stop_all(weft::stop_reason::shutdown, 1h); });
    l.run();
    EXPECT_LT(weft::steady_now() - before, 1min);
}

}  // namespace
