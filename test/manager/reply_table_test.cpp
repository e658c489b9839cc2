#include "weft/manager/detail/reply_table.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "test/support/slow.hpp"

namespace {

using weft::detail::awaited_reply;
using weft::detail::reply_table;
using weft::detail::type_id_of;

struct waits_for : awaited_reply {
    explicit waits_for(std::uint64_t n) : awaited_reply(type_id_of<int>()) { sequence = n; }
};

TEST(reply_table, finds_each_reply_once_and_counts_late_ones) {
    reply_table t;
    constexpr std::uint64_t count = 1000;
    std::deque<waits_for> all;
    for (std::uint64_t n = 0; n < count; ++n) ASSERT_TRUE(t.insert(all.emplace_back(n * 7)));
    EXPECT_EQ(t.count(), count);
    for (std::uint64_t n = 0; n < count; ++n) {
        EXPECT_EQ(t.take(n * 7, type_id_of<int>()), &all[static_cast<std::size_t>(n)]);
        EXPECT_EQ(t.take(n * 7, type_id_of<int>()), nullptr) << "twice";
    }
    EXPECT_EQ(t.late_count(), count);
    EXPECT_EQ(t.count(), 0u);
    EXPECT_EQ(t.take(3, type_id_of<int>()), nullptr) << "nobody's";
    EXPECT_EQ(t.late_count(), count + 1);
}

TEST(reply_table, refuses_a_sequence_that_is_awaited) {
    reply_table t;
    waits_for a(5), b(5);
    EXPECT_TRUE(t.insert(a));
    EXPECT_FALSE(t.insert(b));
    EXPECT_FALSE(t.remove(b));
    EXPECT_TRUE(t.remove(a));
    EXPECT_TRUE(t.insert(b));
    EXPECT_TRUE(t.remove(b));
}

TEST(reply_table, keeps_a_waiter_for_another_type) {
    reply_table t;
    waits_for a(5);
    ASSERT_TRUE(t.insert(a));
    EXPECT_EQ(t.take(5, type_id_of<char>()), nullptr);
    EXPECT_EQ(t.misfit_count(), 1u);
    EXPECT_EQ(t.late_count(), 0u);
    EXPECT_EQ(t.take(5, type_id_of<int>()), &a);
}

TEST(reply_table, never_repeats_a_sequence) {
    reply_table t;
    const std::uint64_t first = t.new_sequence();
    EXPECT_NE(first, 0u);
    EXPECT_NE(t.new_sequence(), first);
}

TEST(reply_table, gives_each_reply_to_only_one_of_two_threads) {
    reply_table t;
    const int rounds = weft::testing::slow ? 2'000 : 20'000;
    std::atomic<std::uint64_t> at{0};
    std::atomic<bool> over{false};
    std::atomic<int> taken{0};
    const auto takes = [&] {
        for (std::uint64_t seen = 0; !over;) {
            const std::uint64_t n = at;
            if (n == seen) {
                std::this_thread::yield();
                continue;
            }
            seen = n;
            if (auto* r = t.take(n, type_id_of<int>())) {
                ++taken;
                static_cast<waits_for*>(r)->sequence = 0;  // ours alone
            }
        }
    };
    std::thread a(takes), b(takes);
    int left = 0;
    std::deque<waits_for> all;
    for (int i = 1; i <= rounds; ++i) {
        waits_for& w = all.emplace_back(static_cast<std::uint64_t>(i));
        ASSERT_TRUE(t.insert(w));
        at = w.sequence;
        if (i % 3 == 0) std::this_thread::yield();
        // Any of the threads may be first.
        const auto n = static_cast<std::uint64_t>(i);
        if (auto* r = t.take(n, type_id_of<int>())) left += r == &w ? 1 : 0;
    }
    over = true;
    a.join(), b.join();
    EXPECT_EQ(taken + left, rounds);
    EXPECT_EQ(t.count(), 0u);
}

TEST(reply_table_death, destroyed_while_a_reply_is_awaited) {
    EXPECT_DEATH(
        {
            reply_table t;
            waits_for a(5);
            static_cast<void>(t.insert(a));
        },
        "a task_manager is destroyed while a reply is awaited from it");
}

}  // namespace
