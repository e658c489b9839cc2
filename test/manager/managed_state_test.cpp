#include "weft/manager/detail/managed_state.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/slow.hpp"

namespace {

using weft::managed_status;
using weft::stop_reason;
using weft::detail::managed_state;

TEST(managed_state, decide_returns_what_remains_to_be_done) {
    managed_state lazy(false);
    EXPECT_EQ(lazy.decide(managed_status::killed, stop_reason::user), managed_state::owed::drop);
    EXPECT_FALSE(lazy.start());

    managed_state launched(true);
    EXPECT_EQ(launched.decide(managed_status::killed, stop_reason::user),
              managed_state::owed::wait);
    EXPECT_FALSE(launched.begin());

    managed_state begun(false);
    EXPECT_TRUE(begun.start());
    EXPECT_FALSE(begun.start());
    EXPECT_TRUE(begun.begin());
    EXPECT_EQ(begun.decide(managed_status::killed, stop_reason::user), managed_state::owed::ask);
}

TEST(managed_state, keeps_the_first_cause_and_its_reason) {
    managed_state s(true);
    EXPECT_FALSE(s.is_decided());
    EXPECT_EQ(s.cause(), managed_status::created);
    EXPECT_NE(s.decide(managed_status::timed_out, stop_reason::deadline),
              managed_state::owed::nothing);
    EXPECT_EQ(s.decide(managed_status::done, stop_reason::none), managed_state::owed::nothing);
    EXPECT_EQ(s.decide(managed_status::killed, stop_reason::shutdown),
              managed_state::owed::nothing);
    EXPECT_EQ(s.cause(), managed_status::timed_out);
    EXPECT_EQ(s.reason(), stop_reason::deadline);
}

TEST(managed_state, reports_each_cause) {
    for (const auto c : {managed_status::done, managed_status::cancelled, managed_status::killed,
                         managed_status::timed_out}) {
        managed_state s(true);
        static_cast<void>(s.decide(c, stop_reason::sibling_failed));
        EXPECT_EQ(s.cause(), c);
        EXPECT_EQ(s.reason(), stop_reason::sibling_failed);
    }
}

TEST(managed_state, can_be_forced_once_and_only_after_its_start) {
    managed_state early(true);
    EXPECT_FALSE(early.force());
    managed_state s(true);
    EXPECT_TRUE(s.begin());
    EXPECT_TRUE(s.force());
    EXPECT_FALSE(s.force());
}

TEST(managed_state, lets_its_value_be_taken_once) {
    managed_state s(true);
    EXPECT_TRUE(s.take());
    EXPECT_FALSE(s.take());
}

TEST(managed_state, has_one_winner_among_threads) {
    constexpr int rounds = weft::testing::slow ? 200 : 2000;
    for (int round = 0; round < rounds; ++round) {
        managed_state s(false);
        std::atomic<int> ready{0}, won{0}, launched{0}, dropped{0};
        const auto meet = [&] {
            for (++ready; ready != 4;) std::this_thread::yield();
        };
        const auto end = [&](managed_status how) {
            meet();
            const auto owed = s.decide(how, stop_reason::user);
            won += owed != managed_state::owed::nothing ? 1 : 0;
            dropped += owed == managed_state::owed::drop ? 1 : 0;
        };
        std::thread a(end, managed_status::cancelled), b(end, managed_status::killed),
            c(end, managed_status::timed_out);
        meet();
        launched += s.start() ? 1 : 0;
        a.join(), b.join(), c.join();
        EXPECT_EQ(won, 1);
        EXPECT_EQ(launched + dropped, 1) << "either it is launched, or who ended it drops it";
        EXPECT_FALSE(launched == 1 && s.begin());
    }
}

TEST(managed_state, cannot_be_forced_after_its_function_is_done) {
    managed_state returned(true);
    EXPECT_TRUE(returned.begin());
    EXPECT_FALSE(returned.finish(managed_status::done, stop_reason::none)) << "no kill waits";
    EXPECT_TRUE(returned.is_finished());
    EXPECT_EQ(returned.cause(), managed_status::done);
    EXPECT_FALSE(returned.force());

    managed_state cancelled(true);
    EXPECT_TRUE(cancelled.begin());
    EXPECT_EQ(cancelled.decide(managed_status::cancelled, stop_reason::user),
              managed_state::owed::ask);
    EXPECT_TRUE(cancelled.await_arrival());
    EXPECT_TRUE(cancelled.finish(managed_status::done, stop_reason::none)) << "a kill waits";
    EXPECT_FALSE(cancelled.await_arrival());
    EXPECT_FALSE(cancelled.arrive());
    EXPECT_EQ(cancelled.cause(), managed_status::cancelled) << "the first";
    EXPECT_FALSE(cancelled.force());
}

}  // namespace
