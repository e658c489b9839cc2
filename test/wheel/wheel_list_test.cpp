#include "weft/wheel/detail/wheel_list.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace weft::detail {
namespace {

std::vector<const wheel_node*> nodes_of(const wheel_list& list) {
    std::vector<const wheel_node*> all;
    list.check([&](const wheel_node& n) { all.push_back(&n); });
    return all;
}

using order = std::vector<const wheel_node*>;

TEST(wheel_list, pops_in_insertion_order) {
    wheel_list list;
    wheel_node a, b, c;
    EXPECT_TRUE(list.empty());
    list.push_back(a);
    list.push_back(b);
    list.push_back(c);
    EXPECT_EQ(nodes_of(list), (order{&a, &b, &c}));
    EXPECT_EQ(&list.pop_front(), &a);
    EXPECT_EQ(&list.pop_front(), &b);
    EXPECT_FALSE(list.empty());
    EXPECT_EQ(&list.pop_front(), &c);
    EXPECT_TRUE(list.empty());
}

TEST(wheel_list_death, check_finds_inconsistent_links) {
    wheel_list list;
    wheel_node a, b;
    list.push_back(a);
    list.push_back(b);
    auto& links = reinterpret_cast<wheel_links&>(b);
    wheel_links* const right = std::exchange(links.previous, &links);
    EXPECT_DEATH(static_cast<void>(nodes_of(list)), "wheel_list: a node's links");
    links.previous = right;
    EXPECT_EQ(nodes_of(list), (order{&a, &b}));
    wheel_list::unlink(a);
    wheel_list::unlink(b);
}

TEST(wheel_list, unlink_works_anywhere_and_returns_an_emptied_list) {
    wheel_list list;
    wheel_node a, b, c;
    for (wheel_node* n : {&a, &b, &c}) list.push_back(*n);
    EXPECT_EQ(wheel_list::unlink(b), nullptr);
    EXPECT_EQ(nodes_of(list), (order{&a, &c}));
    EXPECT_EQ(wheel_list::unlink(c), nullptr);
    EXPECT_EQ(nodes_of(list), (order{&a}));
    EXPECT_EQ(wheel_list::unlink(a), &list);
    EXPECT_TRUE(list.empty());
}

TEST(wheel_list, appends_all_of_another_in_order_and_leaves_it_empty) {
    wheel_list list;
    wheel_list other;
    wheel_node a, b, c, d;
    list.append(other);
    EXPECT_TRUE(list.empty());
    other.push_back(a);
    other.push_back(b);
    list.append(other);
    EXPECT_EQ(nodes_of(list), (order{&a, &b}));
    EXPECT_EQ(nodes_of(other), order());
    other.push_back(c);
    list.append(other);
    other.push_back(d);
    EXPECT_EQ(nodes_of(list), (order{&a, &b, &c}));
    EXPECT_EQ(nodes_of(other), order{&d});
    for (wheel_node* n : {&a, &b, &c, &d}) wheel_list::unlink(*n);
}

}  // namespace
}  // namespace weft::detail
