#include "weft/manager/detail/live_count.hpp"

#include <gtest/gtest.h>

#include "test/support/manual_executor.hpp"

namespace {

using weft::detail::live_count;
using verdict = live_count::verdict;

constexpr std::size_t no_limit = ~std::size_t{0};

// A queued waiter, on an executor that only counts.
struct agent {
    weft::testing::manual_executor on;
    weft::testing::coroutine_flow f{on};
    weft::waiter w{f};
    weft::wait_node n{&w};

    bool woken() { return on.pending_count() != 0; }
    ~agent() {
        if (woken()) on.cancel_post(w);
    }
};

TEST(live_count, counts_from_admit_to_leave) {
    live_count c;
    EXPECT_TRUE(c.is_empty());
    EXPECT_EQ(c.admit(2), verdict::admitted);
    EXPECT_EQ(c.admit(2), verdict::admitted);
    EXPECT_EQ(c.count(), 2u);
    EXPECT_EQ(c.admit(2), verdict::full);
    EXPECT_EQ(c.count(), 2u) << "a refusal counts nothing, not even for a moment";
    c.leave();
    EXPECT_EQ(c.admit(2), verdict::admitted);
    c.leave();
    EXPECT_FALSE(c.is_empty());
    c.leave();
    EXPECT_TRUE(c.is_empty());
}

TEST(live_count, admits_nothing_while_closed) {
    live_count c;
    EXPECT_EQ(c.admit(no_limit), verdict::admitted);
    c.close();
    EXPECT_TRUE(c.is_closed());
    EXPECT_EQ(c.admit(no_limit), verdict::closed);
    EXPECT_FALSE(c.is_empty());
    c.leave();
    EXPECT_TRUE(c.is_empty());
    c.alone();
    c.restart();
    EXPECT_EQ(c.admit(no_limit), verdict::admitted);
    c.leave();
}

TEST(live_count, wakes_all_waiters_when_the_last_task_leaves) {
    live_count c;
    agent a, b;
    EXPECT_FALSE(c.enlist(a.n)) << "there is none";
    for (int n = 0; n < 2; ++n) EXPECT_EQ(c.admit(no_limit), verdict::admitted);
    EXPECT_TRUE(c.enlist(a.n));
    EXPECT_TRUE(c.enlist(b.n));
    c.leave();
    EXPECT_FALSE(a.woken());
    c.leave();
    EXPECT_TRUE(a.woken());
    EXPECT_TRUE(b.woken());
    EXPECT_FALSE(a.n.is_linked());
    agent late;
    EXPECT_EQ(c.admit(no_limit), verdict::admitted);
    EXPECT_TRUE(c.enlist(late.n));
    c.cancel(late.n);
    c.leave();
    EXPECT_FALSE(late.woken());
}

}  // namespace
