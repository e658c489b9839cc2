#include "weft/wait/detail/timer_heap.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace weft {
namespace {

using detail::timer_heap;

time_point at(int n) { return time_point(duration(n)); }

timer_node* take_first(timer_heap& h) {
    timer_node* t = h.due(never);
    if (t != nullptr) h.disarm(*t);
    return t;
}

TEST(timer_heap, pops_by_deadline_and_then_by_arming_order) {
    timer_heap h;
    EXPECT_EQ(h.earliest(), never);
    timer_node t[6];
    const int deadlines[] = {5, 3, 5, 1, 3, 5};
    for (int i = 0; i < 6; ++i) {
        t[i].deadline = at(deadlines[i]);
        h.arm(t[i]);
        EXPECT_TRUE(t[i].armed);
    }
    for (int i : {3, 1, 4, 0, 2, 5}) {
        EXPECT_EQ(h.earliest(), t[i].deadline);
        EXPECT_EQ(take_first(h), &t[i]);
        EXPECT_FALSE(t[i].armed);
    }
    EXPECT_TRUE(h.empty());
}

TEST(timer_heap, due_can_exclude_timers_armed_later) {
    timer_heap h;
    timer_node early, late;
    late.deadline = at(2);
    h.arm(late);
    const std::uint64_t so_far = h.armed_count();
    EXPECT_EQ(h.due(at(1)), nullptr);
    EXPECT_EQ(h.due(at(2)), &late);
    early.deadline = at(1);
    h.arm(early);
    EXPECT_EQ(h.due(at(2)), &early);
    EXPECT_EQ(h.due(at(2), so_far), nullptr);
    h.disarm(early);
    EXPECT_EQ(h.due(at(2), so_far), &late);
    h.disarm(late);
}

// Against a sorted set, with timers that go from wherever they are.
TEST(timer_heap, matches_a_sorted_set_under_random_removals) {
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        timer_heap h;
        std::vector<std::unique_ptr<timer_node>> timers;
        std::vector<std::uint64_t> order(300);
        std::set<std::pair<time_point, std::uint64_t>> model;  // and the number of the arming
        for (std::size_t i = 0; i < order.size(); ++i)
            timers.push_back(std::make_unique<timer_node>());
        for (int step = 0; step < 3'000; ++step) {
            const std::size_t i = random() % order.size();
            timer_node& t = *timers[i];
            if (!t.armed) {
                t.deadline = at(static_cast<int>(random() % 50));
                order[i] = h.armed_count();
                h.arm(t);
                model.emplace(t.deadline, order[i]);
            } else {
                model.erase({t.deadline, order[i]});
                h.disarm(t);
            }
            ASSERT_EQ(h.earliest(), model.empty() ? never : model.begin()->first);
        }
        for (const auto& [deadline, number] : model) {
            timer_node* const first = take_first(h);
            ASSERT_NE(first, nullptr);
            EXPECT_EQ(first->deadline, deadline);
            for (std::size_t i = 0; i < order.size(); ++i)
                if (timers[i].get() == first) {
                    EXPECT_EQ(order[i], number);
                }
        }
        EXPECT_TRUE(h.empty());
    }
}

}  // namespace
}  // namespace weft
