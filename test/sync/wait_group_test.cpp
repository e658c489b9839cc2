#include "weft/sync/wait_group.hpp"

#include <gtest/gtest.h>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

class wait_group_among : public weft::testing::among {};

TEST_P(wait_group_among, waits_repeatedly_for_all_added_work) {
    weft::wait_group work, round;
    int value = 0;
    round.add();
    run(
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < 100; ++i) {
                work.add();
                round.done();  // the other may start
                co_await wait(work.async_wait());
                EXPECT_EQ(value, i + 1);
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < 100; ++i) {
                co_await wait(round.async_wait());
                round.add();
                ++value;
                work.done();
            }
        });
}

WEFT_INSTANTIATE_AMONG(wait_group_among);

TEST(wait_group, may_grow_while_it_is_waited_for) {
    weft::loop l;
    weft::wait_group g(1);
    bool through = false;
    weft::fiber f([&] { g.wait(), through = true; }, {.on = l});
    l.run_until_idle();
    g.add(2);
    EXPECT_EQ(g.count(), 3u);
    g.done();
    g.done();
    l.run_until_idle();
    EXPECT_FALSE(through);
    g.done();
    l.run();
    EXPECT_TRUE(through);
    EXPECT_TRUE(g.wait(0s));
    f.join();
}

TEST(wait_group_death, done_more_often_than_added) {
    EXPECT_DEATH(weft::wait_group().done(),
                 "a countdown falls below zero \\(.*wait_group_test\\.cpp:");
}

TEST(wait_group_death, an_initial_count_beyond_its_maximum) {
    EXPECT_DEATH(weft::wait_group(~std::size_t{0}), "a countdown begins beyond its maximum");
}

}  // namespace
