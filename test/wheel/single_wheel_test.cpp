#include "weft/wheel/single_wheel.hpp"

#include <gtest/gtest.h>

#include "test/wheel/model.hpp"

namespace weft {
namespace {

// wheel_base_test has the laws that both wheels share.

TEST(single_wheel, matches_the_model) {
    const std::uint64_t seed = test::seed();
    SCOPED_TRACE("WEFT_TEST_SEED=" + std::to_string(seed));
    test::walk<single_wheel<256>>(seed, 9, 256).run(test::walk_steps);
}

TEST(single_wheel, refuses_deadlines_beyond_one_revolution) {
    single_wheel<64> w(1'000);
    wheel_node n;
    EXPECT_FALSE(w.add(n, 1'065));
    EXPECT_FALSE(n.linked());
    EXPECT_FALSE(w.add(n, tick_never - 1));
    EXPECT_TRUE(w.empty());
    EXPECT_TRUE(w.add(n, 1'064));
    EXPECT_EQ(w.next(), 1'064u);
    EXPECT_EQ(w.advance(1'063, [](wheel_node&) {}), 0u);
    EXPECT_EQ(w.advance(1'064, [](wheel_node&) {}), 1u);
}

TEST(single_wheel, next_is_exact_after_removals) {
    single_wheel<64> w;
    wheel_node a, b;
    EXPECT_TRUE(w.add(a, 10));
    EXPECT_TRUE(w.add(b, 20));
    EXPECT_TRUE(w.remove(a));
    EXPECT_EQ(w.next(), 20u);
    EXPECT_TRUE(w.remove(b));
    EXPECT_EQ(w.next(), tick_never);
}

TEST(single_wheel, wraps_around_its_ring_and_reaches_the_last_tick) {
    single_wheel<64> w(tick_never - 40);
    wheel_node a, b;
    EXPECT_TRUE(w.add(a, tick_never - 1));
    EXPECT_TRUE(w.add(b, tick_never - 39));
    EXPECT_EQ(w.next(), tick_never - 39);
    EXPECT_EQ(w.advance(tick_never - 2, [&](wheel_node& n) { EXPECT_EQ(&n, &b); }), 1u);
    EXPECT_EQ(w.next(), tick_never - 1);
    EXPECT_EQ(w.advance(tick_never, [&](wheel_node& n) { EXPECT_EQ(&n, &a); }), 1u);
    w.check();
}

}  // namespace
}  // namespace weft
