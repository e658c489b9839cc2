#include "weft/wheel/wheel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "test/wheel/model.hpp"

namespace weft {
namespace {

// wheel_base_test has the laws that do not depend on slots.

constexpr tick second = 1'000;
constexpr tick day = 86'400 * second;
constexpr tick year = 365 * day;

TEST(wheel, matches_the_model) {
    const std::uint64_t seed = test::seed();
    SCOPED_TRACE("WEFT_TEST_SEED=" + std::to_string(seed));
    test::walk(seed, 20).run(test::walk_steps);
}

TEST(wheel, matches_the_model_across_the_overflow_list) {
    const std::uint64_t seed = test::seed();
    SCOPED_TRACE("WEFT_TEST_SEED=" + std::to_string(seed));
    test::walk(seed, 36).run(test::walk_steps / 4);
}

TEST(wheel, any_duration_fires_at_its_tick_and_not_before) {
    const tick bases[] = {0, 1, 255, 256, 0xffff'fffe, 0xffff'ffff, 0x1'0000'0000, 123'456'789'012};
    std::vector<tick> delays = {
        40 * second, 86'400, 86'400 * second - 1, day,          49 * day,
        50 * day,    year,   10 * year,           1'000 * year, tick_never / 2};
    for (unsigned bit = 0; bit < 63; ++bit)
        for (const tick d : {(tick{1} << bit) - 1, tick{1} << bit, (tick{1} << bit) + 1})
            if (d != 0) delays.push_back(d);
    for (const tick base : bases)
        for (const tick delay : delays) {
            wheel w(base);
            wheel_node n;
            const tick deadline = tick_after(base, delay);
            w.add(n, deadline);
            ASSERT_EQ(w.next(), deadline);
            ASSERT_EQ(w.advance(base + delay / 2, [](wheel_node&) {}), 0u);
            ASSERT_EQ(w.advance(deadline - 1, [](wheel_node&) {}), 0u) << base << " " << delay;
            w.check();
            ASSERT_EQ(w.next(), deadline);
            ASSERT_EQ(w.advance(deadline, [](wheel_node&) {}), 1u) << base << " " << delay;
        }
}

TEST(wheel, the_last_tick_before_never_is_a_deadline_like_any_other) {
    wheel w;
    wheel_node n;
    w.add(n, tick_never - 1);
    EXPECT_EQ(w.next(), tick_never - 1);
    EXPECT_EQ(w.advance(tick_never - 2, [](wheel_node&) {}), 0u);
    EXPECT_EQ(w.advance(tick_never, [](wheel_node&) {}), 1u);
}

TEST(wheel, catching_up_a_day_fires_in_order) {
    std::mt19937_64 random(3);
    std::deque<test::timer> timers(20'000);
    wheel w(77);
    for (test::timer& t : timers) w.add(t, 77 + random() % day);
    tick last = 0;
    EXPECT_EQ(w.advance(77 + day,
                        [&](wheel_node& n) {
                            EXPECT_GE(n.deadline(), last);
                            last = n.deadline();
                        }),
              timers.size());
    EXPECT_TRUE(w.empty());
}

// Each jump passes 3 * 10^11 ticks: were it a walk, this would take years.
TEST(wheel, a_jump_of_ten_years_costs_no_walk_over_the_range) {
    wheel w;
    wheel_node near, far;
    for (int i = 0; i < 20'000; ++i) {
        w.add(near, w.now() + day);
        w.add(far, w.now() + 10 * year);
        ASSERT_EQ(w.advance(w.now() + 10 * year, [](wheel_node&) {}), 2u);
    }
    w.check();
}

// ---------------------------------------------------------------------------------------- sleeping

struct sleeper {
    wheel& w;
    int real = 0;
    int vain = 0;

    void sleep_through() {
        for (tick t = w.next(); t != tick_never; t = w.next()) {
            ASSERT_GT(t, w.now());
            if (w.advance(t, [](wheel_node&) {}) != 0)
                ++real;
            else
                ++vain;
        }
    }
};

TEST(wheel, sleeping_until_next_wakes_once_for_each_deadline) {
    std::mt19937_64 random(5);
    std::deque<test::timer> timers(1'000);
    wheel w(12'345);
    for (test::timer& t : timers) w.add(t, w.now() + 1 + (random() >> (24 + random() % 32)));
    sleeper s{w};
    s.sleep_through();
    EXPECT_TRUE(w.empty());
    EXPECT_LE(s.real, 1'000);
    EXPECT_EQ(s.vain, 0);
}

TEST(wheel, removals_cause_no_two_consecutive_spurious_wakes) {
    std::mt19937_64 random(6);
    for (int round = 0; round < 100; ++round) {
        std::deque<test::timer> timers(300);
        wheel w(random() >> 20);
        for (test::timer& t : timers) w.add(t, w.now() + 1 + (random() >> (24 + random() % 32)));
        for (test::timer& t : timers)
            if (random() % 4 != 0) w.remove(t);
        bool vain_before = false;
        while (w.next() != tick_never) {
            const bool vain = w.advance(w.next(), [](wheel_node&) {}) == 0;
            ASSERT_FALSE(vain && vain_before);
            vain_before = vain;
        }
        ASSERT_FALSE(vain_before);
        ASSERT_TRUE(w.empty());
    }
}

TEST(wheel, has_no_next_tick_when_all_nodes_are_removed) {
    std::mt19937_64 random(7);
    std::deque<test::timer> timers(1'000);
    wheel w;
    for (test::timer& t : timers) w.add(t, random() >> (random() % 64));
    for (test::timer& t : timers) w.remove(t);
    EXPECT_EQ(w.next(), tick_never);
    w.check();
}

TEST(wheel, advance_fires_at_most_the_given_count_and_continues) {
    std::deque<test::timer> timers(10);
    wheel w;
    for (std::size_t i = 0; i < timers.size(); ++i) w.add(timers[i], 5 + i / 4);
    std::vector<wheel_node*> order;
    const auto sink = [&](wheel_node& n) { order.push_back(&n); };
    EXPECT_EQ(w.advance(100, sink, 3), 3u);
    EXPECT_EQ(w.next(), w.now()) << "the rest is due";
    EXPECT_EQ(w.size(), 7u);
    w.check();
    EXPECT_TRUE(w.remove(timers[4])) << "one that is left";
    EXPECT_EQ(w.advance(100, sink, 0), 0u);
    EXPECT_EQ(w.advance(100, sink, 4), 4u);
    EXPECT_EQ(w.advance(100, sink), 2u);
    EXPECT_EQ(w.next(), tick_never);
    std::size_t at = 0;
    for (test::timer& t : timers) {
        if (&t == &timers[4]) continue;
        EXPECT_EQ(order[at++], &t);
    }
}

}  // namespace
}  // namespace weft
