#include "weft/sched/pool.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "test/support/nothing_spare.hpp"
#include "test/support/slow.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/counting_semaphore.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task_handle.hpp"
#include "weft/task/when_all.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

struct at_end {
    std::atomic<int>& n;
    explicit at_end(std::atomic<int>& count) : n(count) {}
    ~at_end() { ++n; }
};

std::chrono::nanoseconds processor_time() {
    timespec t;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// The thread that calls, which a compiler takes for the same throughout a function.
WEFT_NOINLINE std::thread::id this_thread_now() {
    asm volatile("");
    return std::this_thread::get_id();
}

void compute_for(std::chrono::nanoseconds d) {
    const auto until = std::chrono::steady_clock::now() + d;
    while (std::chrono::steady_clock::now() < until) {
    }
}

TEST(pool, runs_what_is_spawned_from_a_plain_thread) {
    pool p(2);
    EXPECT_EQ(spawn([] { return 42; }, {.on = p}).get(), 42);
}

TEST(pool, starts_children_of_its_fibers_on_itself) {
    pool p(2);
    spawn(
        [&] {
            EXPECT_TRUE(p.running_in_this_thread());
            spawn([&] { EXPECT_TRUE(p.running_in_this_thread()); }).get();
            nursery n;
            n.spawn([&] { EXPECT_TRUE(p.running_in_this_thread()); });
            n.join();
        },
        {.on = p})
        .get();
    EXPECT_FALSE(p.running_in_this_thread());
}

TEST(pool, runs_each_of_many_exactly_once) {
    constexpr std::size_t count = testing::slow ? 2'000 : 50'000;
    pool p(3);
    std::vector<std::atomic<int>> ran(count);
    for (std::size_t i = 0; i != count; ++i) fiber([&, i] { ++ran[i]; }, {.on = p}).detach();
    p.wait_until_idle();
    for (const auto& n : ran) ASSERT_EQ(n, 1);
}

TEST(pool, spreads_the_children_of_one_fiber_over_its_workers) {
    pool p(2);
    std::latch both(2);  // opens only if two threads come to it at the same time
    spawn(
        [&] {
            fiber a([&] { both.arrive_and_wait(); });
            fiber b([&] { both.arrive_and_wait(); });
            a.join();
            b.join();
        },
        {.on = p})
        .get();
    EXPECT_GE(p.stats().steal_count, 1u);
}

TEST(pool, keeps_a_started_fiber_on_its_thread) {
    pool p(3);
    std::atomic<int> moved = 0;
    {
        std::vector<fiber> all;
        for (int i = 0; i != 100; ++i)
            all.emplace_back(
                [&] {
                    const auto mine = this_thread_now();
                    for (int n = 0; n != 20; ++n) {
                        this_fiber::yield();
                        if (n % 7 == 0) this_fiber::sleep_for(1ms);
                        moved += this_thread_now() != mine;
                    }
                },
                fiber_options{.on = p});
        for (fiber& f : all) f.join();
    }
    EXPECT_EQ(moved, 0);
}

// Sixteen that are woken at the same time, each with something to compute, until one of them has
// been given to another worker, or for some seconds.
struct waves {
    static constexpr int party_size = 16;
    counting_semaphore<> next{0};
    std::atomic<int> begun{0};
    std::atomic<int> computed{0};
    std::atomic<int> moved{0};
    std::atomic<bool> over{false};

    // All start on one worker of the two, because the other is occupied meanwhile.
    template <class Begin>
    void begin(pool& p, Begin begin_one) {
        std::latch held(1);
        std::latch release(1);
        fiber holds(
            [&] {
                held.count_down();
                release.wait();
            },
            {.on = p.worker(1)});
        held.wait();
        for (int i = 0; i != party_size; ++i) begin_one();
        while (begun != party_size) std::this_thread::sleep_for(100us);
        release.count_down();
        holds.join();
    }

    void run(const pool& p) {
        const auto until = std::chrono::steady_clock::now() + 20s;
        for (int n = 1; !over; ++n) {
            next.release(party_size);
            while (computed != n * party_size) std::this_thread::sleep_for(100us);
            over = (moved != 0 && p.stats().offload_count != 0) ||
                   std::chrono::steady_clock::now() > until;
        }
        next.release(party_size);
    }
    // `last`: where it was before. Once half of them have gone all may be at rest, so that the
    // first to go are counted too.
    void compute(std::thread::id& last) {
        compute_for(300us);
        const auto here = this_thread_now();
        if (here != last) ++moved;
        last = here;
        ++computed;
    }
};

TEST(pool, offloads_started_tasks_to_idle_workers) {
    waves w;
    pool p(2);
    const auto body = [&]() -> task<> {
        std::thread::id last = this_thread_now();
        for (++w.begun;;) {
            co_await w.next.async_acquire();
            if (w.over) co_return;
            EXPECT_TRUE(p.running_in_this_thread());
            w.compute(last);
        }
    };
    std::vector<fiber> all;
    w.begin(p, [&] {
        all.emplace_back([&] { await(schedule_on(p, body())); }, fiber_options{.on = p});
    });
    w.run(p);
    for (fiber& f : all) f.join();
    EXPECT_GT(w.moved, 0);
    EXPECT_GT(p.stats().offload_count, 0u);
}

TEST(pool, offloads_migratable_fibers) {
    waves w;
    pool p(2);
    std::vector<fiber> all;
    const auto body = [&] {
        std::thread::id last = this_thread_now();
        for (++w.begun;;) {
            w.next.acquire();
            if (w.over) return;
            this_fiber::yield();
            w.compute(last);
        }
    };
    w.begin(p, [&] { all.emplace_back(body, fiber_options{.on = p, .migratable = true}); });
    w.run(p);
    for (fiber& f : all) f.join();
    EXPECT_GT(w.moved, 0);
}

TEST(pool, stops_and_times_out_offloaded_tasks) {
    constexpr int count = testing::slow ? 32 : 128;
    std::atomic<int> timed_out = 0;
    std::atomic<int> destroyed = 0;
    std::atomic<int> turns = 0;
    {
        pool p(3);
        counting_semaphore<> never_released(0);
        const auto body = [&]() -> task<> {
            const at_end gone(destroyed);
            for (;;) {
                if (!co_await never_released.async_acquire(now() + 1ms)) ++timed_out;
                compute_for(50us);
                ++turns;
            }
        };
        std::vector<fiber> all;
        for (int i = 0; i != count; ++i)
            all.emplace_back([&] { await(schedule_on(p, body())); }, fiber_options{.on = p});
        const auto until = std::chrono::steady_clock::now() + (testing::slow ? 1s : 300ms);
        while (std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
        for (fiber& f : all) f.request_stop();
        for (fiber& f : all) EXPECT_TRUE(f.join().is_stopped());
        EXPECT_EQ(destroyed, count);
    }
    EXPECT_GT(turns, 0);
    EXPECT_EQ(timed_out, turns);
}

TEST(pool, unwinds_offloaded_fibers_when_it_is_destroyed) {
    std::atomic<int> destroyed = 0;
    std::atomic<int> begun = 0;
    {
        pool p(2);
        for (int i = 0; i != 16; ++i)
            fiber(
                [&] {
                    const at_end gone(destroyed);
                    const shield deaf;
                    for (++begun;; compute_for(100us)) this_fiber::sleep_for(1us);
                },
                {.on = p, .migratable = true})
                .detach();
        while (begun != 16) std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(destroyed, 16);
}

TEST(pool, runs_on_the_given_worker) {
    pool p(3);
    std::set<std::thread::id> seen;
    for (unsigned i = 0; i != p.thread_count(); ++i) {
        const auto first =
            spawn([] { return std::this_thread::get_id(); }, {.on = p.worker(i)}).get();
        const auto again =
            spawn([] { return std::this_thread::get_id(); }, {.on = p.worker(i)}).get();
        EXPECT_EQ(first, again);
        seen.insert(first);
    }
    EXPECT_EQ(seen.size(), 3u);
}

TEST(pool, runs_tasks_and_returns_their_results) {
    pool p(2);
    const auto number = [](int n) -> task<int> { co_return n; };
    const auto sum = [&]() -> task<int> {
        auto [a, b, c] = co_await when_all(number(1), number(2), schedule_on(p, number(3)));
        co_return a + b + c;
    };
    EXPECT_EQ(sync_wait(schedule_on(p, sum())), 6);
}

TEST(pool, accepts_a_task_that_migrates_to_it) {
    pool p(2);
    const auto goes = [&]() -> task<bool> {
        const bool before = p.running_in_this_thread();
        co_await resume_on(p);
        const bool after = p.running_in_this_thread();
        co_await resume_on(p.worker(1));
        co_return !before && after && current_executor() == &p.worker(1);
    };
    EXPECT_TRUE(sync_wait(goes()));
}

TEST(pool, stops_waiting_fibers_when_it_is_destroyed) {
    std::atomic<int> destroyed = 0;
    {
        pool p(2);
        std::latch begun(8);
        for (int i = 0; i != 8; ++i)
            fiber(
                [&] {
                    const at_end count(destroyed);
                    begun.count_down();
                    this_fiber::sleep_for(1h);
                },
                {.on = p})
                .detach();
        begun.wait();
    }
    EXPECT_EQ(destroyed, 8);
}

// Its own worker's loop is not yet at its end then, nor is that of the other.
TEST(pool, lets_a_stopped_fiber_spawn_on_another_worker) {
    std::atomic<bool> was_helped = false;
    {
        pool p(2);
        std::latch begun(1);
        fiber(
            [&] {
                begun.count_down();
                try {
                    this_fiber::sleep_for(1h);
                } catch (const stopped&) {
                    compute_for(1ms);
                    const shield until_it_has_come;
                    spawn([] {}, {.on = p.worker(1)}).get();
                    was_helped = true;
                    throw;
                }
            },
            {.on = p.worker(0)})
            .detach();
        begun.wait();
    }
    EXPECT_TRUE(was_helped);
}

TEST(pool, unwinds_fibers_that_do_not_stop) {
    std::atomic<int> destroyed = 0;
    {
        pool p(2);
        std::latch begun(3);
        for (int i = 0; i != 3; ++i)
            fiber(
                [&] {
                    const at_end count(destroyed);
                    begun.count_down();
                    const shield deaf;
                    this_fiber::sleep_for(1h);
                },
                {.on = p})
                .detach();
        begun.wait();
    }
    EXPECT_EQ(destroyed, 3);
}

TEST(pool, runs_posted_functions_before_it_is_destroyed) {
    std::atomic<int> ran = 0;
    {
        pool p(2);
        for (int i = 0; i != 1000; ++i) p.post([&] { ++ran; });
    }
    EXPECT_EQ(ran, 1000);
}

TEST(pool, can_be_created_and_destroyed_repeatedly) {
    for (int i = 0; i != 100; ++i) {
        pool p(2);
        if (i % 3 == 0) continue;
        ASSERT_EQ(spawn([i] { return i; }, {.on = p}).get(), i);
    }
}

TEST(pool, coexists_with_other_pools) {
    pool a(2);
    pool b(1);
    channel<int> ch(4);
    fiber sender(
        [&] {
            for (int i = 0; i != 1000; ++i) ASSERT_TRUE(ch.send(i));
            ch.close();
        },
        {.on = a});
    const int sum = spawn(
                        [&] {
                            int all = 0;
                            while (auto n = ch.recv()) all += *n;
                            return all;
                        },
                        {.on = b})
                        .get();
    sender.join();
    EXPECT_EQ(sum, 999 * 1000 / 2);
}

TEST(pool, preserves_mutual_exclusion_across_its_threads) {
    constexpr int rounds = testing::slow ? 200 : 2'000;
    pool p(3);
    mutex m;
    int count = 0;
    for (int i = 0; i != 20; ++i)
        fiber(
            [&] {
                for (int n = 0; n != rounds; ++n) {
                    const std::lock_guard held(m);
                    ++count;
                    if (n % 16 == 0) this_fiber::yield();
                }
            },
            {.on = p})
            .detach();
    p.wait_until_idle();
    EXPECT_EQ(count, 20 * rounds);
}

// Each is launched when all sleep, or are about to.
TEST(pool, loses_no_wake) {
    constexpr int rounds = testing::slow ? 1'000 : 20'000;
    pool p(2);
    for (int i = 0; i != rounds; ++i) {
        if (i % 64 == 0) std::this_thread::sleep_for(50us);
        for (int n = 0; n < i % 512; ++n) asm volatile("");
        ASSERT_EQ(spawn([i] { return i; }, {.on = p}).get(), i);
    }
}

TEST(pool, loses_no_wake_between_its_workers) {
    constexpr int rounds = testing::slow ? 200 : 5'000;
    pool p(2);
    const int all = spawn(
                        [] {
                            int sum = 0;
                            for (int i = 0; i != rounds; ++i) {
                                auto a = spawn([] { return 1; });
                                auto b = spawn([] { return 2; });
                                sum += a.get() + b.get();
                            }
                            return sum;
                        },
                        {.on = p})
                        .get();
    EXPECT_EQ(all, 3 * rounds);
}

TEST(pool, uses_no_processor_time_when_idle) {
    testing::nothing_spare();
    pool p(2);
    spawn([] { return spawn([] { return 1; }).get(); }, {.on = p}).get();
    fiber f([] { this_fiber::sleep_for(1h); }, {.on = p});
    std::this_thread::sleep_for(50ms);
    const auto before = processor_time();
    const std::size_t rests = p.stats().park_count;
    std::this_thread::sleep_for(1s);
    EXPECT_LT(processor_time() - before, 2ms * (testing::slow ? 10 : 1));
    // Each worker once: it has the memory given back that it has used and uses no more.
    EXPECT_LE(p.stats().park_count, rests + 2);
    f.request_stop();
    f.join();
}

TEST(pool_death, waited_for_by_its_own_fiber) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto waits = [] {
        pool p(1);
        spawn([&] { p.wait_until_idle(); }, {.on = p}).get();
    };
    EXPECT_DEATH(waits(), "weft: a pool is waited for by what it runs .*pool_test");
}

TEST(pool, starves_nothing_behind_busy_fibers) {
    pool p(1);
    std::atomic<bool> over = false;
    fiber busy(
        [&] {
            while (!over) this_fiber::yield();
        },
        {.on = p});
    EXPECT_EQ(spawn([] { return 1; }, {.on = p}).get(), 1);  // from the inbox
    fiber spawner(  // the newest starts first, and the oldest is started nevertheless
        [&] {
            fiber eldest([&] { over = true; });
            while (!over) {
                fiber([] {}).detach();
                this_fiber::yield();
            }
            eldest.join();
        },
        {.on = p});
    spawner.join();
    busy.join();
}

TEST(pool, steals_from_a_blocked_worker) {
    pool p(2);
    spawn(
        [] {
            std::atomic<int> ran = 0;
            for (int i = 0; i != 10; ++i) fiber([&] { ++ran; }).detach();
            while (ran != 10) std::this_thread::yield();  // it holds its worker
        },
        {.on = p})
        .get();
    EXPECT_GE(p.stats().steal_count, 10u);
}

TEST(pool, counts_remote_schedules_steals_and_offloads) {
    pool p(1);
    EXPECT_EQ(p.stats().remote_schedule_count, 0u);
    for (int i = 0; i != 5; ++i) spawn([] { this_fiber::yield(); }, {.on = p}).get();
    const pool_stats s = p.stats();
    EXPECT_EQ(s.remote_schedule_count, 5u);
    EXPECT_EQ(s.steal_count, 0u) << "there is no other";
    EXPECT_EQ(s.offload_count, 0u);
}

TEST(pool, waits_until_it_is_empty) {
    pool p(2);
    std::atomic<int> ended = 0;
    p.wait_until_idle();
    for (int i = 0; i != 20; ++i)
        fiber(
            [&] {
                this_fiber::sleep_for(5ms);
                fiber([&] {
                    this_fiber::sleep_for(5ms);
                    ++ended;
                }).detach();
            },
            {.on = p})
            .detach();
    p.wait_until_idle();
    EXPECT_EQ(ended, 20);
}

TEST(pool, keeps_its_threads_on_the_given_processors) {
    ::cpu_set_t mine;
    ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
    int first = 0;
    while (!CPU_ISSET(first, &mine)) ++first;
    pool p({.name = "pinned", .processors = {first}, .thread_count = 2});
    for (unsigned i = 0; i != 2; ++i)
        spawn(
            [&, i] {
                ::cpu_set_t set;
                ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
                EXPECT_EQ(CPU_COUNT(&set), 1);
                EXPECT_TRUE(CPU_ISSET(first, &set));
                char name[16];
                ASSERT_EQ(::pthread_getname_np(::pthread_self(), name, sizeof name), 0);
                EXPECT_EQ(std::string(name), "pinned/" + std::to_string(i));
            },
            {.on = p.worker(i)})
            .get();
}

TEST(pool, refuses_a_processor_that_does_not_exist) {
    EXPECT_THROW(pool({.processors = {100'000}, .thread_count = 2}), std::system_error);
    EXPECT_THROW(pool({.processors = {-1}, .thread_count = 2}), std::system_error);
}

TEST(pool, has_a_worker_for_each_processor_by_default) {
    ::cpu_set_t mine;
    ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
    EXPECT_EQ(pool().thread_count(), static_cast<unsigned>(CPU_COUNT(&mine)));
}

TEST(pool, delivers_a_stop_to_a_fiber_not_yet_started) {
    pool p(1);
    std::atomic<bool> go = false;
    fiber holds(
        [&] {
            while (!go) std::this_thread::yield();
        },
        {.on = p});
    fiber late([] { this_fiber::sleep_for(1h); }, {.on = p});
    EXPECT_TRUE(late.request_stop());
    go = true;
    EXPECT_TRUE(late.join().is_stopped());
    holds.join();
}

}  // namespace
}  // namespace weft
