#include "weft/base/detail/list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <iterator>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using weft::detail::list;
using weft::detail::list_node;

struct numbered : list_node<> {
    explicit numbered(int n = 0) : value(n) {}
    int value;
};

std::vector<int> values(const list<numbered>& l) {
    l.check();
    std::vector<int> all;
    for (const numbered& x : l) all.push_back(x.value);
    return all;
}

using ints = std::vector<int>;

void drain(list<numbered>& l) {
    while (l.pop_front() != nullptr) {
    }
}

TEST(list, is_empty_at_first) {
    static constinit list<numbered> l;
    EXPECT_TRUE(l.empty());
    EXPECT_EQ(l.front(), nullptr);
    EXPECT_EQ(l.back(), nullptr);
    EXPECT_EQ(l.pop_front(), nullptr);
    EXPECT_EQ(l.begin(), l.end());
    l.check();
}

TEST(list, pops_in_order) {
    list<numbered> l;
    numbered a(1), b(2), c(3);
    l.push_back(b);
    l.push_back(c);
    l.push_front(a);
    EXPECT_EQ(values(l), (ints{1, 2, 3}));
    EXPECT_EQ(l.front(), &a);
    EXPECT_EQ(l.back(), &c);
    EXPECT_EQ(l.pop_front(), &a);
    EXPECT_EQ(l.pop_front(), &b);
    EXPECT_EQ(l.pop_front(), &c);
    EXPECT_EQ(l.pop_front(), nullptr);
}

TEST(list, reports_whether_an_element_is_linked) {
    list<numbered> l;
    numbered a;
    EXPECT_FALSE(a.is_linked());
    l.push_back(a);
    EXPECT_TRUE(a.is_linked());
    l.remove(a);
    EXPECT_FALSE(a.is_linked());
    l.push_front(a);
    EXPECT_TRUE(a.is_linked());
    l.pop_front();
    EXPECT_FALSE(a.is_linked());
}

TEST(list, can_remove_any_element) {
    for (int leaves = 1; leaves <= 3; ++leaves) {
        list<numbered> l;
        numbered a(1), b(2), c(3);
        for (numbered* x : {&a, &b, &c}) l.push_back(*x);
        for (numbered* x : {&a, &b, &c})
            if (x->value == leaves) list<numbered>::remove(*x);
        ints expected{1, 2, 3};
        expected.erase(expected.begin() + leaves - 1);
        EXPECT_EQ(values(l), expected);
        drain(l);
    }
}

TEST(list, inserts_before_an_element) {
    list<numbered> l;
    numbered a(1), b(2), c(3);
    l.push_back(c);
    l.insert(c, b);
    l.insert(b, a);
    EXPECT_EQ(values(l), (ints{1, 2, 3}));
    drain(l);
}

TEST(list, splice_moves_all_elements_to_the_end) {
    list<numbered> to, from;
    numbered a(1), b(2), c(3), d(4);
    to.splice(from);
    EXPECT_TRUE(to.empty());
    from.push_back(a);
    from.push_back(b);
    to.splice(from);
    EXPECT_TRUE(from.empty());
    EXPECT_EQ(values(to), (ints{1, 2}));
    from.push_back(c);
    from.push_back(d);
    to.splice(from);
    EXPECT_EQ(values(from), ints{});
    EXPECT_EQ(values(to), (ints{1, 2, 3, 4}));
    to.splice(to);
    EXPECT_EQ(values(to), (ints{1, 2, 3, 4}));
    list<numbered>::remove(c);  // `c` was in `from`; remove() need not know the list
    EXPECT_EQ(values(to), (ints{1, 2, 4}));
    drain(to);
}

TEST(list, allows_removal_of_elements_already_iterated) {
    list<numbered> l;
    std::deque<numbered> all;
    for (int n = 0; n < 6; ++n) l.push_back(all.emplace_back(n));
    for (auto at = l.begin(); at != l.end();) {
        numbered& x = *at++;
        if (x.value % 2 == 0) l.remove(x);
    }
    EXPECT_EQ(values(l), (ints{1, 3, 5}));
    EXPECT_EQ(std::ranges::count_if(l, [](const numbered& x) { return x.value > 1; }), 2);
    drain(l);
}

struct by_age;
struct by_name;
struct person : list_node<by_age>, list_node<by_name> {};

TEST(list, element_with_two_tags_can_be_in_two_lists) {
    list<person, by_age> ages;
    list<person, by_name> names;
    person a, b;
    ages.push_back(a);
    ages.push_back(b);
    names.push_back(b);
    names.push_back(a);
    EXPECT_EQ(ages.front(), &a);
    EXPECT_EQ(names.front(), &b);
    ages.remove(a);
    EXPECT_FALSE(a.list_node<by_age>::is_linked());
    EXPECT_TRUE(a.list_node<by_name>::is_linked());
    ages.remove(b);
    names.remove(a);
    names.remove(b);
}

TEST(list, elements_and_lists_are_nonmovable) {
    static_assert(!std::is_copy_constructible_v<numbered> &&
                  !std::is_move_constructible_v<numbered>);
    static_assert(!std::is_copy_assignable_v<numbered> && !std::is_move_assignable_v<numbered>);
    static_assert(!std::is_move_constructible_v<list<numbered>>);
    static_assert(std::forward_iterator<list<numbered>::iterator>);
    static_assert(sizeof(list_node<>) == 2 * sizeof(void*));
}

// The same as a deque of pointers does, over random operations.
TEST(list, peek_finds_the_first_element) {
    list<numbered> l;
    numbered a(1);
    numbered b(2);
    numbered c(3);
    l.push_back(a);
    l.push_back(b);
    const void* const first = l.peek();
    l.push_front(c);
    EXPECT_NE(l.peek(), first);
    l.remove(c);
    EXPECT_EQ(l.peek(), first);
    const auto at = reinterpret_cast<std::uintptr_t>(first);
    EXPECT_GE(at, reinterpret_cast<std::uintptr_t>(&a));
    EXPECT_LT(at, reinterpret_cast<std::uintptr_t>(&a + 1));
    l.remove(a);
    l.remove(b);
}

// Under TSan: the list changes under a lock that the peeking thread does not take.
TEST(list, peek_needs_no_lock) {
    list<numbered> l;
    numbered a(1);
    numbered b(2);
    std::atomic<bool> through = false;
    std::thread other([&] {
        std::uintptr_t seen = 0;
        for (int i = 0; i != 100000; ++i) seen |= reinterpret_cast<std::uintptr_t>(l.peek());
        EXPECT_NE(seen, 0u);
        through.store(true, std::memory_order_relaxed);
    });
    list<numbered> from;
    do {
        l.push_back(a);
        from.push_back(b);
        l.splice(from);
        l.remove(a);
        EXPECT_EQ(l.pop_front(), &b);
    } while (!through.load(std::memory_order_relaxed));
    other.join();
}

TEST(list, matches_a_deque_under_random_operations) {
    list<numbered> l, other;
    std::deque<numbered> all(40);
    std::deque<numbered*> model;
    for (int n = 0; n < 40; ++n) all[static_cast<std::size_t>(n)].value = n;
    std::uint64_t seed = 7;
    for (int n = 0; n < 20'000; ++n) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        numbered& x = all[static_cast<std::size_t>(seed >> 33) % all.size()];
        if (x.is_linked()) {
            l.remove(x);
            std::erase(model, &x);
        } else if (seed >> 62 == 0) {
            l.push_front(x);
            model.push_front(&x);
        } else {
            l.push_back(x);
            model.push_back(&x);
        }
        if (seed >> 58 == 0) {  // a change of lists and back keeps everything
            other.splice(l);
            ASSERT_TRUE(l.empty());
            l.splice(other);
        }
        ASSERT_TRUE(std::ranges::equal(l, model, {}, [](numbered& i) { return &i; }));
    }
    l.check();
    drain(l);
}

#if WEFT_DEBUG && GTEST_HAS_DEATH_TEST
TEST(list_death, aborts_on_a_second_insert_or_removal) {
    list<numbered> l;
    numbered a;
    l.push_back(a);
    EXPECT_DEATH(l.push_back(a), "list: an element is in a list already");
    l.remove(a);
    EXPECT_DEATH(l.remove(a), "list: an element to be removed is in no list");
}

TEST(list_death, aborts_when_a_linked_element_or_list_is_destroyed) {
    EXPECT_DEATH(
        {
            list<numbered> l;
            numbered a;
            l.push_back(a);
        },
        "list: an element is destroyed in a list");
    EXPECT_DEATH(
        {
            numbered a;
            list<numbered> l;
            l.push_back(a);
        },
        "list: a list is destroyed with elements in it");
}
#endif

}  // namespace
