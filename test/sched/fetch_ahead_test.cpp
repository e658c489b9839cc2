#include "weft/sched/detail/fetch_ahead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <vector>

#include "test/support/manual_executor.hpp"

namespace {

using weft::detail::fetch_ahead;
using weft::detail::fetches;

// A queue that notes which of its entries are read, and has only the entries that it counts.
class noting_queue {
public:
    noting_queue(std::size_t count, weft::ready_turn each) : entries_(count, each) {}
    std::size_t count() const noexcept { return entries_.size(); }
    const weft::ready_turn& operator[](std::size_t i) const {
        EXPECT_LT(i, entries_.size());
        static const weft::ready_turn none{};
        if (i >= entries_.size()) return none;
        looked_at_.push_back(i);
        return entries_[i];
    }
    std::vector<std::size_t> looked_at() const {
        std::sort(looked_at_.begin(), looked_at_.end());
        looked_at_.erase(std::unique(looked_at_.begin(), looked_at_.end()), looked_at_.end());
        return looked_at_;
    }

private:
    std::vector<weft::ready_turn> entries_;
    mutable std::vector<std::size_t> looked_at_;
};

std::vector<std::size_t> from_to(std::size_t first, std::size_t last) {
    std::vector<std::size_t> all;
    for (std::size_t i = first; i <= last; ++i) all.push_back(i);
    return all;
}

TEST(fetching_ahead, reads_a_queue_of_any_length_only_within_its_bounds) {
    weft::testing::manual_executor on;
    weft::testing::coroutine_flow f(on);
    for (weft::flow* const of : {static_cast<weft::flow*>(nullptr), static_cast<weft::flow*>(&f)})
        for (std::size_t count = 0; count <= 70; ++count)
            for (std::size_t left = 1; left <= 64; ++left) {
                const noting_queue q(count, {std::noop_coroutine(), of});
                fetch_ahead::before_turn(q, left);
            }
}

TEST(fetching_ahead, prefetches_up_to_three_entries_of_a_short_queue_each_turn) {
    for (std::size_t count = 2; count <= fetch_ahead::burst_from; ++count) {
        const noting_queue q(count, {std::noop_coroutine(), nullptr});
        fetch_ahead::before_turn(q, 1);
        EXPECT_EQ(q.looked_at(), from_to(1, std::min<std::size_t>(count - 1, 3)));
    }
}

TEST(fetching_ahead, prefetches_sixteen_entries_of_a_long_queue_at_intervals) {
    constexpr std::size_t many = fetch_ahead::burst_from + 1;
    for (std::size_t left = 1; left <= 64; ++left) {
        const noting_queue q(many, {std::noop_coroutine(), nullptr});
        fetch_ahead::before_turn(q, left);
        const bool is_time = left % fetch_ahead::burst_count == 0;
        EXPECT_EQ(q.looked_at(), is_time ? from_to(0, 15) : std::vector<std::size_t>());
    }
}

}  // namespace
