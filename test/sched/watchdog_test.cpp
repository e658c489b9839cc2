#include "weft/sched/watchdog.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/sched/pool.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

// What was reported to the handler, of the test that runs.
struct told_turns {
    std::mutex lock;
    std::vector<stall_info> all;

    static told_turns& present() {
        static told_turns t;
        return t;
    }
    told_turns& cleared() {
        const std::lock_guard held(lock);
        all.clear();
        return *this;
    }
    std::vector<stall_info> copy() {
        const std::lock_guard held(lock);
        return all;
    }
    static void hear(const stall_info& t) {
        told_turns& p = present();
        const std::lock_guard held(p.lock);
        p.all.push_back(t);
    }
};

TEST(watchdog, names_the_fiber_that_blocks_its_thread) {
    told_turns& told = told_turns::present().cleared();
    loop l;
    {
        const watchdog w(l, 20ms, told_turns::hear);
        fiber holds([] { std::this_thread::sleep_for(1500ms); }, {.name = "hog", .on = l});
        const fiber::id id = holds.get_id();
        holds.detach();
        l.run();
        const auto all = told.copy();
        ASSERT_EQ(all.size(), 1u) << "once for a turn";
        EXPECT_EQ(std::string(all[0].kind), "fiber");
        EXPECT_EQ(all[0].id, id);
        EXPECT_EQ(std::string(all[0].name), "hog");
        EXPECT_GE(all[0].lasted, 20ms);
        EXPECT_LT(all[0].lasted, 1500ms);
    }
    fiber([] {}, {.on = l}).detach();
    l.run();  // it may run unwatched afterwards
}

// In each round the first check most likely comes while the first turn runs.
TEST(watchdog, is_silent_about_a_turn_in_progress_at_its_first_check) {
    told_turns& told = told_turns::present().cleared();
    for (int round = 0; round != 20; ++round) {
        loop l;
        const watchdog w(l, 1h, told_turns::hear);
        l.post([] {
            for (const time_point until = steady_now() + 1ms; steady_now() < until;)
                std::this_thread::yield();
        });
        l.run();
    }
    EXPECT_TRUE(told.copy().empty());
}

// The watchdog checks rarely only where nothing runs: here other flows have run all the time
// before.
TEST(watchdog, reports_within_two_thresholds_on_a_busy_loop) {
    told_turns& told = told_turns::present().cleared();
    loop l;
    const watchdog w(l, 2ms, told_turns::hear);
    duration until_told = 0s;
    const auto pass = [&](duration d, auto done) {
        const time_point begin = steady_now();
        while (!done() && steady_now() < begin + d) std::this_thread::yield();
        return steady_now() - begin;
    };
    fiber busy(
        [&] {
            for (const time_point until = steady_now() + 300ms; steady_now() < until;) {
                static_cast<void>(pass(200us, [] { return false; }));
                this_fiber::yield();
            }
            told.cleared();  // drops a short turn whose thread was kept waiting
            until_told = pass(10s, [&] { return !told.copy().empty(); });
        },
        {.on = l});
    l.run();
    EXPECT_LT(until_told, 250ms) << "two limits, and what a busy machine adds";
}

TEST(watchdog, reports_a_function_that_runs_outside_any_flow) {
    told_turns& told = told_turns::present().cleared();
    loop l;
    const watchdog w(l, 20ms, told_turns::hear);
    l.post([] { std::this_thread::sleep_for(1300ms); });
    l.run();
    const auto all = told.copy();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].kind, nullptr);
}

TEST(watchdog, is_silent_about_fibers_that_yield_or_wait) {
    told_turns& told = told_turns::present().cleared();
    loop l;
    const watchdog w(l, 200ms, told_turns::hear);
    std::atomic<bool> over = false;
    fiber yields(
        [&] {
            while (!over) this_fiber::yield();
        },
        {.on = l});
    fiber waits(
        [&] {
            this_fiber::sleep_for(700ms);
            over = true;
        },
        {.on = l});
    l.run();
    EXPECT_TRUE(told.copy().empty());
}

TEST(watchdog, of_a_pool_names_the_fiber_that_blocks_a_worker) {
    told_turns& told = told_turns::present().cleared();
    pool p({.thread_count = 2, .stall_threshold = 20ms, .on_stall = told_turns::hear});
    spawn([] { std::this_thread::sleep_for(1300ms); }, {.name = "busy", .on = p.worker(1)}).get();
    const auto all = told.copy();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(std::string(all[0].name), "busy");
}

TEST(watchdog, prints_a_line) {
    stall_info t;
    t.kind = "fiber";
    t.id = 7;
    std::string("ann").copy(t.name, sizeof t.name);
    t.lasted = 250ms;
    ::testing::internal::CaptureStderr();
    watchdog::print(t);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "weft: fiber 7 \"ann\" has held its thread for 250 ms; nothing else runs there\n");
    t.kind = nullptr;
    ::testing::internal::CaptureStderr();
    watchdog::print(t);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "weft: a function has held its thread for 250 ms; nothing else runs there\n");
}

}  // namespace
}  // namespace weft
