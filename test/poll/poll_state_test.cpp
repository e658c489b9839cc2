// Its races are those of test/model/poll_state_test.cpp.
#include "weft/poll/detail/poll_state.hpp"

#include <gtest/gtest.h>

#include "test/support/manual_executor.hpp"

namespace {

using weft::detail::poll_state;

// A waiter that counts its turns.
struct counting_turns : weft::detail::frame {
    explicit counting_turns(weft::executor& e) : frame{turn, turn}, w(e) { w.handle = handle(); }
    static void turn(frame* f) { ++static_cast<counting_turns*>(f)->turns; }
    weft::waiter w;
    int turns = 0;
};

TEST(poll_state, is_ready_from_publish_until_rearm) {
    poll_state s;
    EXPECT_FALSE(s.is_ready());
    s.publish();
    EXPECT_TRUE(s.is_ready());
    s.rearm();
    EXPECT_FALSE(s.is_ready());
    EXPECT_FALSE(s.is_awaited());
}

TEST(poll_state, wakes_its_waiter_and_accepts_none_when_ready) {
    weft::testing::manual_executor e;
    counting_turns one(e);
    poll_state s;
    ASSERT_TRUE(s.enlist(one.w));
    EXPECT_TRUE(s.is_awaited());
    s.publish();
    EXPECT_EQ(one.turns, 0) << "woken, and not run on the spot";
    e.run_all();
    EXPECT_EQ(one.turns, 1);
    EXPECT_TRUE(s.is_ready());
    counting_turns late(e);
    EXPECT_FALSE(s.enlist(late.w));
}

TEST(poll_state, does_not_wake_a_cancelled_waiter) {
    weft::testing::manual_executor e;
    counting_turns one(e), two(e);
    poll_state s;
    ASSERT_TRUE(s.enlist(one.w));
    s.cancel(one.w);
    EXPECT_FALSE(s.is_awaited());
    ASSERT_TRUE(s.enlist(two.w));
    s.publish();
    s.cancel(two.w);  // too late, and no harm
    e.run_all();
    EXPECT_EQ(one.turns, 0);
    EXPECT_EQ(two.turns, 1);
    EXPECT_TRUE(s.is_ready());
}

// A waiter whose wait has ended otherwise, and that has not called cancel() yet.
TEST(poll_state, does_not_wake_a_waiter_whose_wait_ended) {
    weft::testing::manual_executor e;
    counting_turns one(e);
    poll_state s;
    ASSERT_TRUE(s.enlist(one.w));
    ASSERT_TRUE(one.w.claim());
    s.publish();
    s.cancel(one.w);
    EXPECT_TRUE(s.is_ready());
    e.run_all();
    EXPECT_EQ(one.turns, 0);
}

TEST(poll_state_death, second_waiter_or_second_value) {
    weft::testing::manual_executor e;
    counting_turns one(e), two(e);
    poll_state s;
    ASSERT_TRUE(s.enlist(one.w));
    EXPECT_DEATH((void)s.enlist(two.w), "a second one awaits a poll_future that is awaited");
    s.publish();
    EXPECT_DEATH(s.publish(), "a poll_future that is ready is set once more");
    e.run_all();
}

}  // namespace
