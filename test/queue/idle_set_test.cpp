#include "weft/queue/detail/idle_set.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace weft {
namespace {

TEST(idle_set, claims_no_worker_when_none_sleeps) {
    detail::idle_set s(3);
    EXPECT_EQ(s.claim(), detail::idle_set::none);
    EXPECT_FALSE(s.all_idle(s.look()));
}

TEST(idle_set, claims_each_sleeper_once_as_a_searcher) {
    detail::idle_set s(2);
    s.announce(1, false);
    EXPECT_EQ(s.idle_count(), 1u);
    EXPECT_EQ(s.claim(), 1u);
    EXPECT_EQ(s.idle_count(), 0u);
    EXPECT_EQ(s.searching_count(), 1u);
    EXPECT_FALSE(s.retract(1)) << "he was claimed";
    EXPECT_TRUE(s.end_search());
    EXPECT_EQ(s.searching_count(), 0u);
}

TEST(idle_set, lets_a_worker_wake_by_itself) {
    detail::idle_set s(2);
    s.announce(0, false);
    EXPECT_TRUE(s.retract(0));
    EXPECT_EQ(s.claim(), detail::idle_set::none);
    EXPECT_EQ(s.searching_count(), 0u);
}

TEST(idle_set, claims_no_worker_while_another_searches) {
    detail::idle_set s(4);
    ASSERT_TRUE(s.begin_search());
    s.announce(3, false);
    EXPECT_EQ(s.claim(), detail::idle_set::none);
    EXPECT_TRUE(s.end_search());
    EXPECT_EQ(s.claim(), 3u);
}

TEST(idle_set, lets_half_of_the_workers_or_one_search) {
    for (const unsigned workers : {1u, 2u, 3u, 4u, 5u, 8u}) {
        detail::idle_set s(workers);
        unsigned searching = 0;
        while (s.begin_search()) ++searching;
        EXPECT_EQ(searching, workers < 2 ? 1 : workers / 2) << workers;
        for (; searching != 0; --searching) EXPECT_EQ(s.end_search(), searching == 1);
    }
}

TEST(idle_set, ends_the_search_of_a_worker_that_announces_sleep) {
    detail::idle_set s(2);
    ASSERT_TRUE(s.begin_search());
    s.announce(0, true);
    EXPECT_EQ(s.searching_count(), 0u);
    EXPECT_EQ(s.idle_count(), 1u);
    EXPECT_TRUE(s.retract(0));
}

TEST(idle_set, reports_that_all_sleep_and_slept_throughout) {
    detail::idle_set s(2);
    s.announce(0, false);
    s.announce(1, false);
    const detail::idle_set::snapshot before = s.look();
    EXPECT_TRUE(s.all_idle(before));
    EXPECT_TRUE(s.is_still(before));
    EXPECT_TRUE(s.retract(1));
    s.announce(1, false);
    EXPECT_TRUE(s.all_idle(s.look()));
    EXPECT_FALSE(s.is_still(before)) << "one was awake meanwhile";
}

TEST(idle_set, finds_sleepers_among_many) {
    const auto s = std::make_unique<detail::idle_set>(detail::idle_set::most);
    const std::set<unsigned> asleep = {0, 63, 64, 500, detail::idle_set::most - 1};
    for (const unsigned i : asleep) s->announce(i, false);
    std::set<unsigned> claimed;
    for (unsigned i; (i = s->claim()) != detail::idle_set::none;) {
        claimed.insert(i);
        static_cast<void>(s->retract(i));
        static_cast<void>(s->end_search());
    }
    EXPECT_EQ(claimed, asleep);
}

TEST(idle_set_death, aborts_with_too_many_workers) {
    EXPECT_DEATH(detail::idle_set(detail::idle_set::most + 1), "too many workers");
}

}  // namespace
}  // namespace weft
