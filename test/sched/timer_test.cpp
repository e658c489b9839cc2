#include "weft/sched/timer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "test/sched/manual_driver.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/wait/context_local.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::loop_thread;
using testing::manual_driver;
using testing::virtual_loop;
using ints = std::vector<int>;
using durations = std::vector<duration>;

struct timed : ::testing::Test {
    manual_driver::record time;
    loop l{std::make_unique<manual_driver>(time)};

    // Lets time pass, tick by tick or in one jump.
    void pass(duration d) {
        time.now += d;
        l.run_until_idle();
    }
};
using timer_test = timed;

TEST_F(timer_test, calls_once_at_its_deadline_and_not_before) {
    ints seen;
    timer t(l, 5ms, [&] { seen.push_back(1); });
    l.run_until_idle();
    pass(5ms - 1ns);
    EXPECT_EQ(seen, ints{});
    pass(1ns);
    EXPECT_EQ(seen, ints{1});
    pass(1h);
    EXPECT_EQ(seen, ints{1});
    EXPECT_FALSE(t.stop()) << "there was none to come";
}

TEST_F(timer_test, that_is_already_due_does_not_wait_for_a_tick) {
    timer other;
    for (int i = 0; i < 2; ++i) {
        time.now += 5s + 300us;
        int calls = 0;
        timer zero(l, 0ms, [&] { ++calls; });
        timer soon(l, 1ns, [&] { calls += 10; });
        l.run_until_idle();
        EXPECT_EQ(calls, 1);
        EXPECT_GT(l.next_deadline(), time.now);
        pass(1ms);
        EXPECT_EQ(calls, 11);
        other = timer(l, 1h, [] {});
        l.run_until_idle();
    }
}

TEST_F(timer_test, calls_in_the_order_of_the_deadlines_and_never_early) {
    std::mt19937 random(7);
    std::vector<int> wanted;
    std::vector<timer> timers;
    ints seen;
    int early = 0;
    for (int i = 0; i < 1000; ++i) {
        const int at = static_cast<int>(random() % 100000);
        wanted.push_back(at);
        timers.emplace_back(l, std::chrono::milliseconds(at), [&, at] {
            seen.push_back(at);
            early += l.now() < time_point(std::chrono::milliseconds(at));
        });
    }
    std::ranges::sort(wanted);
    for (int i = 0; i < 1000; ++i) pass(73ms);
    EXPECT_LT(seen.size(), 1000u);
    pass(24h);
    EXPECT_EQ(seen, wanted);
    EXPECT_EQ(early, 0);
}

TEST_F(timer_test, that_is_periodic_keeps_its_phase_and_skips_missed_calls) {
    durations seen;
    timer t(l, 0ms, 10ms, [&] { seen.push_back(time.now.time_since_epoch()); });
    l.run_until_idle();
    pass(0ms);
    pass(10ms);
    pass(13ms);
    pass(7ms);
    pass(65ms);
    pass(4ms);
    pass(1ms);
    EXPECT_EQ(seen, (durations{0ms, 10ms, 23ms, 30ms, 95ms, 100ms}));
    EXPECT_TRUE(t.stop());
    pass(1h);
    EXPECT_EQ(seen.size(), 6u);
}

TEST_F(timer_test, with_any_start_time_keeps_its_period) {
    time.now += 1h;
    for (const time_point first :
         {time_point::min(), time_point::min() + 1ns, time_point(), time_point(-1ns)}) {
        ints seen;
        int calls = 0;
        const timer t(l, first, 1s, [&] { ++calls; });
        pass(0ms);  // those of the past are one
        for (int n = 0; n != 3; ++n) {
            seen.push_back(calls);
            pass(1s);
        }
        EXPECT_EQ(seen, (ints{1, 2, 3}));
    }
    int calls = 0;
    const timer last(l, never, 1s, [&] { ++calls; });
    const timer far(l, never - 1ns, duration::max(), [&] { ++calls; });
    const timer long_one(l, time_point::min(), duration::max(), [&] { ++calls; });
    pass(1h);
    EXPECT_EQ(calls, 1);
}

TEST_F(timer_test, calls_first_at_a_time_point_of_the_system_clock) {
    int calls = 0;
    const timer t(l, std::chrono::system_clock::now() + 1h, [&] { ++calls; });
    pass(59min);
    EXPECT_EQ(calls, 0);
    pass(1min);
    EXPECT_EQ(calls, 1);
}

TEST_F(timer_test, stopped_never_calls) {
    int calls = 0;
    timer t(l, 5ms, [&] { ++calls; });
    l.run_until_idle();
    EXPECT_TRUE(t.stop());
    EXPECT_FALSE(t.stop());
    pass(1h);
    EXPECT_EQ(calls, 0);
}

TEST_F(timer_test, stopped_between_its_deadline_and_the_call_never_calls) {
    int calls = 0;
    timer t(l, 5ms, [&] { ++calls; });
    l.run_until_idle();
    time.now += 1h;
    EXPECT_TRUE(t.stop());
    l.run_until_idle();
    EXPECT_EQ(calls, 0);
}

TEST_F(timer_test, destroyed_never_calls_and_destroys_its_function) {
    auto kept = std::make_shared<int>();
    {
        timer t(l, 5ms, [kept] { ++*kept; });
        l.run_until_idle();
        EXPECT_EQ(kept.use_count(), 2);
    }
    l.run_until_idle();
    EXPECT_EQ(kept.use_count(), 1);
    pass(1h);
    EXPECT_EQ(*kept, 0);
}

TEST_F(timer_test, may_be_stopped_by_its_own_function) {
    int calls = 0;
    std::optional<timer> t;
    t.emplace(l, 1ms, 1ms, [&] {
        if (++calls == 3) {
            EXPECT_TRUE(t->stop());
            EXPECT_FALSE(t->stop_and_join());
        }
    });
    l.run_until_idle();
    for (int i = 0; i < 10; ++i) pass(1ms);
    EXPECT_EQ(calls, 3);
}

TEST_F(timer_test, may_be_destroyed_by_its_own_function) {
    for (const duration period : {duration(0), duration(1ms)}) {
        auto kept = std::make_shared<int>();
        auto t = std::make_unique<timer>();
        *t = timer(l, l.now() + 1ms, period, [kept, &t] {
            const auto own = kept;
            t.reset();
            ++*own;
        });
        l.run_until_idle();
        for (int i = 0; i < 10; ++i) pass(1ms);
        EXPECT_EQ(*kept, 1);
        EXPECT_EQ(kept.use_count(), 1);
    }
}

TEST_F(timer_test, may_start_others_in_its_function) {
    ints seen;
    timer inner;
    timer outer(l, 1ms, [&] {
        seen.push_back(1);
        inner = timer(l, 1ms, [&] { seen.push_back(2); });
    });
    l.run_until_idle();
    pass(1ms);
    EXPECT_EQ(seen, ints{1});
    pass(1ms);
    EXPECT_EQ(seen, (ints{1, 2}));
}

TEST_F(timer_test, runs_outside_any_flow_on_its_loop) {
    bool right = false;
    fiber f([&] { this_fiber::sleep_for(1h); }, {.on = l});
    timer t(l, 1ms, [&] { right = l.running_in_this_thread() && current_flow() == nullptr; });
    l.run_until_idle();
    pass(1ms);
    EXPECT_TRUE(right);
    f.request_stop();
    l.run_until_idle();
    f.join();
}

TEST_F(timer_test, sees_the_bindings_of_its_creator) {
    context_local<int> user(0);
    ints seen;
    timer t;
    {
        auto bound = user.bind(7);
        t = timer(l, 1ms, 1ms, [&] { seen.push_back(*user); });
    }
    l.run_until_idle();
    auto other = user.bind(8);
    pass(1ms);
    pass(1ms);
    EXPECT_EQ(seen, (ints{7, 7}));
    EXPECT_EQ(*user, 8);
}

TEST_F(timer_test, accepts_huge_and_negative_durations) {
    ints seen;
    timer far(l, std::chrono::hours::max(), [&] { seen.push_back(1); });
    timer past(l, -1h, [&] { seen.push_back(2); });
    timer once(l, 1ms, std::chrono::hours::max(), [&] { seen.push_back(3); });
    l.run_until_idle();
    pass(24h * 36500);
    EXPECT_EQ(seen, (ints{2, 3}));
}

TEST_F(timer_test, moved_to_itself_is_unchanged) {
    ints seen;
    timer t(l, 1ms, [&] { seen.push_back(1); });
    timer& same = t;
    t = std::move(same);
    pass(1ms);
    EXPECT_EQ(seen, (ints{1}));
}

TEST_F(timer_test, moved_is_the_same_timer) {
    ints seen;
    timer a(l, 1ms, [&] { seen.push_back(1); });
    timer b(std::move(a));
    timer c(l, 1ms, [&] { seen.push_back(2); });
    c = std::move(b);
    EXPECT_FALSE(a.stop());
    EXPECT_FALSE(b.stop_and_join());
    l.run_until_idle();
    pass(1h);
    EXPECT_EQ(seen, ints{1}) << "the one that was assigned to has ended";
}

// -- other threads ----------------------------------------------------------------------------

TEST(timer_threads, stop_and_join_waits_for_the_call_that_runs) {
    for (int i = 0; i < 50; ++i) {
        loop_thread there;
        std::atomic<bool> began{false};
        std::atomic<bool> joining{false};
        std::atomic<bool> over{false};
        timer t(there.loop(), 0ms, 1ms, [&] {
            began = true;
            while (!joining) std::this_thread::yield();
            for (int n = 0; n < 20; ++n) std::this_thread::yield();
            over = true;
        });
        while (!began) std::this_thread::yield();
        joining = true;
        t.stop_and_join();
        EXPECT_TRUE(over);
        over = false;
        EXPECT_FALSE(t.stop_and_join());
        EXPECT_FALSE(over) << "none came after it";
    }
}

TEST(timer_threads, stop_and_join_suspends_only_the_calling_fiber) {
    loop_thread there;
    loop here;
    std::atomic<bool> began{false};
    std::atomic<bool> release{false};
    timer t(there.loop(), 0ms, [&] {
        began = true;
        while (!release) std::this_thread::yield();
    });
    while (!began) std::this_thread::yield();
    fiber joiner([&] { t.stop_and_join(); }, {.on = here});
    fiber other([&] { release = true; }, {.on = here});
    here.run();
    joiner.join();
    other.join();
}

TEST(timer_threads, stop_and_join_waits_for_the_call_even_in_a_stopped_fiber) {
    loop_thread there;
    loop here;
    std::atomic<bool> began{false};
    std::atomic<bool> release{false};
    std::atomic<bool> over{false};
    bool joined = false;
    timer t(there.loop(), 0ms, [&] {
        began = true;
        while (!release) std::this_thread::yield();
        over = true;
    });
    while (!began) std::this_thread::yield();
    fiber joiner(
        [&] {
            current_flow()->request_stop(stop_reason::user);
            t.stop_and_join();
            joined = over;
            this_fiber::sleep_for(1h);
        },
        {.on = here});
    fiber other([&] { release = true; }, {.on = here});
    here.run();
    EXPECT_TRUE(joined);
    EXPECT_TRUE(joiner.join().is_stopped());
    other.join();
}

// Another fiber has its stack when the call is done.
TEST(timer_threads, stop_and_join_in_a_killed_fiber_stops_using_its_stack) {
    loop_thread there;
    std::atomic<bool> began{false};
    std::atomic<bool> release{false};
    timer t(there.loop(), 0ms, [&] {
        began = true;
        while (!release) std::this_thread::yield();
    });
    while (!began) std::this_thread::yield();
    {
        loop here;
        fiber([&] { t.stop_and_join(); }, {.on = here}).detach();
        here.run_until_idle();
    }
    loop here;
    fiber next(
        [&] {
            std::array<char, 8192> own;
            own.fill('x');
            release = true;
            t.stop_and_join();
            EXPECT_EQ(std::ranges::count(own, 'x'), std::ssize(own));
        },
        {.on = here});
    here.run();
    next.join();
}

TEST(timer_threads, stop_that_returned_true_never_calls) {
    loop_thread there;
    int prevented = 0;
    int called = 0;
    for (int i = 0; i < 2000; ++i) {
        std::atomic<int> calls{0};
        timer t(there.loop(), i % 3 == 0 ? 1ms : 0ms, [&] { ++calls; });
        for (int n = i % 7; n > 0; --n) std::this_thread::yield();
        if (t.stop_and_join()) {
            EXPECT_EQ(calls, 0);
            ++prevented;
        } else {
            EXPECT_EQ(calls, 1);
            ++called;
        }
    }
    EXPECT_EQ(prevented + called, 2000);
    EXPECT_GT(prevented, 0);
}

TEST(timer_death, outlives_its_loop) {
    const auto outlived = [] {
        timer t;
        loop l;
        t = timer(l, 1h, [] {});
        l.run_until_idle();
    };
    EXPECT_DEATH(outlived(), "weft: destruction of a loop with timers in it");
}

}  // namespace
}  // namespace weft
