#include "weft/stack/stack_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "test/stack/memory_probe.hpp"
#include "weft/base/detail/release_unused.hpp"
#include "weft/stack/default_stacks.hpp"
#include "weft/stack/malloc_stack.hpp"
#include "weft/stack/mapped_stack.hpp"
#include "weft/stack/stack_allocator_ref.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kib = 1024;

template <class Pool>
std::vector<stack> take(Pool& pool, std::size_t count) {
    std::vector<stack> all(count);
    for (stack& s : all) s = pool.acquire();
    return all;
}

template <class Pool>
void release_all(Pool& pool, const std::vector<stack>& all) {
    for (const stack s : all) pool.release(s);
}

template <class F>
void on_another_thread(F f) {
    std::thread(f).join();
}

// As a loop that is idle from `now` until `end`; at most how often it was woken in a second.
template <class Pool>
int idle(Pool& pool, time_point& now, duration how_long) {
    const time_point end = now + how_long;
    int woken = 0;
    for (time_point next = pool.release_unused(now); next < end; next = pool.release_unused(now)) {
        const std::size_t before = pool.stats().destroyed_count;
        woken += next != now;
        now = next;
        pool.release_unused(now);
        EXPECT_LE(pool.stats().destroyed_count - before, 32u) << "a little at a time";
    }
    now = end;
    return woken;
}

TEST(stack_pool, gives_the_most_recently_released_stack) {
    stack_pool<> pool(64 * kib);
    const std::vector<stack> all = take(pool, 500);
    release_all(pool, all);
    for (auto s = all.rbegin(); s != all.rend(); ++s) EXPECT_EQ(pool.acquire(), *s);
    release_all(pool, all);
    pool.check();
}

TEST(stack_pool, releases_unused_stacks_of_an_idle_program) {
    stack_pool<> pool(64 * kib);
    time_point now = steady_now();
    release_all(pool, take(pool, 20'000));
    EXPECT_EQ(pool.stats().free_count, 20'000u);
    EXPECT_GT(pool.release_unused(now), now) << "it has not been idle yet";
    EXPECT_EQ(pool.stats().free_count, 20'000u);
    EXPECT_LE(idle(pool, now, 9s), 10) << "an idle program wakes once a second";
    EXPECT_EQ(pool.stats().free_count, 0u);
    EXPECT_EQ(pool.stats().mapped_bytes, 0u);
    EXPECT_EQ(pool.release_unused(now), never);
    pool.check();
}

TEST(stack_pool, keeps_stacks_that_are_used_each_second) {
    stack_pool<> pool(64 * kib);
    time_point now = steady_now();
    release_all(pool, take(pool, 3'000));
    for (int second = 0; second < 20; ++second) {
        idle(pool, now, 500ms);
        release_all(pool, take(pool, 500));
        idle(pool, now, 500ms);
    }
    EXPECT_EQ(pool.stats().created_count, 3'000u) << "none is made anew";
    EXPECT_LE(pool.stats().free_count, 500u + 64u);
    pool.check();
}

TEST(stack_pool, idle_release_keeps_the_minimum) {
    stack_pool<> pool(64 * kib, {.min_count = 100});
    time_point now = steady_now();
    release_all(pool, take(pool, 1'000));
    idle(pool, now, 20s);
    EXPECT_EQ(pool.stats().free_count, 100u);
    EXPECT_EQ(pool.release_unused(now), never) << "there is nothing to be asked for";
}

TEST(stack_pool, idle_release_covers_the_cache_of_each_idle_thread) {
    stack_pool<> pool(64 * kib);
    release_all(pool, take(pool, 50));
    on_another_thread([&] {
        release_all(pool, take(pool, 40));
        time_point now = steady_now();
        while (now < never) now = detail::release_unused(now);
        EXPECT_EQ(pool.stats().free_count, 50u) << "the other thread's are its own";
    });
    time_point now = steady_now() + 100s;  // as far as the other thread has come
    while (now < never) now = detail::release_unused(now);
    EXPECT_EQ(pool.stats().free_count, 0u);
}

TEST(stack_pool, idle_release_works_beside_a_cache_of_another_pool) {
    stack_pool<> pool(64 * kib);
    on_another_thread([&] {
        default_stacks().release(default_stacks().acquire());  // has its place before the other's
        pool.release(pool.acquire());
        time_point now = steady_now();
        while (now < never) now = detail::release_unused(now);
        EXPECT_EQ(pool.stats().free_count, 0u);
    });
}

TEST(stack_pool, unused_cached_stacks_of_an_idle_thread_serve_others) {
    stack_pool<> pool(16 * kib);
    on_another_thread([&] { release_all(pool, take(pool, 64)); });
    const stack s = pool.acquire();  // and with it come some that this thread keeps
    pool.release_unused(steady_now());
    on_another_thread([&] { release_all(pool, take(pool, 63)); });
    EXPECT_EQ(pool.stats().created_count, 64u);
    pool.release(s);
}

TEST(stack_pool, never_gives_a_stack_twice) {
    stack_pool<> pool(16 * kib);
    std::mt19937 random(3);
    std::vector<stack> out;
    std::set<std::byte*> limits;
    for (int i = 0; i < 20'000; ++i) {
        if (out.empty() || random() % 100 < (i / 3000 % 2 == 0 ? 60u : 40u)) {
            out.push_back(pool.acquire());
            ASSERT_TRUE(limits.insert(out.back().limit).second);
        } else {
            std::swap(out[random() % out.size()], out.back());
            limits.erase(out.back().limit);
            pool.release(out.back());
            out.pop_back();
        }
        if (random() % 1000 == 0) pool.trim(random() % 200);
        if (i % 1000 == 0) pool.check();
    }
    EXPECT_EQ(pool.stats().used_count, out.size());
    release_all(pool, out);
}

TEST(stack_pool, works_over_any_allocator) {
    stack_pool<malloc_stack> heap(16 * kib);
    stack_pool<mapped_stack> mapped(mapped_stack(16 * kib, 8192));
    malloc_stack own(16 * kib);
    stack_pool<stack_allocator_ref> borrowed{stack_allocator_ref(own)};
    const auto use = [](auto& pool) {
        const std::vector<stack> all = take(pool, 100);
        for (const stack s : all) std::memset(s.limit, 1, s.bytes());
        release_all(pool, all);
        EXPECT_EQ(pool.acquire(), all.back());
        pool.release(all.back());
        EXPECT_EQ(pool.stats().free_count, 100u);
        EXPECT_EQ(pool.stats().mapped_bytes, 1600 * kib);
        EXPECT_EQ(pool.trim(), 100u);
        EXPECT_EQ(pool.stats().mapped_bytes, 0u);
        pool.check();
    };
    use(heap);
    use(mapped);
    use(borrowed);
}

TEST(stack_pool, as_an_allocator_ref_is_the_same_pool) {
    stack_pool<> pool(32 * kib);
    const stack_allocator_ref source = pool;
    EXPECT_EQ(source.stack_bytes(), 32 * kib);
    const stack s = source.acquire();
    EXPECT_EQ(pool.stats().used_count, 1u);
    source.release(s);
    EXPECT_EQ(pool.acquire(), s);
    pool.release(s);
}

TEST(stack_pool_death, destruction_with_a_stack_in_use_aborts) {
    EXPECT_DEATH(
        {
            stack_pool<malloc_stack> pool(16 * kib);
            static_cast<void>(pool.acquire());
        },
        "weft: destruction of a stack_pool");
}

TEST(stack_pool_death, prompt_second_release_aborts_in_a_debug_build) {
    if (!WEFT_DEBUG) GTEST_SKIP() << "not looked for in a release build";
    stack_pool<> pool(16 * kib);
    const std::vector<stack> all = take(pool, 200);
    release_all(pool, all);
    EXPECT_DEATH(pool.release(all.back()), "weft: release of a stack that is free");
    EXPECT_DEATH(pool.release(all[180]), "weft: release of a stack that is free");
}

TEST(stack_pool_death, release_of_a_foreign_stack_aborts) {
    stack_pool<> pool(16 * kib);
    stack_pool<> other(64 * kib);
    const stack s = other.acquire();
    const stack mine = pool.acquire();
    pool.release(mine);
    EXPECT_DEATH(pool.release(s), "weft: release of a stack that is not out");
    other.release(s);
}

TEST(stack_pool_death, use_of_a_released_stack_is_reported_by_asan) {
    if (!WEFT_ASAN) GTEST_SKIP() << "only AddressSanitizer sees it";
    stack_pool<> pool(16 * kib);
    const stack s = pool.acquire();
    pool.release(s);
    volatile std::byte* gone = s.top - 1;
    EXPECT_DEATH(*gone = std::byte{1}, "use-after-poison");
}

// ------------------------------------------------------------------------------------------ limits

TEST(stack_pool, at_its_maximum_count_gives_an_empty_stack) {
    stack_pool<> pool(16 * kib, {.max_count = 10});
    const std::vector<stack> all = take(pool, 10);
    for (const stack s : all) EXPECT_TRUE(s);
    EXPECT_FALSE(pool.acquire());
    pool.release(all[3]);
    EXPECT_EQ(pool.acquire(), all[3]);
    EXPECT_FALSE(pool.acquire());
    release_all(pool, all);
}

TEST(stack_pool, at_its_maximum_in_bytes_gives_an_empty_stack) {
    stack_pool<> pool(16 * kib, {.max_bytes = 5 * 16 * kib + 1});
    const std::vector<stack> all = take(pool, 5);
    EXPECT_TRUE(all.back());
    EXPECT_FALSE(pool.acquire());
    release_all(pool, all);
    pool.set_limits({.max_bytes = 100});
    pool.clear();
    EXPECT_FALSE(pool.acquire());
}

TEST(stack_pool, with_a_maximum_shares_released_stacks_between_threads) {
    stack_pool<> pool(16 * kib, {.max_count = 8});
    release_all(pool, take(pool, 8));
    on_another_thread([&] {
        const std::vector<stack> all = take(pool, 8);
        EXPECT_TRUE(all.back());
        EXPECT_FALSE(pool.acquire());
        release_all(pool, all);
    });
}

TEST(stack_pool, is_never_above_its_maximum_under_contention) {
    stack_pool<> pool(16 * kib, {.max_count = 50});
    std::atomic<int> out{0};
    std::atomic<int> most{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            std::vector<stack> mine;
            for (int i = 0; i < 5000; ++i) {
                if (random() % 2 == 0) {
                    if (const stack s = pool.acquire()) {
                        mine.push_back(s);
                        const int now = ++out;
                        int seen = most.load();
                        while (seen < now && !most.compare_exchange_weak(seen, now)) {
                        }
                    }
                } else if (!mine.empty()) {
                    --out;
                    pool.release(mine.back());
                    mine.pop_back();
                }
            }
            out -= static_cast<int>(mine.size());
            release_all(pool, mine);
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_LE(most.load(), 50);
    EXPECT_LE(pool.stats().peak_used_count, 50u);
    EXPECT_EQ(pool.stats().used_count, 0u);
}

TEST(stack_pool, with_a_lowered_maximum_shrinks_with_each_release) {
    stack_pool<> pool(16 * kib);
    const std::vector<stack> all = take(pool, 20);
    pool.set_limits({.max_count = 5});
    EXPECT_EQ(pool.limits().max_count, 5u);
    EXPECT_FALSE(pool.acquire());
    release_all(pool, all);
    const stack_pool_stats now = pool.stats();
    EXPECT_EQ(now.used_count + now.free_count, 5u);
    EXPECT_EQ(now.destroyed_count, 15u);
}

TEST(stack_pool, thread_caches_again_after_a_change_of_limits) {
    stack_pool<> pool(16 * kib);
    release_all(pool, take(pool, 10));
    pool.set_limits({.min_count = 1});
    release_all(pool, take(pool, 10));
    on_another_thread([&] { pool.release(pool.acquire()); });
    EXPECT_EQ(pool.stats().created_count, 11u) << "the ten are this thread's own";
}

TEST(stack_pool, trim_releases_at_most_the_given_count) {
    stack_pool<> pool(16 * kib);
    release_all(pool, take(pool, 300));
    EXPECT_EQ(pool.trim(7), 7u);
    EXPECT_EQ(pool.stats().free_count, 293u);
    EXPECT_EQ(pool.trim(0), 0u);
    EXPECT_EQ(pool.trim(200), 200u);
    EXPECT_EQ(pool.trim(200), 93u);
    EXPECT_EQ(pool.trim(200), 0u);
}

TEST(stack_pool, trim_releases_the_oldest_first) {
    stack_pool<> pool(16 * kib);
    const std::vector<stack> all = take(pool, 300);
    release_all(pool, all);
    pool.trim(100);
    for (std::size_t i = 300; i-- > 100;) EXPECT_EQ(pool.acquire(), all[i]);
    EXPECT_EQ(pool.stats().free_count, 0u);
    for (std::size_t i = 100; i < 300; ++i) pool.release(all[i]);
}

TEST(stack_pool, trim_keeps_the_minimum_in_use_or_free) {
    stack_pool<> pool(16 * kib, {.min_count = 100});
    std::vector<stack> all = take(pool, 150);
    for (int i = 0; i < 120; ++i) {
        pool.release(all.back());
        all.pop_back();
    }
    EXPECT_EQ(pool.trim(), 50u);  // 30 in use and 70 free remain
    EXPECT_EQ(pool.stats().free_count, 70u);
    pool.set_limits({.min_bytes = 60 * 16 * kib});
    EXPECT_EQ(pool.trim(), 40u);
    EXPECT_EQ(pool.stats().free_count, 30u);
    release_all(pool, all);
}

TEST(stack_pool, trim_does_not_touch_stacks_in_use) {
    stack_pool<> pool(16 * kib);
    const std::vector<stack> kept = take(pool, 40);
    for (const stack s : kept) std::memset(s.limit, 0x5a, s.bytes());
    release_all(pool, take(pool, 400));
    EXPECT_EQ(pool.trim(), 400u);
    for (const stack s : kept)
        EXPECT_TRUE(std::all_of(s.limit, s.top, [](std::byte b) { return b == std::byte{0x5a}; }));
    release_all(pool, kept);
}

// -------------------------------------------------------------------------------------- statistics

TEST(stack_pool, stats_are_exact_for_one_thread_at_every_step) {
    stack_pool<> pool(64 * kib);
    std::vector<stack> out;
    std::mt19937 random(11);
    std::size_t peak = 0;
    std::size_t alive = 0;
    for (int i = 0; i < 5000; ++i) {
        if (out.empty() || random() % 100 < (i / 1000 % 2 == 0 ? 60u : 40u)) {
            if (alive == out.size()) ++alive;
            out.push_back(pool.acquire());
        } else {
            pool.release(out.back());
            out.pop_back();
        }
        peak = std::max(peak, out.size());
        const stack_pool_stats now = pool.stats();
        ASSERT_EQ(now.used_count, out.size());
        ASSERT_EQ(now.free_count, alive - out.size());
        ASSERT_EQ(now.used_bytes, out.size() * 64 * kib);
        ASSERT_EQ(now.free_bytes, (alive - out.size()) * 64 * kib);
        ASSERT_EQ(now.created_count - now.destroyed_count, alive);
        ASSERT_GE(now.mapped_bytes, alive * 64 * kib);
    }
    EXPECT_EQ(pool.stats().peak_used_count, peak);
    release_all(pool, out);
}

TEST(stack_pool, peak_is_exact_for_one_thread_without_reads_in_between) {
    stack_pool<> pool(16 * kib);
    release_all(pool, take(pool, 10));
    release_all(pool, take(pool, 37));
    release_all(pool, take(pool, 20));
    EXPECT_EQ(pool.stats().peak_used_count, 37u);
    pool.trim();
    EXPECT_EQ(pool.stats().peak_used_count, 37u);
}

TEST(stack_pool, peak_includes_stacks_used_within_a_thread_cache) {
    stack_pool<> pool(16 * kib);
    release_all(pool, take(pool, 30));
    std::vector<stack> elsewhere;
    on_another_thread([&] { elsewhere = take(pool, 30); });
    release_all(pool, take(pool, 30));  // from this thread's cache, in which they were all the time
    EXPECT_EQ(pool.stats().peak_used_count, 60u);
    release_all(pool, elsewhere);
}

TEST(stack_pool, stats_are_consistent_during_and_exact_after_contention) {
    stack_pool<> pool(16 * kib);
    std::mutex lock;
    std::vector<stack> shared;  // stacks pass between threads here
    std::atomic<int> still_running{4};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int i = 0; i < 10'000; ++i) {
                if (random() % 2 == 0) {
                    const stack s = pool.acquire();
                    s.top[-1] = std::byte{1};
                    const std::lock_guard held(lock);
                    shared.push_back(s);
                } else {
                    stack s;
                    {
                        const std::lock_guard held(lock);
                        if (shared.empty()) continue;
                        s = shared.back();
                        shared.pop_back();
                    }
                    pool.release(s);
                }
                if (random() % 500 == 0) pool.trim(20);
            }
            --still_running;
        });
    }
    while (still_running.load() != 0) {
        const stack_pool_stats now = pool.stats();
        EXPECT_EQ(now.used_count + now.free_count, now.created_count - now.destroyed_count);
        EXPECT_LE(now.used_count, now.peak_used_count);
        std::this_thread::yield();
    }
    for (std::thread& t : threads) t.join();
    pool.check();
    EXPECT_EQ(pool.stats().used_count, shared.size());
    release_all(pool, shared);
    EXPECT_EQ(pool.stats().used_count, 0u);
    const std::size_t free = pool.stats().free_count;
    EXPECT_EQ(pool.trim(), free) << "all threads have left theirs to the pool";
}

// ------------------------------------------------------------------------------------- threads

TEST(stack_pool, stack_can_be_released_on_another_thread) {
    stack_pool<> pool(16 * kib);
    const std::vector<stack> all = take(pool, 200);
    on_another_thread([&] { release_all(pool, all); });
    const stack_pool_stats now = pool.stats();
    EXPECT_EQ(now.used_count, 0u);
    EXPECT_EQ(now.free_count, 200u);
}

TEST(stack_pool, exiting_thread_returns_its_stacks_to_the_pool) {
    stack_pool<> pool(16 * kib);
    on_another_thread([&] { release_all(pool, take(pool, 20)); });
    const std::size_t created = pool.stats().created_count;
    const std::vector<stack> all = take(pool, 20);
    EXPECT_EQ(pool.stats().created_count, created);
    release_all(pool, all);
}

TEST(stack_pool, trim_recalls_stacks_cached_by_other_threads) {
    stack_pool<> pool(16 * kib);
    std::atomic<int> step{0};
    std::thread other([&] {
        const stack kept = pool.acquire();
        release_all(pool, take(pool, 20));
        step = 1;
        while (step.load() != 2) std::this_thread::yield();
        pool.release(kept);  // brings the twenty along
        step = 3;
        while (step.load() != 4) std::this_thread::yield();
    });
    while (step.load() != 1) std::this_thread::yield();
    EXPECT_EQ(pool.trim(), 0u);
    step = 2;
    while (step.load() != 3) std::this_thread::yield();
    EXPECT_GE(pool.trim(), 20u);
    step = 4;
    other.join();
}

TEST(stack_pool, thread_can_exit_before_a_later_user_of_the_pool) {
    stack_pool<> pool(16 * kib);
    std::atomic<int> step{0};
    std::thread first([&] {
        release_all(pool, take(pool, 5));
        step = 1;
        while (step.load() != 2) std::this_thread::yield();
    });
    while (step.load() != 1) std::this_thread::yield();
    const stack s = pool.acquire();
    step = 2;
    first.join();
    EXPECT_EQ(pool.stats().free_count, 5u);
    pool.release(s);
}

TEST(stack_pool, leaks_no_memory_of_exited_threads) {
    test::failing_memory memory;
    {
        stack_pool<> pool(16 * kib);
        for (int i = 0; i < 3; ++i) on_another_thread([&] { release_all(pool, take(pool, 20)); });
    }
    EXPECT_TRUE(memory.nothing_leaked());
}

TEST(stack_pool, can_be_destroyed_before_threads_that_used_it) {
    std::atomic<int> step{0};
    auto first = std::make_unique<stack_pool<>>(16 * kib);
    auto second = std::unique_ptr<stack_pool<>>();
    std::thread other([&] {
        release_all(*first, take(*first, 100));
        step = 1;
        while (step.load() != 2) std::this_thread::yield();
        release_all(*second, take(*second, 100));  // and does not meet the first one's stacks
        step = 3;
    });
    while (step.load() != 1) std::this_thread::yield();
    first.reset();
    second = std::make_unique<stack_pool<>>(64 * kib);
    step = 2;
    while (step.load() != 3) std::this_thread::yield();
    other.join();
    EXPECT_EQ(second->stats().free_count, 100u);
    EXPECT_EQ(second->stats().free_bytes, 100 * 64 * kib);
}

// --------------------------------------------------------------- nothing freed is handed out again

TEST(stack_pool, never_gives_a_stack_of_the_old_size_after_a_change) {
    for (const std::size_t next : {16 * kib, 60 * kib, 64 * kib + 1, 68 * kib, 256 * kib}) {
        stack_pool<> pool(64 * kib);
        const std::vector<stack> live = take(pool, 30);
        for (const stack s : live) std::memset(s.limit, 0x5a, s.bytes());
        release_all(pool, take(pool, 150));
        on_another_thread([&] { release_all(pool, take(pool, 30)); });

        pool.set_stack_bytes(next);
        EXPECT_EQ(pool.stack_bytes(), detail::round_to_page(next));
        EXPECT_EQ(pool.stats().free_count, 0u);
        for (const stack s : live)  // they survive
            EXPECT_TRUE(
                std::all_of(s.limit, s.top, [](std::byte b) { return b == std::byte{0x5a}; }));
        for (std::size_t i = 0; i < 15; ++i) pool.release(live[i]);
        EXPECT_EQ(pool.stats().free_count, 0u) << "the old ones went to the allocator";

        const std::vector<stack> fresh = take(pool, 200);
        for (const stack s : fresh) {
            ASSERT_GE(s.bytes(), next);
            EXPECT_LE(s.bytes(), next + 2 * 4096);
            std::memset(s.limit, 1, s.bytes());
        }
        for (std::size_t i = 15; i < 30; ++i) pool.release(live[i]);
        release_all(pool, fresh);
        pool.check();
        for (const stack s : take(pool, 200)) {
            EXPECT_GE(s.bytes(), next);
            pool.release(s);
        }
    }
}

TEST(stack_pool, clear_releases_exactly_the_free_stacks) {
    stack_pool<> pool(64 * kib);
    const std::vector<stack> live = take(pool, 30);
    release_all(pool, take(pool, 200));
    pool.clear();
    EXPECT_EQ(pool.stats().free_count, 0u);
    EXPECT_EQ(pool.stats().used_count, 30u);
    const std::vector<stack> fresh = take(pool, 200);
    for (const stack s : fresh) std::memset(s.limit, 1, s.bytes());
    for (const stack s : live) std::memset(s.limit, 2, s.bytes());
    release_all(pool, fresh);
    release_all(pool, live);
}

TEST(stack_pool, never_gives_a_stack_that_trim_released) {
    // The allocator below records what it has given out and not got back.
    struct watched {
        std::set<std::byte*>* out;
        malloc_stack below{16 * kib};
        stack acquire() noexcept {
            const stack s = below.acquire();
            out->insert(s.limit);
            return s;
        }
        void release(stack s) noexcept {
            EXPECT_EQ(out->erase(s.limit), 1u);
            below.release(s);
        }
        std::size_t stack_bytes() const noexcept { return below.stack_bytes(); }
    };
    std::set<std::byte*> out;
    {
        stack_pool<watched> pool(watched{&out});
        std::mt19937 random(5);
        for (int round = 0; round < 200; ++round) {
            const std::vector<stack> all = take(pool, random() % 150);
            for (const stack s : all) ASSERT_EQ(out.count(s.limit), 1u);
            release_all(pool, all);
            if (round % 50 == 49) pool.clear();
            pool.trim(random() % 100);
        }
    }
    EXPECT_TRUE(out.empty());
}

// ------------------------------------------------------------------------------ memory is released

TEST(stack_pool, resident_memory_falls_after_a_peak_and_a_trim) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "a sanitizer's own memory is in the way";
    stack_pool<> pool(64 * kib);
    const std::size_t before = test::rss_bytes();
    const std::vector<stack> all = take(pool, 2000);
    for (const stack s : all) test::use(s, 20'000);
    const std::size_t peak = test::rss_bytes();
    EXPECT_GT(peak, before + 2000 * 20'000ul);
    release_all(pool, all);
    EXPECT_EQ(pool.trim(1000), 1000u);
    EXPECT_LT(test::rss_bytes(), peak - 900 * 20'000ul);
    EXPECT_EQ(pool.trim(), 1000u);
    EXPECT_LT(test::rss_bytes(), before + 4 * 1024 * kib);
    EXPECT_EQ(pool.stats().mapped_bytes, 0u);
}

TEST(stack_pool, shallow_use_costs_a_page_and_a_few_bytes) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "a sanitizer's own memory is in the way";
    constexpr std::size_t count = 20'000;
    stack_pool<> pool(64 * kib);
    std::vector<stack> all(count);
    for (stack& s : all) s = stack{nullptr, reinterpret_cast<std::byte*>(64)};  // touch the vector
    const std::size_t before = test::rss_bytes();
    for (stack& s : all) {
        s = pool.acquire();
        test::use(s, 1024);
    }
    EXPECT_LT((test::rss_bytes() - before) / count, 4160u);
    release_all(pool, all);
}

// ---------------------------------------------------------------------------------------- failures

TEST(stack_pool, each_failing_call_gives_a_stack_or_none_and_leaks_nothing) {
    int failed = 0;
    for (int n = 1;; ++n) {
        test::failing_memory memory(n);
        bool over = false;
        {
            stack_pool<> pool(128 * kib);
            std::vector<stack> all = take(pool, 80);
            failed += static_cast<int>(std::erase(all, stack{}));
            for (const stack s : all) test::use(s, 4096);
            release_all(pool, all);
            pool.trim(50);
            pool.check();
            EXPECT_EQ(pool.stats().used_count, 0u);
            over = !memory.has_failed();
            memory.fail_no_more();
        }
        EXPECT_TRUE(memory.nothing_leaked()) << n;
        if (over) break;
    }
    EXPECT_GT(failed, 0) << "some call must have mattered";
}

TEST(stack_pool, without_memory_for_metadata_gives_no_unreturnable_stack) {
    test::failing_memory memory;
    {
        stack_pool<> pool(16 * kib);
        std::vector<stack> all = take(pool, 64);
        memory.no_allocate = true;
        EXPECT_FALSE(pool.acquire());
        memory.no_allocate = false;
        all.push_back(pool.acquire());
        EXPECT_TRUE(all.back());
        release_all(pool, all);
    }
    EXPECT_TRUE(memory.nothing_leaked());
}

TEST(stack_pool_death, canary_overflow_is_detected_on_a_thread_unaware_of_canaries) {
    const auto child = [] {
        test::failing_memory memory;
        stack_pool<> pool(16 * kib);
        std::atomic<int> step{0};
        stack broken;
        std::thread other([&] {
            release_all(pool, take(pool, 3));
            step = 1;
            while (step.load() != 2) std::this_thread::yield();
            pool.release(broken);
            std::_Exit(0);
        });
        while (step.load() != 1) std::this_thread::yield();
        memory.no_markers = memory.no_protect = true;
        broken = take(pool, 200).back();
        broken.limit[-1] ^= std::byte{1};
        step = 2;
        other.join();
    };
    EXPECT_DEATH(child(), "weft: a stack has overflowed");
}

TEST(stack_pool_death, canary_overflow_is_detected_at_release) {
    test::failing_memory memory;
    memory.no_markers = memory.no_protect = true;
    stack_pool<> pool(16 * kib);
    for (int i = 0; i < 3; ++i) {  // a recycled stack as well
        const stack s = pool.acquire();
        s.limit[-1] ^= std::byte{1};
        EXPECT_DEATH(pool.release(s), "weft: a stack has overflowed");
        s.limit[-1] ^= std::byte{1};
        pool.release(s);
    }
}

// The threads use the second pool in an order that only a relaxed word shows, so that a thread's
// cache of the first is known to be gone by nothing but the second pool itself.
TEST(stack_pool, in_the_place_of_a_destroyed_pool_finds_no_cache_of_that) {
    auto first = std::make_unique<stack_pool<mapped_stack>>();
    std::unique_ptr<stack_pool<mapped_stack>> second;
    std::atomic<int> step{0};
    std::atomic<bool> used{false};
    std::thread late([&] {
        first->release(first->acquire());
        step.store(1, std::memory_order_release);
        while (step.load(std::memory_order_acquire) != 2) std::this_thread::yield();
        while (!used.load(std::memory_order_relaxed)) std::this_thread::yield();
        second->release(second->acquire());
    });
    while (step.load(std::memory_order_acquire) != 1) std::this_thread::yield();
    second = std::make_unique<stack_pool<mapped_stack>>();
    step.store(2, std::memory_order_release);
    std::thread([&] {
        first.reset();
        second->release(second->acquire());
        used.store(true, std::memory_order_relaxed);
    }).join();
    late.join();
    EXPECT_EQ(second->stats().used_count, 0u);
}

TEST(stack_pool, holds_a_hundred_thousand_guarded_stacks) {
    if (!detail::markers_work()) GTEST_SKIP() << "this kernel has no guard markers";
    // With pointers of 32 bits the address space has room for no more.
    constexpr std::size_t most = sizeof(void*) == 8 ? 100'000 : 20'000;
    const std::size_t count = WEFT_ASAN || WEFT_TSAN ? 2'000 : most;
    stack_pool<> pool(64 * kib);
    const std::vector<stack> all = take(pool, count);
    EXPECT_TRUE(all.back());
    release_all(pool, all);
    EXPECT_EQ(pool.stats().free_count, count);
}

}  // namespace
}  // namespace weft
