#include "weft/sched/strand.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "test/support/slow.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/sched/timer.hpp"
#include "weft/stop/stop_callback.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/counting_semaphore.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/task/detail/task_flow.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr int strand_rounds = testing::slow ? 200 : 2'000;

struct counts_its_end {
    std::atomic<int>& n;
    ~counts_its_end() { ++n; }
};

TEST(strand, runs_what_is_spawned_on_it_and_returns_results) {
    pool p(2);
    strand s(p);
    EXPECT_EQ(
        spawn([&] { return s.running_in_this_thread() && p.running_in_this_thread(); }, {.on = s})
            .get(),
        true);
    const auto body = [&]() -> task<int> { co_return s.running_in_this_thread() ? 7 : 0; };
    EXPECT_EQ(sync_wait(schedule_on(s, body())), 7);
    EXPECT_FALSE(s.running_in_this_thread());
}

TEST(strand, never_runs_two_at_once) {
    pool p(3);
    int plain = 0;  // no lock, no atomic: a sanitizer detects every fault
    {
        strand s(p);
        std::vector<fiber> all;
        for (int i = 0; i != 8; ++i)
            all.emplace_back(
                [&] {
                    for (int n = 0; n != strand_rounds; ++n) {
                        const int before = plain;
                        plain = before + 1;
                        if (n % 16 == 0) this_fiber::yield();
                    }
                },
                fiber_options{.on = s});
        std::thread outside([&] {
            for (int n = 0; n != strand_rounds; ++n) s.post([&] { ++plain; });
        });
        outside.join();
        for (fiber& f : all) f.join();
        s.wait_until_idle();
    }
    EXPECT_EQ(plain, 9 * strand_rounds);
}

TEST(strand, runs_what_is_posted_in_order) {
    pool p(3);
    strand s(p);
    std::vector<int> seen;
    for (int i = 0; i != strand_rounds; ++i) s.post([&, i] { seen.push_back(i); });
    s.wait_until_idle();
    ASSERT_EQ(seen.size(), static_cast<std::size_t>(strand_rounds));
    for (int i = 0; i != strand_rounds; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(strand, runs_the_children_of_its_flows) {
    pool p(2);
    strand s(p);
    bool inside = false;
    spawn([&] { spawn([&] { inside = s.running_in_this_thread(); }).get(); }, {.on = s}).get();
    EXPECT_TRUE(inside);
}

TEST(strand, runs_in_parallel_with_another_strand) {
    pool p(2);
    strand a(p);
    strand b(p);
    std::latch both(2);  // opens only if two threads come to it at the same time
    a.post([&] { both.arrive_and_wait(); });
    b.post([&] { both.arrive_and_wait(); });
    a.wait_until_idle();
    b.wait_until_idle();
}

TEST(strand, shares_locks_and_channels_with_others) {
    pool p(2);
    strand a(p);
    strand b(p);
    channel<int> c(2);
    mutex m;
    int sum = 0;
    fiber sends(
        [&] {
            for (int i = 0; i != strand_rounds; ++i) {
                EXPECT_TRUE(c.send(i));
                const std::lock_guard held(m);
                ++sum;
            }
            c.close();
        },
        {.on = a});
    fiber receives(
        [&] {
            while (c.recv()) {
                const std::lock_guard held(m);
                ++sum;
            }
        },
        {.on = b});
    sends.join();
    receives.join();
    EXPECT_EQ(sum, 2 * strand_rounds);
}

TEST(strand, keeps_deadlines) {
    pool p(2);
    strand s(p);
    const auto began = std::chrono::steady_clock::now();
    spawn(
        [&] {
            this_fiber::sleep_for(30ms);
            fiber late([] { this_fiber::sleep_for(1h); });
            this_fiber::sleep_for(10ms);  // earlier than what the alarm is set for
        },
        {.on = s})
        .get();
    const auto took = std::chrono::steady_clock::now() - began;
    EXPECT_GE(took, 40ms);
    EXPECT_LT(took, 10s);
}

// The timer for a strand's deadlines is a timer of one worker, and it may fire while another worker
// runs a turn of the strand.
TEST(strand, keeps_a_deadline_that_passes_during_its_turn) {
    pool p(2);
    strand s(p);  // the first: worker 0 has the timer
    std::atomic<bool> turn_began = false;
    std::atomic<bool> rung = false;
    std::atomic<bool> woken = false;
    // Worker 0 is held till worker 1 is at the turn, and then is free to ring; before the deadline
    // is set, else it could ring first, and take the turn behind what holds it.
    std::latch held(1);
    fiber owner(
        [&] {
            held.count_down();
            while (!turn_began) std::this_thread::yield();
        },
        {.on = p.worker(0)});
    held.wait();
    std::latch asleep(1);
    time_point until{};
    fiber sleeper(
        [&] {
            until = after(now(), 20ms);
            asleep.count_down();
            this_fiber::sleep_until(until);
            woken = true;
        },
        {.on = s});
    asleep.wait();
    s.post([&] {
        turn_began = true;
        while (!rung) std::this_thread::yield();
    });
    owner.join();
    // Behind the strand's in the same wheel.
    const timer last(p.worker(0), after(until, 5ms), duration::zero(), [&] { rung = true; });
    const time_point give_up = after(steady_now(), 20s);
    while (!woken && steady_now() < give_up) std::this_thread::yield();
    EXPECT_TRUE(woken);
    if (!woken) s.post([] {});  // which makes the strand check the time
}

TEST(strand, requests_stop_of_its_flows_when_it_is_destroyed) {
    std::atomic<int> ended = 0;
    pool p(2);
    {
        strand s(p);
        std::latch begun(4);
        for (int i = 0; i != 4; ++i)
            fiber(
                [&] {
                    const counts_its_end at_end{ended};
                    begun.count_down();
                    this_fiber::sleep_for(1h);
                },
                {.on = s})
                .detach();
        begun.wait();
    }
    EXPECT_EQ(ended, 4);
}

TEST(strand, requests_stop_of_all_though_a_callback_ends_the_next_flow) {
    pool p(2);
    std::optional<eager_task<void>> first, second, third;
    int asked = 0;
    const auto begin = [&](auto f) -> eager_task<void> {
        const stop_callback told(this_task::get_stop_token(), [&](stop_reason) noexcept { f(); });
        try {
            co_await sleep_for(1h);
        } catch (const stopped&) {  // as it should be
        }
    };
    {
        strand s(p);
        std::latch begun(1);
        s.post([&] {
            first.emplace(begin([&] { second.reset(); }));
            second.emplace(begin([&] { ++asked; }));
            third.emplace(begin([&] { ++asked; }));
            begun.count_down();
        });
        begun.wait();
    }
    EXPECT_EQ(asked, 1);
}

TEST(strand, owned_by_a_fiber_of_its_pool_ends_with_the_pool) {
    std::atomic<int> ended = 0;
    {
        pool p(2);
        std::latch begun(2);
        fiber(
            [&] {
                strand s(p);
                for (int i = 0; i != 2; ++i)
                    fiber(
                        [&] {
                            const counts_its_end at_end{ended};
                            begun.count_down();
                            this_fiber::sleep_for(1h);
                        },
                        {.on = s})
                        .detach();
                this_fiber::sleep_for(1h);
            },
            {.on = p})
            .detach();
        begun.wait();
    }
    EXPECT_EQ(ended, 2);
}

// `count` fibers of a strand run f under a shield, and the frame that the strand is in is
// destroyed. How many of them have ended then.
template <class F>
int ended_with_their_strand(int count, F f) {
    std::atomic<int> ended = 0;
    std::latch begun(count);
    auto on = std::make_unique<pool>(2);
    pool& p = *on;
    fiber(
        [&] {
            strand s(p);
            for (int i = 0; i != count; ++i)
                fiber(
                    [&] {
                        const counts_its_end at_end{ended};
                        begun.count_down();
                        const shield deaf;
                        f();
                    },
                    {.on = s})
                    .detach();
            const shield deaf;
            this_fiber::sleep_for(1h);
        },
        {.on = p})
        .detach();
    begun.wait();
    on.reset();
    return ended;
}

TEST(strand, in_a_destroyed_frame_ends_its_waiting_flows) {
    EXPECT_EQ(ended_with_their_strand(2, [] { this_fiber::sleep_for(1h); }), 2);
}

// They have had turns before, and are ready again, one behind the other.
TEST(strand, in_a_destroyed_frame_ends_its_ready_flows) {
    EXPECT_EQ(ended_with_their_strand(3,
                                      [] {
                                          for (;;) this_fiber::yield();
                                      }),
              3);
}

TEST(strand, can_be_awaited_by_a_coroutine_until_idle) {
    pool p(2);
    int ran = 0;
    const auto body = [&]() -> task<> {
        strand s(p);
        for (int i = 0; i != 10; ++i) s.post([&] { ++ran; });
        co_await s.async_wait_until_idle();
    };
    sync_wait(schedule_on(p, body()));
    EXPECT_EQ(ran, 10);
}

TEST(strand, is_waited_for_by_its_pool) {
    pool p(2);
    strand s(p);
    std::atomic<bool> ended = false;
    fiber(
        [&] {
            this_fiber::sleep_for(20ms);
            ended = true;
        },
        {.on = s})
        .detach();
    p.wait_until_idle();
    EXPECT_TRUE(ended);
}

TEST(strand, can_be_created_and_destroyed_many_times) {
    pool p(2);
    int ran = 0;
    for (int i = 0; i != strand_rounds; ++i) {
        strand s(p);
        s.post([&] { ++ran; });
        if (i % 2 == 0) s.post([&] { ++ran; });
    }
    EXPECT_EQ(ran, strand_rounds * 3 / 2);
}

TEST(strand_death, destroyed_in_a_coroutine_while_it_is_not_empty) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            pool p(2);
            const auto body = [&]() -> task<> {
                strand s(p);
                fiber([] { this_fiber::sleep_for(1h); }, {.on = s}).detach();
                co_return;
            };
            sync_wait(schedule_on(p, body()));
        },
        "a strand is destroyed in a coroutine, while something lives in it");
}

TEST(strand_death, outlives_its_pool) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto p = std::make_unique<pool>(1);
            strand s(*p);
            p.reset();
        },
        "destruction of a pool while there are strands in it");
}

}  // namespace
}  // namespace weft
