#include "weft/wheel/wheel_node.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <type_traits>

#include "weft/wheel/wheel.hpp"

namespace weft {
namespace {

static_assert(!std::is_copy_constructible_v<wheel_node>);
static_assert(!std::is_move_constructible_v<wheel_node>);
static_assert(sizeof(wheel_node) == 8 + 2 * sizeof(void*));

static_assert(tick_after(5, 0) == 5);
static_assert(tick_after(5, 7) == 12);
static_assert(tick_after(0, tick_never) == tick_never);
static_assert(tick_after(1, tick_never - 1) == tick_never);
static_assert(tick_after(1, tick_never - 2) == tick_never - 1);
static_assert(tick_after(tick_never - 1, 5) == tick_never);
static_assert(tick_after(tick_never, 0) == tick_never);
static_assert(tick_after(tick_never, tick_never) == tick_never);

TEST(wheel_node, is_linked_exactly_while_it_is_in_a_wheel) {
    wheel_node n;
    wheel w;
    EXPECT_FALSE(n.is_linked());
    w.add(n, 7);
    EXPECT_TRUE(n.is_linked());
    EXPECT_EQ(n.deadline(), 7u);
    EXPECT_TRUE(w.remove(n));
    EXPECT_FALSE(n.is_linked());
    w.add(n, 8);
    w.advance(8, [](wheel_node& m) { EXPECT_FALSE(m.is_linked()); });
    EXPECT_FALSE(n.is_linked());
    EXPECT_EQ(n.deadline(), 8u) << "it says what it was added with last";
}

TEST(wheel_node_death, is_not_destroyed_while_it_is_in_a_wheel) {
    const auto die = [] {
        wheel w;
        wheel_node n;
        w.add(n, 7);
    };
    EXPECT_DEATH(die(), "weft: destruction of a node that is in a wheel");
}

}  // namespace
}  // namespace weft
