// What one thread can see of it, and that many threads' luck finds nothing; every interleaving of
// few is in test/model/steal_deque_test.cpp.
#include "weft/queue/detail/steal_deque.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include "test/support/slow.hpp"

namespace {

using weft::detail::asymmetric_fence;
using weft::detail::steal_deque;
using weft::detail::steal_mark;
using weft::detail::steal_result;
using weft::detail::steal_status;

struct loot {
    unsigned number = 0;
    unsigned taken_count = 0;
};

template <std::size_t N>
std::array<loot, N> numbered() {
    std::array<loot, N> all;
    for (std::size_t n = 0; n < N; ++n) all[n].number = static_cast<unsigned>(n);
    return all;
}

TEST(steal_deque, owner_pops_the_last_and_thief_steals_the_first) {
    steal_deque<loot> deque;
    auto all = numbered<4>();
    for (loot& x : all) deque.push(x);
    EXPECT_EQ(deque.count(), 4u);
    EXPECT_EQ(deque.pop(), &all[3]);
    EXPECT_EQ(deque.steal().item, &all[0]);
    EXPECT_EQ(deque.pop(), &all[2]);
    EXPECT_EQ(deque.steal().item, &all[1]);
    EXPECT_TRUE(deque.empty());
    deque.check();
}

TEST(steal_deque, try_pop_takes_a_given_entry_only_if_it_is_last) {
    weft::detail::steal_core deque(4, asymmetric_fence());
    int a = 0, b = 0;
    ASSERT_TRUE(deque.try_push(&a));
    EXPECT_TRUE(deque.try_pop(&a)) << "the only one";
    EXPECT_FALSE(deque.try_pop(&a)) << "it is gone";
    ASSERT_TRUE(deque.try_push(&a));
    ASSERT_TRUE(deque.try_push(&b));
    EXPECT_FALSE(deque.try_pop(&a));
    EXPECT_TRUE(deque.try_pop(&b));
    EXPECT_EQ(deque.pop(), &a);
}

TEST(steal_deque, is_empty_for_owner_and_thief) {
    steal_deque<loot> deque;
    const auto find_nothing = [&] {
        EXPECT_TRUE(deque.empty());
        EXPECT_EQ(deque.pop(), nullptr);
        EXPECT_TRUE(deque.mark().empty());
        const steal_result<loot> r = deque.steal();
        EXPECT_EQ(r.status, steal_status::empty);
        EXPECT_EQ(r.item, nullptr);
        EXPECT_EQ(deque.steal(steal_mark()).status, steal_status::empty);
        deque.check();
    };
    find_nothing();
    loot x;
    deque.push(x);
    EXPECT_EQ(deque.pop(), &x);
    find_nothing();
    deque.push(x);
    EXPECT_EQ(deque.steal().status, steal_status::taken);
    find_nothing();
}

TEST(steal_deque, reports_a_steal_lost_to_another_thief) {
    steal_deque<loot> deque;
    auto all = numbered<2>();
    for (loot& x : all) deque.push(x);
    const steal_mark early = deque.mark();
    const steal_mark late = deque.mark();
    asymmetric_fence::heavy();
    EXPECT_EQ(deque.steal(early).item, &all[0]);
    EXPECT_EQ(deque.steal(late).status, steal_status::lost);
    EXPECT_EQ(deque.steal(late).item, nullptr);
    EXPECT_EQ(deque.pop(), &all[1]);
}

TEST(steal_deque, reports_a_steal_lost_to_the_owner) {
    steal_deque<loot> deque;
    loot x;
    deque.push(x);
    const steal_mark m = deque.mark();
    asymmetric_fence::heavy();
    EXPECT_EQ(deque.pop(), &x);
    EXPECT_EQ(deque.steal(m).status, steal_status::lost);
    deque.push(x);
    EXPECT_EQ(deque.steal(m).status, steal_status::lost) << "the same, but not the one of the mark";
    EXPECT_EQ(deque.pop(), &x);
}

TEST(steal_deque, grows_and_keeps_the_order) {
    steal_deque<loot> deque(1);
    EXPECT_EQ(deque.capacity(), 0u);
    auto all = numbered<100>();
    for (loot& x : all) {
        deque.push(x);
        deque.check();
    }
    EXPECT_EQ(deque.capacity(), 128u);
    for (std::size_t n = 0; n < 50; ++n) EXPECT_EQ(deque.steal().item, &all[n]);
    for (std::size_t n = 99; n >= 50; --n) EXPECT_EQ(deque.pop(), &all[n]);
    EXPECT_TRUE(deque.empty());
}

TEST(steal_deque, stops_growing_when_emptied_as_fast) {
    steal_deque<loot> deque(3);
    auto all = numbered<4>();
    for (unsigned round = 0; round < 1'000; ++round) {
        for (loot& x : all) deque.push(x);
        for (loot& x : all) EXPECT_EQ(deque.steal().item, &x);
    }
    EXPECT_EQ(deque.capacity(), 4u);
    deque.check();
}

TEST(steal_deque, rejects_a_push_without_enough_memory) {
    steal_deque<loot> deque(PTRDIFF_MAX);
    loot x;
    EXPECT_FALSE(deque.try_push(x));
    EXPECT_THROW(deque.push(x), std::bad_alloc);
    EXPECT_TRUE(deque.empty());
    deque.check();
}

TEST(steal_deque, peek_returns_the_entries_popped_next) {
    steal_deque<loot> deque(4);
    EXPECT_EQ(deque.peek(0), nullptr);
    auto all = numbered<6>();
    for (loot& x : all) deque.push(x);
    for (std::size_t n = 0; n < 6; ++n) EXPECT_EQ(deque.peek(n), &all[5 - n]);
    EXPECT_EQ(deque.peek(6), nullptr);
    while (deque.pop() != nullptr) {
    }
}

// -------------------------------------------------------------------------------------------------
// Under load. The thread that takes an entry counts it, without a lock: ThreadSanitizer detects a
// second taker.

// The owner pushes bursts and pops some of them, three thieves visit in turn; each entry is taken
// once.
void pillage(unsigned entries, asymmetric_fence fence, std::size_t first_count) {
    std::vector<loot> all(entries);
    steal_deque<loot> deque(first_count, fence);
    weft::atomic<bool> over{false};
    std::vector<std::thread> thieves;
    for (int t = 0; t < 3; ++t)
        thieves.emplace_back([&] {
            for (;;) {
                const bool last = over.load(std::memory_order_acquire);
                const steal_result<loot> r = deque.steal();
                if (r.item != nullptr) {
                    ++r.item->taken_count;
                    continue;
                }
                if (last && r.status == steal_status::empty) break;
                weft::detail::spin_yield();
            }
        });
    unsigned dice = 1;
    for (unsigned pushed = 0; pushed < entries;) {
        dice = dice * 1664525 + 1013904223;
        for (unsigned n = 0; n < 1 + (dice >> 28) && pushed < entries; ++n) {
            all[pushed].number = pushed;
            deque.push(all[pushed]);
            ++pushed;
        }
        for (unsigned n = 0; n < 1 + (dice >> 24) % 16; ++n)
            if (loot* x = deque.pop()) ++x->taken_count;
    }
    while (loot* x = deque.pop()) ++x->taken_count;
    over.store(true, std::memory_order_release);
    for (std::thread& t : thieves) t.join();
    EXPECT_TRUE(deque.empty());
    deque.check();
    unsigned lost = 0, twice = 0;
    for (const loot& x : all) {
        lost += x.taken_count == 0;
        twice += x.taken_count > 1;
    }
    EXPECT_EQ(lost, 0u);
    EXPECT_EQ(twice, 0u);
}

TEST(steal_deque, gives_each_of_many_entries_to_one_thread) { pillage(1'000'000, {}, 2); }

TEST(steal_deque, gives_each_of_many_entries_once_with_an_owner_fence) {
    pillage(weft::testing::slow ? 100'000 : 1'000'000, asymmetric_fence::full(), 256);
}

// Two owners steal from each other by rounds of one fence.
TEST(steal_deque, lets_two_owners_steal_from_each_other) {
    const unsigned entries = weft::testing::slow ? 20'000 : 200'000;
    std::array<std::vector<loot>, 2> all{std::vector<loot>(entries), std::vector<loot>(entries)};
    std::array<steal_deque<loot>, 2> deques;
    const auto work = [&](std::size_t me) {
        for (unsigned n = 0; n < entries; ++n) {
            deques[me].push(all[me][n]);
            if (n % 2 == 1) {
                if (loot* mine = deques[me].pop()) ++mine->taken_count;
            }
            const steal_mark m = deques[1 - me].mark();
            if (m.empty()) continue;
            asymmetric_fence::heavy();
            if (loot* other = deques[1 - me].steal(m).item) ++other->taken_count;
        }
        while (loot* mine = deques[me].pop()) ++mine->taken_count;
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    for (const auto& half : all)
        for (const loot& x : half) ASSERT_EQ(x.taken_count, 1u);
}

#if GTEST_HAS_DEATH_TEST && WEFT_DEBUG
TEST(steal_deque_death, aborts_when_destroyed_with_entries) {
    loot x;
    EXPECT_DEATH(
        {
            steal_deque<loot> deque;
            deque.push(x);
        },
        "steal_deque: destroyed with something in it");
}
#endif

}  // namespace
