#include "weft/base/forward_queue.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace {

using weft::forward_node;
using weft::forward_queue;

struct item : forward_node<> {
    explicit item(int n) : value(n) {}
    int value;
};

// Takes all out.
std::vector<int> drained(forward_queue<item>& q) {
    q.check();
    std::vector<int> all;
    while (item* x = q.pop_front()) all.push_back(x->value);
    return all;
}

using ints = std::vector<int>;

TEST(forward_queue, is_empty_at_first) {
    static constinit forward_queue<item> q;
    EXPECT_TRUE(q.empty());
    EXPECT_EQ(q.front(), nullptr);
    EXPECT_EQ(q.pop_front(), nullptr);
    q.check();
}

TEST(forward_queue, is_first_in_first_out) {
    forward_queue<item> q;
    item a(1), b(2), c(3);
    for (int round = 0; round < 3; ++round) {
        q.push_back(a);
        q.push_back(b);
        EXPECT_EQ(q.front(), &a);
        EXPECT_EQ(q.pop_front(), &a);
        q.push_back(c);
        EXPECT_EQ(drained(q), (ints{2, 3}));
        EXPECT_TRUE(q.empty());
    }
}

TEST(forward_queue, pops_elements_pushed_to_the_front_first) {
    forward_queue<item> q;
    item a(1), b(2), c(3);
    q.push_front(b);
    q.push_back(c);
    q.push_front(a);
    EXPECT_EQ(drained(q), (ints{1, 2, 3}));
}

TEST(forward_queue, reports_whether_an_element_is_queued) {
    forward_queue<item> q;
    item a(1), b(2);
    EXPECT_FALSE(a.is_linked());
    q.push_back(a);
    q.push_back(b);
    EXPECT_TRUE(a.is_linked());
    EXPECT_TRUE(b.is_linked());
    q.pop_front();
    EXPECT_FALSE(a.is_linked());
    q.pop_front();
    EXPECT_FALSE(b.is_linked());
}

TEST(forward_queue, splice_moves_all_elements_to_the_end) {
    forward_queue<item> to, from;
    item a(1), b(2), c(3), d(4);
    to.splice(from);
    EXPECT_TRUE(to.empty());
    from.push_back(a);
    from.push_back(b);
    to.splice(from);
    EXPECT_TRUE(from.empty());
    from.push_back(c);
    to.splice(from);
    to.splice(to);
    to.push_back(d);
    from.check();
    EXPECT_EQ(drained(to), (ints{1, 2, 3, 4}));
}

TEST(forward_queue, can_be_moved_with_its_elements) {
    forward_queue<item> q;
    item a(1), b(2), c(3);
    q.push_back(a);
    q.push_back(b);
    forward_queue<item> other(std::move(q));
    EXPECT_TRUE(q.empty());
    other.push_back(c);
    q = std::move(other);
    EXPECT_TRUE(other.empty());
    EXPECT_EQ(drained(q), (ints{1, 2, 3}));
}

struct ready;
struct done;
struct job : forward_node<ready>, forward_node<done> {};

TEST(forward_queue, element_with_two_tags_can_be_in_two_queues) {
    forward_queue<job, ready> first;
    forward_queue<job, done> second;
    job a, b;
    first.push_back(a);
    second.push_back(b);
    second.push_back(a);
    EXPECT_EQ(first.pop_front(), &a);
    EXPECT_TRUE(a.forward_node<done>::is_linked());
    EXPECT_EQ(second.pop_front(), &b);
    EXPECT_EQ(second.pop_front(), &a);
}

TEST(forward_queue, elements_are_nonmovable_and_one_word) {
    static_assert(!std::is_copy_constructible_v<item> && !std::is_move_constructible_v<item>);
    static_assert(!std::is_copy_constructible_v<forward_queue<item>>);
    static_assert(sizeof(forward_node<>) == sizeof(void*));
}

#if GTEST_HAS_DEATH_TEST
TEST(forward_queue_death, check_detects_a_cycle_and_a_wrong_tail) {
    forward_queue<item> q;
    item a(1), b(2), c(3);
    for (item* x : {&a, &b, &c}) q.push_back(*x);
    weft::detail::forward_link& middle = b;
    middle.next = &a;
    EXPECT_DEATH(q.check(), "forward_queue: a circle");
    middle.next = nullptr;
    EXPECT_DEATH(q.check(), "forward_queue: the last is another");
    middle.next = &c;
    EXPECT_EQ(drained(q), (ints{1, 2, 3}));
}

#if WEFT_DEBUG
TEST(forward_queue_death, aborts_when_a_queued_element_is_pushed_again) {
    forward_queue<item> q;
    item a(1);
    q.push_back(a);
    EXPECT_DEATH(q.push_back(a), "forward_queue: an element is in a queue already");
    EXPECT_DEATH(q.push_front(a), "forward_queue: an element is in a queue already");
    q.pop_front();
}

TEST(forward_queue_death, aborts_when_destroyed_or_overwritten_with_elements) {
    item a(1);
    EXPECT_DEATH(
        {
            forward_queue<item> q;
            q.push_back(a);
        },
        "forward_queue: a queue is destroyed with elements in it");
    EXPECT_DEATH(
        {
            forward_queue<item> q;
            q.push_back(a);
            q = forward_queue<item>();
        },
        "forward_queue: a queue with elements in it is written over");
}
#endif
#endif

}  // namespace
