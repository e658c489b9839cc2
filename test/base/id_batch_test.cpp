#include "weft/base/detail/id_batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace {

using weft::detail::id_batch;
using weft::detail::id_supply;

TEST(id_batch, starts_at_one_and_increases_by_one_on_one_thread) {
    id_supply ids;
    id_batch mine;
    for (std::uint64_t n = 1; n <= 2 * id_supply::batch_count; ++n) ASSERT_EQ(ids.next(mine), n);
}

TEST(id_batch, never_repeats_an_id_across_threads) {
    id_supply ids;
    std::array<std::vector<std::uint64_t>, 4> got;
    std::vector<std::thread> threads;
    for (auto& mine : got)
        threads.emplace_back([&] {
            id_batch batch;
            for (std::uint64_t n = 0; n < 2 * id_supply::batch_count + 7; ++n)
                mine.push_back(ids.next(batch));
        });
    for (std::thread& t : threads) t.join();
    std::vector<std::uint64_t> all;
    for (const auto& one : got) all.insert(all.end(), one.begin(), one.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
    EXPECT_NE(all.front(), 0u);
}

}  // namespace
