#include "weft/wheel/detail/slot_set.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

namespace weft::detail {
namespace {

template <std::size_t SlotCount>
void compare_with_a_std_set() {
    std::mt19937 random(SlotCount);
    auto slots = std::make_unique<slot_set<SlotCount>>();
    std::set<std::size_t> expected;
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t i = random() % SlotCount;
        if (random() % 64 < (step / 1'000 % 2 == 0 ? 20u : 44u)) {  // now fuller, now emptier
            slots->insert(i);
            expected.insert(i);
        } else if (!expected.empty()) {
            const auto at = expected.lower_bound(i);
            const std::size_t gone = at == expected.end() ? *expected.begin() : *at;
            slots->erase(gone);
            expected.erase(gone);
        }
        const std::size_t from = random() % (SlotCount + 1);
        const auto next = expected.lower_bound(from);
        ASSERT_EQ(slots->first(from), next == expected.end() ? SlotCount : *next);
        ASSERT_EQ(slots->first(), expected.empty() ? SlotCount : *expected.begin());
        ASSERT_EQ(slots->contains(i), expected.contains(i));
    }
}

TEST(slot_set, of_one_word_finds_what_a_std_set_finds) { compare_with_a_std_set<64>(); }
TEST(slot_set, of_eight_words_finds_what_a_std_set_finds) { compare_with_a_std_set<512>(); }
TEST(slot_set, of_one_summary_finds_what_a_std_set_finds) { compare_with_a_std_set<4096>(); }
TEST(slot_set, of_many_summaries_finds_what_a_std_set_finds) { compare_with_a_std_set<65536>(); }

TEST(slot_set, finds_the_first_and_the_last_slot) {
    slot_set<8192> slots;
    EXPECT_EQ(slots.first(), slots.none);
    slots.insert(8191);
    EXPECT_EQ(slots.first(), 8191u);
    EXPECT_EQ(slots.first(8191), 8191u);
    EXPECT_EQ(slots.first(8192), slots.none);
    slots.insert(0);
    EXPECT_EQ(slots.first(), 0u);
    EXPECT_EQ(slots.first(1), 8191u);
    slots.erase(8191);
    EXPECT_EQ(slots.first(1), slots.none);
}

}  // namespace
}  // namespace weft::detail
