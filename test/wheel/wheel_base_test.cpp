#include "weft/wheel/detail/wheel_base.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "weft/wheel/wheel.hpp"

// The laws of a wheel that do not depend on its slots.

namespace weft {
namespace {

struct wheel_base : ::testing::Test {
    static_assert(!std::is_copy_constructible_v<wheel>);
    std::vector<const wheel_node*> seen;
    wheel w{1'000};

    void advance(tick to) {
        seen.clear();
        w.advance(to, [this](wheel_node& n) { seen.push_back(&n); });
    }
};

using order = std::vector<const wheel_node*>;

TEST_F(wheel_base, starts_empty_at_the_given_tick) {
    EXPECT_EQ(w.now(), 1'000u);
    EXPECT_TRUE(w.empty());
    EXPECT_EQ(w.next(), tick_never);
    w.check();
}

TEST_F(wheel_base, fires_by_deadline_and_then_by_insertion_order) {
    wheel_node a, b, c, d;
    w.add(a, 1'700);
    w.add(b, 1'003);
    w.add(c, 1'700);
    advance(1'500);  // a and c are moved on the way
    EXPECT_EQ(seen, order{&b});
    w.add(d, 1'700);
    w.add(b, 1'699);
    advance(1'700);
    EXPECT_EQ(seen, (order{&b, &a, &c, &d}));
}

TEST_F(wheel_base, fires_never_early_and_at_its_tick) {
    for (tick delay = 1; delay <= 3'000; delay += 7) {
        wheel_node n;
        const tick deadline = w.now() + delay;
        w.add(n, deadline);
        EXPECT_EQ(w.next(), deadline);
        advance(deadline - 1);
        ASSERT_TRUE(seen.empty()) << delay;
        EXPECT_EQ(w.next(), deadline);
        advance(deadline);
        ASSERT_EQ(seen, order{&n}) << delay;
    }
}

TEST_F(wheel_base, fires_past_deadlines_first_in_insertion_order) {
    wheel_node a, b, c, d;
    w.add(a, 1'001);
    w.add(b, 1'000);
    w.add(c, 0);
    w.add(d, 999);
    EXPECT_EQ(w.next(), 1'000u);
    w.check();
    advance(1'001);
    EXPECT_EQ(seen, (order{&b, &c, &d, &a}));
}

TEST_F(wheel_base, advance_to_the_current_tick_fires_due_nodes) {
    wheel_node a, b;
    w.add(a, 1'000);
    w.add(b, 1'001);
    advance(1'000);
    EXPECT_EQ(seen, order{&a});
    EXPECT_TRUE(w.remove(b));
}

TEST_F(wheel_base, time_does_not_go_back) {
    wheel_node a, b;
    w.add(a, 1'000);
    w.add(b, 1'001);
    advance(5);
    EXPECT_EQ(w.now(), 1'000u);
    EXPECT_EQ(seen, order{&a});
    EXPECT_TRUE(w.remove(b));
}

TEST_F(wheel_base, the_infinite_deadline_never_comes) {
    wheel_node n;
    w.add(n, tick_never);
    EXPECT_EQ(w.next(), tick_never);
    EXPECT_EQ(w.size(), 1u);
    advance(tick_never);
    EXPECT_TRUE(seen.empty());
    EXPECT_TRUE(w.remove(n));
    w.add(n, tick_never);
    advance(tick_never);  // not even at the end of time
    EXPECT_TRUE(seen.empty());
    w.check();
    EXPECT_TRUE(w.remove(n));
    EXPECT_TRUE(w.empty());
}

TEST_F(wheel_base, removed_nodes_never_fire_and_may_be_freed) {
    auto a = std::make_unique<wheel_node>();
    wheel_node b;
    w.add(*a, 1'100);
    w.add(b, 1'100);
    EXPECT_TRUE(w.remove(*a));
    EXPECT_FALSE(w.remove(*a));
    a.reset();
    advance(2'000);
    EXPECT_EQ(seen, order{&b});
    EXPECT_FALSE(w.remove(b)) << "handed over";
}

// ------------------------------------------------------------------------------------ the sink

TEST_F(wheel_base, nodes_added_by_the_sink_wait_for_the_next_advance) {
    wheel_node n;
    w.add(n, 1'001);
    int calls = 0;
    const auto again = [&](wheel_node& m) {
        ++calls;
        EXPECT_EQ(w.now(), 1'500u);
        w.add(m, 1'200);  // past by now
    };
    EXPECT_EQ(w.advance(1'500, again), 1u);
    EXPECT_EQ(w.next(), 1'500u);
    EXPECT_EQ(w.advance(1'500, again), 1u);
    EXPECT_EQ(calls, 2);
    EXPECT_TRUE(w.remove(n));
}

TEST_F(wheel_base, the_sink_may_remove_pending_nodes_and_free_its_argument) {
    auto first = std::make_unique<wheel_node>();
    auto second = std::make_unique<wheel_node>();
    wheel_node third;
    w.add(*first, 1'001);
    w.add(*second, 1'001);
    w.add(third, 1'002);
    int calls = 0;
    w.advance(1'002, [&](wheel_node& n) {
        ++calls;
        EXPECT_EQ(calls == 2, &n == &third);
        if (second != nullptr) {
            EXPECT_EQ(w.size(), 2u);
            EXPECT_TRUE(w.remove(*second));
            first.reset();
            second.reset();
            w.check();
        }
    });
    EXPECT_EQ(calls, 2);
}

TEST_F(wheel_base, nodes_left_by_a_throwing_sink_fire_first_next_time) {
    wheel_node a, b, c, d;
    w.add(a, 1'001);
    w.add(b, 1'002);
    w.add(c, 1'003);
    EXPECT_THROW(w.advance(1'005, [](wheel_node&) { throw std::runtime_error("no"); }),
                 std::runtime_error);
    EXPECT_EQ(w.size(), 2u);
    EXPECT_EQ(w.next(), 1'005u);
    w.add(d, 0);
    advance(1'005);
    EXPECT_EQ(seen, (order{&b, &c, &d}));
}

// -------------------------------------------------------------------------------------- misuse

TEST(wheel_base_death, a_node_is_not_added_twice) {
    wheel w;
    wheel_node n;
    w.add(n, 5);
    EXPECT_DEATH(w.add(n, 6), "weft: a node added to a wheel twice");
    EXPECT_TRUE(w.remove(n));
}

TEST(wheel_base_death, a_wheel_is_not_destroyed_with_nodes) {
    const auto die = [] {
        wheel_node n;
        wheel w;
        w.add(n, tick_never);
    };
    EXPECT_DEATH(die(), "weft: destruction of a wheel that has nodes");
}

}  // namespace
}  // namespace weft
