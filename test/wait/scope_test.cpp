#include "weft/wait/detail/scope.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "test/support/slow.hpp"
#include "test/task/on_loop.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace on_loop;
using weft::detail::scope;
using run_of_int = weft::detail::task_run<int>;

// n tasks of a scope that sleep for so many milliseconds each; a negative one fails.
class children {
public:
    children(weft::testing::virtual_loop& l, scope& s, std::initializer_list<int> sleeps) {
        for (const int n : sleeps) {
            const std::chrono::milliseconds d(n < 0 ? -n : n);
            runs_.emplace_back(n < 0 ? failing_in(d, n) : number_in(d, n), l.loop());
            s.enter(runs_.back()->member);
            runs_.back()->post_first_turn();
        }
    }
    run_of_int& operator[](std::size_t i) { return runs_[i]; }

private:
    std::vector<run_of_int> runs_;
};

TEST(scope, records_the_order_in_which_its_children_end) {
    weft::testing::virtual_loop l(1);
    scope s;
    children c(l, s, {3, 1, 2});
    EXPECT_EQ(s.living_count(), 3u);
    l.run();
    EXPECT_TRUE(s.empty());
    EXPECT_EQ(c[0]->member.place, 3u);
    EXPECT_EQ(c[1]->member.place, 1u);
    EXPECT_EQ(c[2]->member.place, 2u);
}

TEST(scope, stops_the_rest_when_enough_have_ended) {
    weft::testing::virtual_loop l(1);
    scope s({.enough = 2});
    children c(l, s, {3, 1, 9000, 8000});
    const weft::time_point before = l.now();
    l.run();
    EXPECT_EQ(l.now() - before, 3ms);
    EXPECT_EQ(c[2]->member.stopped_by, weft::stop_reason::user);
    EXPECT_EQ(c[0]->member.stopped_by, weft::stop_reason::none);
}

TEST(scope, keeps_every_error_and_stops_the_rest_for_the_first) {
    weft::testing::virtual_loop l(1);
    {
        scope all;
        children c(l, all, {-3, -1, 5});
        l.run();
        EXPECT_EQ(all.errors().size(), 2u);
        EXPECT_EQ(all.first_error(), c[1]->member.error);
    }
    scope one({.one_fails_all_stop = true});
    children c(l, one, {9000, -1, 5});
    l.run();
    EXPECT_EQ(one.errors().size(), 1u);
    EXPECT_EQ(c[0]->member.stopped_by, weft::stop_reason::sibling_failed);
    EXPECT_THROW(c[0].take(), int);
}

TEST(scope, stops_all_children_and_those_that_enter_later) {
    weft::testing::virtual_loop l(1);
    scope s;
    children c(l, s, {9000});
    s.request_stop(weft::stop_reason::shutdown);
    children late(l, s, {9000});
    const weft::time_point before = l.now();
    l.run();
    EXPECT_EQ(l.now(), before);
    EXPECT_EQ(c[0]->member.stopped_by, weft::stop_reason::shutdown);
    EXPECT_EQ(late[0]->member.stopped_by, weft::stop_reason::shutdown);
}

TEST(scope, kills_its_children_immediately) {
    weft::testing::virtual_loop l(1);
    scope s;
    children c(l, s, {9000, 9000});
    l.loop().run_until_idle();
    l.loop().post([&] {
        s.kill_children();
        EXPECT_TRUE(s.empty());
    });
    l.loop().run_until_idle();
    EXPECT_EQ(l.loop().flow_count(), 0u);
    EXPECT_THROW(c[0].take(), weft::stopped);
}

task<> many_deep(int levels) {
    if (levels == 0)
        co_await weft::sleep_for(1h);
    else
        co_await weft::when_all(many_deep(levels - 1));
}

// Each scope forwards the stop to the next, and no stack is as deep as the scopes.
TEST(scope, forwards_a_stop_through_deep_nesting_on_a_small_stack) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    weft::detail::task_run<void> outermost(many_deep(weft::testing::slow ? 10'000 : 100'000),
                                           l.loop());
    outermost->post_first_turn();
    weft::fiber stops([&] { EXPECT_TRUE(outermost->request_stop(weft::stop_reason::user)); },
                      {.on = l, .launch = weft::launch::deferred, .stack_bytes = 128 * 1024});
    l.loop().run_until_idle();
    EXPECT_FALSE(outermost->has_ended());
    stops.start();
    l.run();
    stops.join();
    EXPECT_TRUE(outermost->has_ended());
    EXPECT_THROW(outermost.take(), weft::stopped);
    EXPECT_EQ(l.now(), before);
}

using scope_deathtest = ::testing::Test;
TEST_F(scope_deathtest, destroyed_with_live_children_aborts) {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    const auto breaks_the_rule = [] {
        weft::testing::virtual_loop l(1);
        run_of_int r(number_in(1h, 1), l.loop());
        scope s;
        s.enter(r->member);
    };
    EXPECT_DEATH(breaks_the_rule(), "a scope is destroyed while flows live in it");
}

}  // namespace
