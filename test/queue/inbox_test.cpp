// What one thread can see of it, and that many threads' luck finds nothing; every interleaving of
// few is in test/model/inbox_test.cpp.
#include "weft/queue/detail/inbox.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

namespace {

using weft::forward_node;
using weft::detail::inbox;

struct item : forward_node<> {
    explicit item(int n = 0, std::size_t p = 0) : value(n), producer(p) {}
    int value;
    std::size_t producer;
};

std::vector<int> drained(weft::forward_queue<item> q) {
    q.check();
    std::vector<int> all;
    while (item* x = q.pop_front()) all.push_back(x->value);
    return all;
}

using ints = std::vector<int>;

TEST(inbox, take_returns_all_in_order) {
    static constinit inbox<item> box;
    item a(1), b(2), c(3);
    EXPECT_TRUE(box.push(a));
    EXPECT_FALSE(box.push(b));
    EXPECT_FALSE(box.push(c));
    box.check();
    EXPECT_EQ(drained(box.take()), (ints{1, 2, 3}));
    EXPECT_TRUE(box.empty());
    EXPECT_EQ(drained(box.take()), ints{});
}

TEST(inbox, first_push_after_a_take_needs_a_wake) {
    inbox<item> box;
    item a(1), b(2);
    for (int round = 0; round < 3; ++round) {
        EXPECT_TRUE(box.push(a));
        EXPECT_FALSE(box.push(b));
        EXPECT_EQ(drained(box.take()), (ints{1, 2}));
    }
}

TEST(inbox, push_needs_no_wake_while_the_owner_watches) {
    inbox<item> box;
    item a(1), b(2);
    EXPECT_EQ(drained(box.take_and_watch()), ints{});
    EXPECT_TRUE(box.empty());
    box.check();
    EXPECT_FALSE(box.push(a));
    EXPECT_FALSE(box.empty());
    EXPECT_FALSE(box.push(b));
    box.check();
    EXPECT_EQ(drained(box.take_and_watch()), (ints{1, 2}));
    EXPECT_FALSE(box.push(a));
    EXPECT_EQ(drained(box.take()), ints{1});
    EXPECT_TRUE(box.push(b)) << "the last look was a take";
    EXPECT_EQ(drained(box.take()), ints{2});
    EXPECT_EQ(drained(box.take_and_watch()), ints{});
    EXPECT_EQ(drained(box.take()), ints{});
    EXPECT_TRUE(box.push(a));
    EXPECT_EQ(drained(box.take()), ints{1});
}

TEST(inbox, counts_the_wakes_that_were_needed) {
    inbox<item> box;
    item a(1), b(2);
    std::size_t owed = 0;
    for (int round = 0; round < 16; ++round) {
        owed += box.push(a);
        owed += box.push(b);
        drained(round % 3 == 0 ? box.take_and_watch() : box.take());
        EXPECT_EQ(box.owed_count(), owed);
        drained(round % 5 == 0 ? box.take_and_watch() : box.take());
        EXPECT_EQ(box.owed_count(), owed);
    }
    EXPECT_GT(owed, 5u);
    EXPECT_LT(owed, 16u);
}

TEST(inbox, accepts_a_taken_element_again_at_once) {
    inbox<item> box;
    item a(1), b(2);
    EXPECT_TRUE(box.push(a));
    EXPECT_FALSE(box.push(b));
    auto taken = box.take();
    EXPECT_TRUE(box.push(*taken.pop_front()));
    EXPECT_FALSE(box.push(*taken.pop_front()));
    EXPECT_EQ(drained(box.take()), (ints{1, 2}));
}

// Producers push, the owner sleeps when there is nothing: a lost wake is a test that never ends.
void converse(bool watch) {
    constexpr std::size_t producer_count = 3;
    constexpr int each = WEFT_TSAN || WEFT_ASAN ? 5'000 : 50'000;
    inbox<item> box;
    std::atomic<int> wakes{0};
    std::vector<std::deque<item>> items(producer_count);
    std::vector<std::thread> producers;
    for (std::size_t p = 0; p < producer_count; ++p)
        for (int n = 0; n < each; ++n) items[p].emplace_back(n, p);
    for (std::size_t p = 0; p < producer_count; ++p)
        producers.emplace_back([&, p] {
            for (item& x : items[p]) {
                if (!box.push(x)) continue;
                wakes.fetch_add(1);
                wakes.notify_one();
            }
        });
    std::vector<int> next(producer_count, 0);
    int left = static_cast<int>(producer_count) * each;
    while (left > 0) {
        const int heard = wakes.load();
        auto taken = watch ? box.take_and_watch() : box.take();
        if (watch && taken.empty()) taken = box.take();
        if (taken.empty()) wakes.wait(heard);
        while (item* x = taken.pop_front()) {
            ASSERT_EQ(x->value, next[x->producer]++);
            --left;
        }
    }
    for (auto& t : producers) t.join();
    EXPECT_TRUE(box.empty());
    EXPECT_GE(wakes.load(), 1);
}

TEST(inbox, loses_no_element_and_no_wake_between_threads) { converse(false); }
TEST(inbox, loses_no_element_and_no_wake_when_watched) { converse(true); }

#if GTEST_HAS_DEATH_TEST
TEST(inbox_death, check_detects_a_cycle) {
    inbox<item> box;
    item a(1), b(2), c(3);
    static_cast<void>(box.push(a));
    static_cast<void>(box.push(b));
    weft::detail::forward_link& first = a;
    first.next = &b;
    EXPECT_DEATH(box.check(), "inbox: a circle");
    static_cast<void>(box.push(c));
    EXPECT_DEATH(box.check(), "inbox: a circle") << "though the last is not in it";
    first.next = nullptr;
    drained(box.take());
}

#if WEFT_DEBUG
TEST(inbox_death, aborts_when_a_queued_element_is_pushed_again) {
    inbox<item> box;
    item a(1);
    static_cast<void>(box.push(a));
    EXPECT_DEATH(static_cast<void>(box.push(a)), "inbox: an element is in a queue already");
    drained(box.take());
}

TEST(inbox_death, aborts_when_destroyed_with_elements) {
    item a(1);
    EXPECT_DEATH(
        {
            inbox<item> box;
            static_cast<void>(box.push(a));
        },
        "inbox: destroyed with something in it");
}
#endif
#endif

}  // namespace
