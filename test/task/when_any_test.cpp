#include "weft/task/when_any.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "test/task/on_loop.hpp"

namespace {

using namespace on_loop;
using weft::when_any;
using weft::when_n;

TEST(when_any, returns_the_index_and_value_of_the_first) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    const auto text_in = [](std::chrono::milliseconds d) -> task<std::string> {
        co_await weft::sleep_for(d);
        co_return "text";
    };
    const auto body = [&]() -> task<> {
        auto first = co_await when_any(number_in(5ms, 5), text_in(2ms), weft::sleep_for(9ms));
        EXPECT_EQ(first.index, 1u);
        EXPECT_EQ(std::get<1>(first.value), "text");
    };
    run(l, body());
    EXPECT_EQ(l.now() - before, 2ms);
}

TEST(when_any, stops_and_joins_the_losers_before_it_returns) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    const auto slow_to_go = [](int& n) -> task<int> {
        const held h(n);
        try {
            co_await weft::sleep_for(1h);
        } catch (const weft::stopped&) {
        }
        weft::shield s;
        co_await weft::sleep_for(20ms);
        co_return 0;
    };
    const auto body = [&]() -> task<> {
        auto first = co_await when_any(hold_for_an_hour(live_count), number_in(3ms, 3),
                                       slow_to_go(live_count));
        EXPECT_EQ(first.index, 1u);
        EXPECT_EQ(live_count, 0);
        EXPECT_EQ(std::get<1>(first.value), 3);
    };
    const weft::time_point before = l.now();
    run(l, body());
    EXPECT_EQ(l.now() - before, 23ms);
}

TEST(when_any, throws_the_error_of_the_first) {
    const auto body = []() -> task<> { co_await when_any(number_in(9ms, 1), failing_in(1ms, 8)); };
    EXPECT_THROW(run(body()), int);
    const auto other = []() -> task<int> {
        auto first = co_await when_any(number_in(1ms, 1), failing_in(9ms, 8));
        co_return std::get<0>(first.value);
    };
    EXPECT_EQ(run(other()), 1);
}

TEST(when_any, of_a_range) {
    const auto body = []() -> task<int> {
        std::vector<task<int>> tasks;
        for (int i = 0; i < 9; ++i) tasks.push_back(number_in(std::chrono::milliseconds(9 - i), i));
        auto [index, value] = co_await when_any(std::move(tasks));
        EXPECT_EQ(index, 8u);
        co_return value;
    };
    EXPECT_EQ(run(body()), 8);
}

TEST(when_any, is_stopped_with_its_awaiter) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    const auto body = [](int& n) -> task<> {
        co_await when_any(hold_for_an_hour(n), hold_for_an_hour(n));
    };
    weft::detail::task_run<void> r(body(live_count), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    r->request_stop(weft::stop_reason::user);
    l.run();
    EXPECT_EQ(live_count, 0);
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(when_n, returns_the_first_in_completion_order) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    const auto body = []() -> task<> {
        std::vector<task<int>> tasks;
        for (int i = 0; i < 9; ++i) tasks.push_back(number_in(std::chrono::milliseconds(9 - i), i));
        auto three = co_await when_n(3, std::move(tasks));
        EXPECT_EQ(three.size(), 3u);
        for (std::size_t i = 0; i < 3; ++i) {
            EXPECT_EQ(three[i].index, 8 - i);
            EXPECT_EQ(three[i].value, 8 - static_cast<int>(i));
        }
    };
    run(l, body());
    EXPECT_EQ(l.now() - before, 3ms);
}

TEST(when_n, of_fewer_returns_all) {
    const auto body = []() -> task<std::size_t> {
        auto all = co_await when_n(5, number_in(2ms, 1), number_in(1ms, 2));
        EXPECT_EQ(all[0].index, 1u);
        EXPECT_EQ(std::get<1>(all[0].value), 2);
        co_return all.size();
    };
    EXPECT_EQ(run(body()), 2u);
}

TEST(when_any_death, of_none_names_the_file_of_the_call) {
    const auto none = [] { return std::vector<task<int>>(); };
    const auto first = [&]() -> task<> { co_await when_any(none()); };
    EXPECT_DEATH(run(first()), "weft: when_any of an empty range .*when_any_test.cpp");
    EXPECT_DEATH(static_cast<void>(when_n(0, none())), "weft: when_n of none .*when_any_test.cpp");
    EXPECT_DEATH(static_cast<void>(when_n(0, number_in(1ms, 1))),
                 "weft: when_n of none .*when_any_test.cpp");
}

}  // namespace
