#include "weft/hook/detail/number_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace {

using weft::atomic;
using weft::hook::number_table;

constinit number_table<atomic<std::uint32_t>> table;

TEST(number_table, has_a_slot_for_each_fd_once_created) {
    EXPECT_EQ(table.find(100'000), nullptr);
    auto* const place = table.make(100'000);
    ASSERT_NE(place, nullptr);
    EXPECT_EQ(place->load(), 0u);
    EXPECT_EQ(table.make(100'000), place);
    EXPECT_EQ(table.find(100'000), place);
    EXPECT_NE(table.find(100'001), place);
    EXPECT_EQ(table.find(1), nullptr);
    EXPECT_EQ(table.make(-1), nullptr);
    EXPECT_EQ(table.find(-1), nullptr);
    EXPECT_NE(table.make((1 << 30) - 1), nullptr);
    EXPECT_EQ(table.make(1 << 30), nullptr);
}

TEST(number_table, iterates_a_range_across_chunks) {
    table.make(32'767)->store(1);
    table.make(32'768)->store(2);
    std::vector<int> met;
    table.for_each(32'767, 32'768, [&](int number, auto& place) {
        met.push_back(number);
        EXPECT_EQ(place.load(), met.size());
    });
    EXPECT_EQ(met, (std::vector{32'767, 32'768}));
    table.for_each(5, 4, [](int, auto&) { FAIL(); });
}

}  // namespace
