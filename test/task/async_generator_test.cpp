#include "weft/task/async_generator.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "test/task/agents.hpp"
#include "test/task/on_loop.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace on_loop;
using weft::async_generator;

async_generator<int> count(int from, int to, std::chrono::milliseconds d = 0ms) {
    for (int n = from; n < to; ++n) {
        if (d != 0ms) co_await weft::sleep_for(d);
        co_yield n;
    }
}

TEST(async_generator, yields_its_elements_in_order) {
    const auto body = []() -> task<int> {
        int sum = 0;
        auto g = count(1, 5);
        for (auto it = co_await g.begin(); it != g.end(); co_await ++it) sum = sum * 10 + *it;
        co_return sum;
    };
    EXPECT_EQ(run(body()), 1234);
}

TEST(async_generator, can_await_between_elements) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    const auto body = []() -> task<int> {
        int sum = 0;
        auto g = count(1, 4, 2ms);
        while (const int* n = co_await g.next()) sum = sum * 10 + *n;
        EXPECT_EQ(co_await g.next(), nullptr);
        co_return sum;
    };
    EXPECT_EQ(run(l, body()), 123);
    EXPECT_EQ(l.now() - before, 6ms);
}

TEST(async_generator, runs_nothing_before_the_first_request) {
    bool ran = false;
    const auto marks = [](bool& r) -> async_generator<int> {
        r = true;
        co_yield 1;
    };
    {
        auto g = marks(ran);
    }
    EXPECT_FALSE(ran);
}

TEST(async_generator, yields_move_only_values_and_references) {
    const auto movables = []() -> async_generator<std::unique_ptr<int>> {
        co_yield std::make_unique<int>(3);
        std::unique_ptr<int> named = std::make_unique<int>(4);
        co_yield named;
        EXPECT_EQ(named, nullptr);
    };
    int place = 5;
    const auto references = [](int& p) -> async_generator<int&> { co_yield p; };
    const auto body = [&]() -> task<int> {
        int sum = 0;
        auto g = movables();
        while (auto* p = co_await g.next()) {
            const std::unique_ptr<int> mine = std::move(*p);
            sum += *mine;
        }
        auto r = references(place);
        EXPECT_EQ(co_await r.next(), &place);
        co_return sum;
    };
    EXPECT_EQ(run(body()), 7);
}

TEST(async_generator, throws_from_the_step_that_met_the_exception) {
    const auto failing = []() -> async_generator<int> {
        co_yield 1;
        co_await weft::sleep_for(1ms);
        throw 7;
    };
    const auto body = [&]() -> task<> {
        auto g = failing();
        auto it = co_await g.begin();
        EXPECT_EQ(*it, 1);
        int caught = 0;
        try {
            co_await ++it;
        } catch (int n) {
            caught = n;
        }
        EXPECT_EQ(caught, 7);
        EXPECT_TRUE(it == g.end());
        EXPECT_EQ(co_await g.next(), nullptr);
    };
    run(body());
}

TEST(async_generator, a_stop_of_its_awaiter_ends_a_wait_of_its_body) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    const auto holds = [](int& n) -> async_generator<int> {
        const held h(n);
        co_yield 1;
        co_await weft::sleep_for(1h);
    };
    const auto body = [&]() -> task<> {
        auto g = holds(live_count);
        while (co_await g.next() != nullptr) EXPECT_EQ(live_count, 1);
    };
    weft::detail::task_run<void> r(body(), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    r->request_stop(weft::stop_reason::user);
    l.run();
    EXPECT_THROW(r.take(), weft::stopped);
    EXPECT_EQ(live_count, 0);
}

TEST(async_generator, is_destroyed_at_a_yield_and_in_a_wait) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    const auto holds = [](int& n) -> async_generator<int> {
        const held h(n);
        co_yield 1;
        co_await weft::sleep_for(1h);
    };
    const auto at_yield = [&]() -> task<> {
        auto g = holds(live_count);
        co_await g.next();
        EXPECT_EQ(live_count, 1);
    };
    run(l, at_yield());
    EXPECT_EQ(live_count, 0);
    const auto in_wait = [](auto make, int& n) -> task<> {
        auto g = make(n);
        co_await g.next();
        co_await g.next();
    };
    task<> t = in_wait(holds, live_count);
    l.loop().post([&] { t.start(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 1);
    l.loop().post([&] { t = task<>(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 0);
    l.run();  // no timer of it is left
}

TEST(async_generator, of_a_million_elements_needs_no_more_stack_than_of_one) {
    const auto body = []() -> task<std::int64_t> {
        std::int64_t sum = 0;
        auto g = count(0, 1000000);
        while (const int* n = co_await g.next()) sum += *n;
        co_return sum;
    };
    EXPECT_EQ(weft::sync_wait(body()), 499'999'500'000);
}

TEST(async_generator, can_be_awaited_by_a_foreign_coroutine) {
    int sum = 0;
    const auto body = [](int& s) -> foreign_coroutine {
        auto g = count(1, 4);
        while (const int* n = co_await g.next()) s = s * 10 + *n;
    };
    body(sum);
    EXPECT_EQ(sum, 123);
}

TEST(async_generator_death, refuses_a_second_await_of_the_next_element) {
    const auto twice = []() -> task<> {
        auto g = count(0, 5, 1ms);
        const auto awaits = [](async_generator<int>& same) -> task<> { co_await same.next(); };
        co_await weft::when_all(awaits(g), awaits(g));
    };
    EXPECT_DEATH(run(twice()),
                 "weft: second await of an async_generator's next element.*async_generator_test");
}

TEST(async_generator_death, refuses_next_and_begin_when_empty) {
    async_generator<int> g;
    EXPECT_DEATH(static_cast<void>(g.next()),
                 "an element of an empty async_generator.*async_generator_test.cpp");
    EXPECT_DEATH(static_cast<void>(g.begin()),
                 "an element of an empty async_generator.*async_generator_test.cpp");
}

TEST(async_generator, survives_self_move_and_ends_the_assigned_one_once) {
    int live_count = 0;
    const auto holds = [](int& n) -> async_generator<int> {
        const held h(n);
        for (int i = 1;; ++i) co_yield i;
    };
    const auto body = [&]() -> task<> {
        auto g = holds(live_count), other = holds(live_count);
        co_await g.next();
        co_await other.next();
        auto& same = g;
        g = std::move(same);
        EXPECT_EQ(live_count, 2);
        EXPECT_EQ(*co_await g.next(), 2);
        g = std::move(other);
        EXPECT_EQ(live_count, 1);
        EXPECT_EQ(*co_await g.next(), 2);
    };
    run(body());
    EXPECT_EQ(live_count, 0);
}

}  // namespace
