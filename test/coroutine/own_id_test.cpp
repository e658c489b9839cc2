#include "weft/coroutine/detail/own_id.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "weft/coroutine/coroutine.hpp"

namespace weft {
namespace {

TEST(own_id, is_never_0_and_never_changes) {
    const coroutine<> c([] {});
    const std::uint64_t id = c.id();
    EXPECT_NE(id, 0u);
    EXPECT_EQ(c.id(), id);
}

TEST(own_id, is_unique_across_threads) {
    constexpr int threads = 4;
    constexpr int each = 1000;
    std::vector<std::uint64_t> seen[threads];
    {
        std::vector<std::jthread> all;
        for (auto& mine : seen)
            all.emplace_back([&mine] {
                for (int i = 0; i < each; ++i) mine.push_back(coroutine<>([] {}).id());
            });
    }
    std::set<std::uint64_t> ids;
    for (const auto& mine : seen) ids.insert(mine.begin(), mine.end());
    EXPECT_EQ(ids.size(), std::size_t{threads * each});
    EXPECT_EQ(ids.count(0), 0u);
}

TEST(own_id, is_the_same_for_concurrent_first_readers) {
    for (int round = 0; round < 200; ++round) {
        const coroutine<> c([] {});
        std::uint64_t seen[2] = {};
        std::latch both(2);
        {
            std::jthread other([&] {
                both.arrive_and_wait();
                seen[1] = c.id();
            });
            both.arrive_and_wait();
            seen[0] = c.id();
        }
        ASSERT_EQ(seen[0], seen[1]);
        ASSERT_NE(seen[0], 0u);
    }
}

TEST(own_id, matches_the_id_seen_inside_the_body) {
    std::uint64_t inside = 0;
    coroutine<> c([&] { inside = this_coroutine::id(); });
    c.resume();
    EXPECT_EQ(inside, c.id());
}

// Read before, or only after.
TEST(own_id, is_kept_by_reset) {
    coroutine<> c([] {});
    const std::uint64_t id = c.id();
    c.reset([] {});
    EXPECT_EQ(c.id(), id);
    coroutine<> d([] {});
    d.reset([] {});
    EXPECT_NE(d.id(), 0u);
    EXPECT_NE(d.id(), id);
}

}  // namespace
}  // namespace weft
