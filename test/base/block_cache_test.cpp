#include "weft/base/detail/block_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/nothing_spare.hpp"

namespace {

using weft::detail::block_cache;

// With AddressSanitizer each block is its own allocation, and there is nothing to count.
#define WEFT_SKIP_WHERE_NOTHING_IS_CACHED() \
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer"

std::size_t chunk_bytes() { return block_cache::stats().chunk_bytes; }
std::size_t used_bytes() { return block_cache::stats().used_bytes; }

// A thread's exit is complete when the thread is joined: its lists are in the depot.
template <class F>
void on_a_thread(F f) {
    std::thread(f).join();
}

TEST(block_cache, reuses_the_most_recently_released_block) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    void* a = block_cache::acquire(100);
    void* b = block_cache::acquire(100);
    block_cache::release(a, 100);
    block_cache::release(b, 100);
    EXPECT_EQ(block_cache::acquire(70), b);  // of the same class: 65 to 128
    EXPECT_EQ(block_cache::acquire(128), a);
    block_cache::release(a, 128);
    block_cache::release(b, 70);
}

TEST(block_cache, aligns_blocks_to_cache_lines_without_overlap) {
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;
    for (std::size_t bytes = 0; bytes <= 1500; bytes += 13)
        for (int n = 0; n < 40; ++n) {
            auto* p = static_cast<unsigned char*>(block_cache::acquire(bytes));
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % block_cache::alignment, 0u);
            std::memset(p, static_cast<int>(blocks.size() % 251), bytes);
            blocks.emplace_back(p, bytes);
        }
    for (std::size_t n = 0; n < blocks.size(); ++n) {
        const auto [p, bytes] = blocks[n];
        EXPECT_TRUE(std::all_of(p, p + bytes, [n](unsigned char c) { return c == n % 251; }));
        block_cache::release(p, bytes);
    }
}

TEST(block_cache, honours_any_alignment) {
    const std::size_t used = used_bytes();
    for (std::size_t align = 1; align <= 4096; align *= 2) {
        void* p = block_cache::acquire(200, align);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % align, 0u);
        std::memset(p, 1, 200);
        block_cache::release(p, 200, align);
    }
    EXPECT_EQ(used_bytes(), used);
}

TEST(block_cache, gives_adjacent_addresses_to_consecutive_acquires) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    on_a_thread([] {
        // More than any thread has released before, so that the later ones are freshly cut.
        constexpr std::size_t count = 20000;
        std::vector<std::uintptr_t> at;
        for (std::size_t n = 0; n < count; ++n)
            at.push_back(reinterpret_cast<std::uintptr_t>(block_cache::acquire(192)));
        std::size_t adjacent = 0;
        for (std::size_t n = count / 2 + 1; n < count; ++n) adjacent += at[n] - at[n - 1] == 192;
        EXPECT_GT(adjacent, count / 2 * 9 / 10);
        for (auto p : at) block_cache::release(reinterpret_cast<void*>(p), 192);
    });
}

TEST(block_cache, counts_every_block_in_use) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    const std::size_t before = used_bytes();
    std::vector<void*> blocks;
    for (std::size_t n = 1; n <= 5000; ++n) {
        blocks.push_back(block_cache::acquire(256));
        ASSERT_EQ(used_bytes(), before + n * 256);
    }
    for (void* p : blocks) block_cache::release(p, 256);
    EXPECT_EQ(used_bytes(), before);
}

TEST(block_cache, does_not_count_blocks_from_operator_new) {
    const std::size_t before = chunk_bytes();
    void* p = block_cache::acquire(block_cache::maximum_block_bytes + 1);
    void* q = block_cache::acquire(0);
    EXPECT_EQ(chunk_bytes(), before);
    block_cache::release(p, block_cache::maximum_block_bytes + 1);
    block_cache::release(q, 0);
}

TEST(block_cache, retains_nothing_of_an_exited_thread) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    const std::size_t used = used_bytes();
    const std::size_t cached = block_cache::stats().cached_bytes;
    std::size_t grown = 0;
    for (int round = 0; round < 200; ++round) {
        on_a_thread([] {
            std::vector<void*> blocks;
            for (int n = 0; n < 1000; ++n) blocks.push_back(block_cache::acquire(320));
            for (void* p : blocks) block_cache::release(p, 320);
        });
        if (round == 0) grown = chunk_bytes();
    }
    EXPECT_EQ(chunk_bytes(), grown);  // the second thread lived on what the first one left
    EXPECT_EQ(used_bytes(), used);
    EXPECT_EQ(block_cache::stats().cached_bytes, cached);
}

TEST(block_cache, does_not_grow_between_producer_and_consumer) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    constexpr std::size_t bytes = 448;
    constexpr std::size_t in_flight = 256;
    std::mutex m;
    std::vector<void*> queue;
    const std::size_t used = used_bytes();
    const std::size_t before = chunk_bytes();
    constexpr int total = WEFT_TSAN ? 50'000 : 300'000;
    std::thread consumer([&] {
        for (int taken = 0; taken < total;) {
            std::vector<void*> got;
            {
                const std::lock_guard hold(m);
                got.swap(queue);
            }
            for (void* p : got) block_cache::release(p, bytes);
            taken += static_cast<int>(got.size());
            if (got.empty()) std::this_thread::yield();
        }
    });
    for (int n = 0; n < total;) {
        const std::lock_guard hold(m);
        for (; n < total && queue.size() < in_flight; ++n)
            queue.push_back(block_cache::acquire(bytes));
    }
    consumer.join();
    EXPECT_EQ(used_bytes(), used);
    // The blocks under way, what each side may cache, and one chunk: not all that was passed on.
    EXPECT_LE(chunk_bytes() - before, 1024u * 1024);
}

std::vector<void*> acquire_many(std::size_t count, std::size_t bytes) {
    std::vector<void*> blocks(count);
    for (void*& p : blocks) p = block_cache::acquire(bytes);
    return blocks;
}
void release_all(const std::vector<void*>& blocks, std::size_t bytes) {
    for (void* p : blocks) block_cache::release(p, bytes);
}

TEST(block_cache, bounds_what_one_thread_caches) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    on_a_thread([] {
        for (const std::size_t count : {400u, 600u, 1000u, 20'000u}) {
            release_all(acquire_many(count, 640), 640);
            EXPECT_LE(block_cache::stats().cached_bytes, 300u * 1024) << count;
        }
    });
}

// Also where more comes and goes than it may keep.
TEST(block_cache, keeps_blocks_that_a_thread_reuses) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    for (const std::size_t count : {350u, 1500u})
        on_a_thread([&] {
            for (int round = 0; round < 10; ++round) {
                const std::vector<void*> blocks = acquire_many(count, 640);
                EXPECT_LE(block_cache::stats().cached_bytes, 16u * 640);
                release_all(blocks, 640);
                EXPECT_GE(block_cache::stats().cached_bytes,
                          std::min(count * 640, 250u * std::size_t{1024}));
            }
        });
}

// The thread may never run again, and no other thread can get what it caches.
TEST(block_cache, caches_one_list_for_a_thread_that_only_releases) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    std::vector<void*> blocks;
    on_a_thread([&] { blocks = acquire_many(5000, 640); });
    on_a_thread([&] {
        release_all(blocks, 640);
        EXPECT_LE(block_cache::stats().cached_bytes, 16u * 640) << "of others";
        release_all(acquire_many(5000, 640), 640);
        EXPECT_LE(block_cache::stats().cached_bytes, 16u * 640) << "of its own";
    });
}

TEST(block_cache, never_gives_one_block_to_two_threads) {
    constexpr int thread_count = 4;
    constexpr int rounds = WEFT_TSAN || WEFT_ASAN ? 2'000 : 20'000;
    std::array<std::mutex, 16> locks;
    std::array<std::pair<std::uint64_t*, std::size_t>, 16> slots{};
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t)
        threads.emplace_back([&, t] {
            std::uint64_t seed = static_cast<std::uint64_t>(t) * 77 + 1;
            for (int n = 0; n < rounds; ++n) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                const auto slot = static_cast<std::size_t>(seed >> 60);
                const auto bytes = static_cast<std::size_t>(8 + (seed >> 33) % 1200);
                auto* p = static_cast<std::uint64_t*>(block_cache::acquire(bytes));
                *p = reinterpret_cast<std::uintptr_t>(p);
                std::pair<std::uint64_t*, std::size_t> old{p, bytes};
                {
                    const std::lock_guard hold(locks[slot]);
                    std::swap(old, slots[slot]);
                }
                if (old.first == nullptr) continue;
                EXPECT_EQ(*old.first, reinterpret_cast<std::uintptr_t>(old.first));
                block_cache::release(old.first, old.second);
            }
        });
    for (auto& t : threads) t.join();
    for (auto [p, bytes] : slots)
        if (p != nullptr) block_cache::release(p, bytes);
}

// An idle loop's turns until it has to wait for the next period. How many there were.
int idle(weft::time_point now) {
    int turns = 1;
    while (weft::detail::release_unused(now) <= now) ++turns;
    return turns;
}

TEST(block_cache, returns_unused_blocks_to_the_system) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    weft::time_point now = weft::testing::nothing_spare();
    const std::size_t before = chunk_bytes();
    release_all(acquire_many(20'000, 512), 512);
    const std::size_t peak = chunk_bytes();
    EXPECT_GE(peak, 20'000u * 512);
    idle(now);
    EXPECT_EQ(chunk_bytes(), peak);  // they were used just before
    int periods = 0;
    for (std::size_t had = peak; weft::detail::release_unused(now) != weft::never; ++periods) {
        now += weft::detail::unused_period;
        idle(now);
        EXPECT_GE(chunk_bytes(), had * 2 / 5) << "more than about half at once";
        had = chunk_bytes();
        if (had < peak / 10) had = 0;
    }
    EXPECT_LE(periods, 10);
    EXPECT_LE(chunk_bytes(), before);
}

TEST(block_cache, returns_memory_in_small_steps) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    weft::time_point now = weft::testing::nothing_spare();
    release_all(acquire_many(20'000, 512), 512);
    idle(now);
    now += weft::detail::unused_period;
    for (bool more = true; more;) {
        const std::size_t had = chunk_bytes();
        more = weft::detail::release_unused(now) <= now;
        EXPECT_LE(had - chunk_bytes(), 512u * 1024);
    }
    weft::testing::nothing_spare();
}

TEST(block_cache, allocates_no_chunk_under_steady_load) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    weft::time_point now = weft::testing::nothing_spare();
    release_all(acquire_many(5000, 704), 704);
    const std::size_t grown = chunk_bytes();
    for (int round = 0; round < 20; ++round) {
        idle(now);
        EXPECT_EQ(chunk_bytes(), grown);
        release_all(acquire_many(5000, 704), 704);
        EXPECT_EQ(chunk_bytes(), grown);
        now += weft::detail::unused_period;
    }
    weft::testing::nothing_spare();
}

TEST(block_cache, returns_blocks_released_by_another_thread) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    weft::testing::nothing_spare();
    const std::size_t before = chunk_bytes();
    std::vector<void*> blocks;
    on_a_thread([&] { blocks = acquire_many(5000, 320); });
    on_a_thread([&] { release_all({blocks.begin(), blocks.begin() + 2500}, 320); });
    weft::testing::nothing_spare();
    EXPECT_GE(chunk_bytes(), 2500u * 320);
    release_all({blocks.begin() + 2500, blocks.end()}, 320);
    weft::testing::nothing_spare();
    EXPECT_LE(chunk_bytes(), before);
}

// So that going over them is going over one piece.
TEST(block_cache, allocates_consecutive_chunks_for_many_blocks) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    weft::testing::nothing_spare();
    constexpr std::size_t bytes = 832, count = 10'000;
    const std::vector<void*> blocks = acquire_many(count, bytes);
    std::size_t gaps = 0;
    for (std::size_t n = 1; n < count; ++n) {
        const auto from = reinterpret_cast<std::uintptr_t>(blocks[n - 1]);
        const auto to = reinterpret_cast<std::uintptr_t>(blocks[n]);
        if (to - from > 3 * bytes) ++gaps;  // backwards too
    }
    EXPECT_LE(gaps, 16u) << "of more than a hundred chunks";
    release_all(blocks, bytes);
    weft::testing::nothing_spare();
}

TEST(block_cache, keeps_chunk_of_a_used_block_and_reuses_its_others) {
    WEFT_SKIP_WHERE_NOTHING_IS_CACHED();
    weft::testing::nothing_spare();
    const std::size_t before = chunk_bytes();
    std::vector<void*> blocks = acquire_many(10'000, 192), kept;
    for (std::size_t n = 0; n < blocks.size(); ++n)
        if (n % 500 == 0)
            kept.push_back(std::memset(blocks[n], static_cast<int>(n / 500), 192));
        else
            block_cache::release(blocks[n], 192);
    weft::testing::nothing_spare();
    const std::size_t pinned = chunk_bytes();
    EXPECT_LE(pinned - std::min(pinned, before), kept.size() * 64 * 1024);
    EXPECT_LE(pinned - std::min(pinned, before), 10'000u * 192 * 3 / 4);
    for (std::size_t n = 0; n < kept.size(); ++n) {
        const auto* p = static_cast<unsigned char*>(kept[n]);
        EXPECT_TRUE(std::all_of(p, p + 192, [n](unsigned char c) { return c == n; }));
    }
    blocks = acquire_many((pinned - used_bytes()) / 192 / 2, 192);
    EXPECT_EQ(chunk_bytes(), pinned);
    std::vector<void*> all = blocks;
    all.insert(all.end(), kept.begin(), kept.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
    release_all(all, 192);
    weft::testing::nothing_spare();
    EXPECT_LE(chunk_bytes(), before);
}

// Destroyed after the thread's lists, as it was constructed before them.
struct late_user {
    void* block = nullptr;
    ~late_user() {
        block_cache::release(block, 576);
        void* p = block_cache::acquire(576);
        std::memset(p, 7, 576);
        block_cache::release(p, 576);
    }
};

TEST(block_cache, works_in_a_later_thread_local_destructor) {
    const std::size_t used = used_bytes();
    on_a_thread([] {
        static thread_local late_user late;
        late.block = nullptr;
        late.block = block_cache::acquire(576);
    });
    EXPECT_EQ(used_bytes(), used);
}

TEST(block_cache, accepts_a_release_as_a_threads_first_call) {
    const std::size_t used = used_bytes();
    void* p = block_cache::acquire(832);
    on_a_thread([p] { block_cache::release(p, 832); });
    EXPECT_EQ(used_bytes(), used);
}

// Runs at the end of the program, which fails if it crashes or leaks.
struct static_user {
    void* block = block_cache::acquire(64);
    ~static_user() {
        block_cache::release(block, 64);
        block_cache::release(block_cache::acquire(900), 900);
    }
} during_static_destruction;

TEST(block_cache, works_before_main_and_in_static_destruction) {
    ASSERT_NE(during_static_destruction.block, nullptr);
}

}  // namespace
