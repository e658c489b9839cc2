#include "weft/wheel/wheel_base.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "test/wheel/model.hpp"
#include "weft/wheel/single_wheel.hpp"
#include "weft/wheel/wheel.hpp"

// The laws of both wheels.

namespace weft {
namespace {

using test::put;

template <class W>
struct any_wheel : ::testing::Test {
    static_assert(!std::is_copy_constructible_v<W>);
    std::vector<const wheel_node*> seen;
    W w{1'000};

    void advance(tick to) {
        seen.clear();
        w.advance(to, [this](wheel_node& n) { seen.push_back(&n); });
    }
};

using order = std::vector<const wheel_node*>;
using both = ::testing::Types<wheel, single_wheel<4096>>;
struct names {
    template <class W>
    static std::string GetName(int) {
        return std::is_same_v<W, wheel> ? "wheel" : "single_wheel";
    }
};
TYPED_TEST_SUITE(any_wheel, both, names);

TYPED_TEST(any_wheel, starts_empty_at_the_given_tick) {
    EXPECT_EQ(this->w.now(), 1'000u);
    EXPECT_TRUE(this->w.empty());
    EXPECT_EQ(this->w.next(), tick_never);
    this->w.check();
}

TYPED_TEST(any_wheel, fires_by_deadline_and_then_by_insertion_order) {
    wheel_node a, b, c, d;
    EXPECT_TRUE(put(this->w, a, 1'700));
    EXPECT_TRUE(put(this->w, b, 1'003));
    EXPECT_TRUE(put(this->w, c, 1'700));
    this->advance(1'500);  // in the hierarchical one the first two are moved on the way
    EXPECT_EQ(this->seen, order{&b});
    EXPECT_TRUE(put(this->w, d, 1'700));
    EXPECT_TRUE(put(this->w, b, 1'699));
    this->advance(1'700);
    EXPECT_EQ(this->seen, (order{&b, &a, &c, &d}));
}

TYPED_TEST(any_wheel, fires_never_early_and_at_its_tick) {
    for (tick delay = 1; delay <= 3'000; delay += 7) {
        wheel_node n;
        const tick deadline = this->w.now() + delay;
        EXPECT_TRUE(put(this->w, n, deadline));
        EXPECT_EQ(this->w.next(), deadline);
        this->advance(deadline - 1);
        ASSERT_TRUE(this->seen.empty()) << delay;
        EXPECT_EQ(this->w.next(), deadline);
        this->advance(deadline);
        ASSERT_EQ(this->seen, order{&n}) << delay;
    }
}

TYPED_TEST(any_wheel, fires_past_deadlines_first_in_insertion_order) {
    wheel_node a, b, c, d;
    EXPECT_TRUE(put(this->w, a, 1'001));
    EXPECT_TRUE(put(this->w, b, 1'000));
    EXPECT_TRUE(put(this->w, c, 0));
    EXPECT_TRUE(put(this->w, d, 999));
    EXPECT_EQ(this->w.next(), 1'000u);
    this->w.check();
    this->advance(1'001);
    EXPECT_EQ(this->seen, (order{&b, &c, &d, &a}));
}

TYPED_TEST(any_wheel, advance_to_the_current_tick_fires_due_nodes) {
    wheel_node a, b;
    EXPECT_TRUE(put(this->w, a, 1'000));
    EXPECT_TRUE(put(this->w, b, 1'001));
    this->advance(1'000);
    EXPECT_EQ(this->seen, order{&a});
    EXPECT_TRUE(this->w.remove(b));
}

TYPED_TEST(any_wheel, time_does_not_go_back) {
    wheel_node a, b;
    EXPECT_TRUE(put(this->w, a, 1'000));
    EXPECT_TRUE(put(this->w, b, 1'001));
    this->advance(5);
    EXPECT_EQ(this->w.now(), 1'000u);
    EXPECT_EQ(this->seen, order{&a});
    EXPECT_TRUE(this->w.remove(b));
}

TYPED_TEST(any_wheel, the_infinite_deadline_never_comes) {
    wheel_node n;
    EXPECT_TRUE(put(this->w, n, tick_never));
    EXPECT_EQ(this->w.next(), tick_never);
    EXPECT_EQ(this->w.size(), 1u);
    this->advance(tick_never);
    EXPECT_TRUE(this->seen.empty());
    EXPECT_TRUE(this->w.remove(n));
    EXPECT_TRUE(put(this->w, n, tick_never)) << "not even at the end of time";
    this->advance(tick_never);
    EXPECT_TRUE(this->seen.empty());
    this->w.check();
    EXPECT_TRUE(this->w.remove(n));
    EXPECT_TRUE(this->w.empty());
}

TYPED_TEST(any_wheel, removed_nodes_never_fire_and_may_be_freed) {
    auto a = std::make_unique<wheel_node>();
    wheel_node b;
    EXPECT_TRUE(put(this->w, *a, 1'100));
    EXPECT_TRUE(put(this->w, b, 1'100));
    EXPECT_TRUE(this->w.remove(*a));
    EXPECT_FALSE(this->w.remove(*a));
    a.reset();
    this->advance(2'000);
    EXPECT_EQ(this->seen, order{&b});
    EXPECT_FALSE(this->w.remove(b)) << "handed over";
}

// ------------------------------------------------------------------------------------ the sink

TYPED_TEST(any_wheel, nodes_added_by_the_sink_wait_for_the_next_advance) {
    wheel_node n;
    EXPECT_TRUE(put(this->w, n, 1'001));
    int calls = 0;
    const auto again = [&](wheel_node& m) {
        ++calls;
        EXPECT_EQ(this->w.now(), 1'500u);
        EXPECT_TRUE(put(this->w, m, 1'200));  // past by now
    };
    EXPECT_EQ(this->w.advance(1'500, again), 1u);
    EXPECT_EQ(this->w.next(), 1'500u);
    EXPECT_EQ(this->w.advance(1'500, again), 1u);
    EXPECT_EQ(calls, 2);
    EXPECT_TRUE(this->w.remove(n));
}

TYPED_TEST(any_wheel, the_sink_may_remove_pending_nodes_and_free_its_argument) {
    auto first = std::make_unique<wheel_node>();
    auto second = std::make_unique<wheel_node>();
    wheel_node third;
    EXPECT_TRUE(put(this->w, *first, 1'001));
    EXPECT_TRUE(put(this->w, *second, 1'001));
    EXPECT_TRUE(put(this->w, third, 1'002));
    int calls = 0;
    this->w.advance(1'002, [&](wheel_node& n) {
        ++calls;
        EXPECT_EQ(calls == 2, &n == &third);
        if (second != nullptr) {
            EXPECT_EQ(this->w.size(), 2u);
            EXPECT_TRUE(this->w.remove(*second));
            first.reset();
            second.reset();
            this->w.check();
        }
    });
    EXPECT_EQ(calls, 2);
}

TYPED_TEST(any_wheel, nodes_left_by_a_throwing_sink_fire_first_next_time) {
    wheel_node a, b, c, d;
    EXPECT_TRUE(put(this->w, a, 1'001));
    EXPECT_TRUE(put(this->w, b, 1'002));
    EXPECT_TRUE(put(this->w, c, 1'003));
    EXPECT_THROW(this->w.advance(1'005, [](wheel_node&) { throw std::runtime_error("no"); }),
                 std::runtime_error);
    EXPECT_EQ(this->w.size(), 2u);
    EXPECT_EQ(this->w.next(), 1'005u);
    EXPECT_TRUE(put(this->w, d, 0));
    this->advance(1'005);
    EXPECT_EQ(this->seen, (order{&b, &c, &d}));
}

// -------------------------------------------------------------------------------------- misuse

template <class W>
struct any_wheel_death : ::testing::Test {};
TYPED_TEST_SUITE(any_wheel_death, both, names);

TYPED_TEST(any_wheel_death, a_node_is_not_added_twice) {
    TypeParam w;
    wheel_node n;
    EXPECT_TRUE(put(w, n, 5));
    EXPECT_DEATH(put(w, n, 6), "weft: a node added to a wheel twice");
    EXPECT_TRUE(w.remove(n));
}

TYPED_TEST(any_wheel_death, a_wheel_is_not_destroyed_with_nodes) {
    const auto die = [] {
        wheel_node n;
        TypeParam w;
        put(w, n, tick_never);
    };
    EXPECT_DEATH(die(), "weft: destruction of a wheel that has nodes");
}

}  // namespace
}  // namespace weft
