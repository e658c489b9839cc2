#include "weft/task/when_all.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "test/support/nothing_spare.hpp"
#include "test/support/slow.hpp"
#include "test/task/on_loop.hpp"
#include "test/task/small_stack.hpp"
#include "test/task/tasks.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/task/event_source.hpp"
#include "weft/task/with_nursery.hpp"

namespace {

using namespace on_loop;
using weft::when_all;

TEST(when_all, returns_results_in_order_when_the_slowest_is_done) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    const auto body = []() -> task<int> {
        auto [a, b, c] =
            co_await when_all(number_in(3ms, 1), number_in(9ms, 20), number_in(1ms, 300));
        co_return a + b + c;
    };
    EXPECT_EQ(run(l, body()), 321);
    EXPECT_EQ(l.now() - before, 9ms);
}

TEST(when_all, of_a_range_returns_a_vector) {
    const auto body = []() -> task<std::vector<int>> {
        std::vector<task<int>> tasks;
        for (int i = 0; i < 5; ++i) tasks.push_back(number_in(std::chrono::milliseconds(9 - i), i));
        co_return co_await when_all(std::move(tasks));
    };
    EXPECT_EQ(run(body()), (std::vector{0, 1, 2, 3, 4}));
}

TEST(when_all, of_an_empty_range_is_ready) {
    const auto body = []() -> task<std::size_t> {
        co_return (co_await when_all(std::vector<task<int>>())).size();
    };
    EXPECT_EQ(run(body()), 0u);
}

TEST(when_all, of_nothing_is_an_empty_tuple_at_once) {
    static_assert(std::is_same_v<weft::await_result_t<decltype(when_all())>, std::tuple<>>);
    const auto body = []() -> task<bool> {
        auto all = when_all();
        const bool at_once = all.ready();
        const std::tuple<> values = co_await all;
        co_return at_once&& values == std::tuple<>() && all.errors().empty();
    };
    EXPECT_TRUE(run(body()));
    EXPECT_EQ(weft::sync_wait(when_all()), std::tuple<>()) << "on a thread";
    weft::loop l;
    weft::fiber f([] { EXPECT_EQ(weft::await(when_all()), std::tuple<>()); }, {.on = l});
    l.run();
}

TEST(when_all, of_nothing_completes_although_its_awaiter_is_stopped) {
    bool completed = false;
    const auto body = [&]() -> task<> {
        weft::current_flow()->request_stop(weft::stop_reason::user);
        co_await when_all();
        co_await when_all(std::vector<task<int>>());
        completed = true;
    };
    run(body());
    EXPECT_TRUE(completed);
}

TEST(when_all, takes_any_type_and_any_awaitable) {
    int place = 7;
    const auto reference = [](int& r) -> task<int&> { co_return r; };
    const auto movable = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };
    const auto nothing = []() -> task<> { co_return; };
    const auto body = [&]() -> task<> {
        auto [r, m, n, s] =
            co_await when_all(reference(place), movable(), nothing(), weft::sleep_for(1ms));
        EXPECT_EQ(&r.get(), &place);
        EXPECT_EQ(*m, 4);
        static_assert(std::is_same_v<decltype(n), std::monostate>);
        static_assert(std::is_same_v<decltype(s), std::monostate>);
    };
    run(body());
}

TEST(when_all, runs_all_then_throws_the_first_error_and_keeps_every_error) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    const auto body = [](std::vector<int>& seen) -> task<> {
        auto all = when_all(failing_in(7ms, 7), failing_in(2ms, 2), number_in(30ms, 0),
                            failing_in(4ms, 4));
        try {
            co_await all;
        } catch (int n) {
            seen.push_back(n);
        }
        for (const std::exception_ptr& e : all.errors()) {
            try {
                std::rethrow_exception(e);
            } catch (int n) {
                seen.push_back(n);
            }
        }
    };
    std::vector<int> seen;
    run(l, body(seen));
    EXPECT_EQ(seen, (std::vector{2, 2, 4, 7}));
    EXPECT_EQ(l.now() - before, 30ms);
}

TEST(when_all, forwards_a_stop_and_waits_for_all) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    const auto body = [](int& n) -> task<> {
        co_await when_all(hold_for_an_hour(n), hold_for_an_hour(n));
    };
    weft::detail::task_run<void> r(body(live_count), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 2);
    EXPECT_EQ(l.loop().flow_count(), 3u);
    r->request_stop(weft::stop_reason::user);
    const weft::time_point before = l.now();
    l.run();
    EXPECT_EQ(l.now(), before);
    EXPECT_EQ(live_count, 0);
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(when_all, of_a_range_is_stopped_when_a_sibling_of_its_awaiter_fails) {
    int returned = 0;
    weft::stop_reason why = weft::stop_reason::none;
    const auto sleeps = []() -> task<> { co_await weft::sleep_for(1h); };
    const auto awaits_two = [&]() -> task<> {
        std::vector<task<>> all;
        for (int i = 0; i < 2; ++i) all.push_back(sleeps());
        try {
            co_await when_all(std::move(all));
            ++returned;
        } catch (const weft::stopped& s) {
            why = s.reason;
            throw;
        }
    };
    const auto body = [&]() -> task<> {
        co_await weft::with_nursery([&](weft::nursery& n) -> task<> {
            n.spawn(failing_in(2ms, 9));
            n.spawn(awaits_two());
            co_await n.async_join();
        });
    };
    EXPECT_THROW(run(body()), int);
    EXPECT_EQ(returned, 0);
    EXPECT_EQ(why, weft::stop_reason::sibling_failed);
}

TEST(when_all, returns_values_completed_in_spite_of_a_stop) {
    const auto stubborn = []() -> task<int> {
        try {
            co_await weft::sleep_for(1h);
        } catch (const weft::stopped&) {
        }
        co_return 3;
    };
    const auto body = [&]() -> task<int> {
        auto [a, b] = co_await when_all(stubborn(), stubborn());
        co_return a + b;
    };
    weft::testing::virtual_loop l(1);
    weft::detail::task_run<int> r(body(), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    r->request_stop(weft::stop_reason::user);
    l.run();
    EXPECT_EQ(r.take(), 6);
}

TEST(when_all, starts_nothing_after_a_stop) {
    bool began = false;
    const auto child = [](bool& b) -> task<> {
        b = true;
        co_return;
    };
    const auto body = [&]() -> task<> {
        weft::current_flow()->request_stop(weft::stop_reason::user);
        co_await when_all(child(began));
    };
    EXPECT_THROW(run(body()), weft::stopped);
    EXPECT_FALSE(began);
}

TEST(when_all, destroyed_while_it_waits_ends_its_tasks) {
    int live_count = 0;
    weft::testing::virtual_loop l(1);
    const auto body = [](int& n) -> task<> {
        auto all = when_all(hold_for_an_hour(n), hold_for_an_hour(n));
        co_await all;
    };
    std::optional<task<>> t;
    l.loop().post([&] {
        t.emplace(body(live_count));
        t->start();
    });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 2);
    l.loop().post([&] { t.reset(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 0);
    EXPECT_EQ(l.loop().flow_count(), 0u);
}

// An ordinary function, deep in a fiber, awaits tasks; a task awaits a fiber that calls it.
int total() {
    auto [a, b] = weft::await(when_all(number_in(2ms, 30), number_in(1ms, 4)));
    return a + b;
}

TEST(when_all, works_in_a_fiber_awaited_by_a_task) {
    weft::testing::virtual_loop l(1);
    const auto checkout = []() -> task<int> {
        auto island = weft::spawn([] { return total(); });
        co_return co_await island.async_get();
    };
    EXPECT_EQ(run(l, checkout()), 34);
}

TEST(when_all, of_many_is_woken_without_recursion) {
    const auto body = []() -> task<std::size_t> {
        std::vector<task<int>> tasks;
        for (int i = 0; i < 10000; ++i) tasks.push_back(number_in(1ms, i));
        co_return (co_await when_all(std::move(tasks))).size();
    };
    EXPECT_EQ(run(body()), 10000u);
}

// -- none of it takes stack, however deep and however often --------------------------------------

constexpr int many_all = WEFT_ASAN || WEFT_TSAN || WEFT_DEBUG ? 10'000 : 100'000;

task<int> nested_all(int depth, weft::duration d) {
    if (depth == 0) {
        if (d != 0ms) co_await weft::sleep_for(d);
        co_return 0;
    }
    auto [inner, one] = co_await when_all(nested_all(depth - 1, d), tasks::number(1));
    co_return inner + one;
}

TEST(when_all, nested_deeply_needs_no_stack) {
    on_small_stack([] {
        EXPECT_EQ(run(nested_all(many_all, 0ms)), many_all) << "all is there at once";
        EXPECT_EQ(run(nested_all(many_all, 1ms)), many_all) << "a timer wakes the innermost";
    });
}

TEST(when_all, forwards_a_stop_to_deeply_nested_tasks) {
    weft::testing::virtual_loop l(1);
    weft::detail::task_run<int> r(nested_all(500, 1h), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    const weft::time_point before = l.now();
    r->request_stop(weft::stop_reason::user);
    l.run();
    EXPECT_EQ(l.now(), before);
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(when_all, completing_at_once_in_a_loop_needs_no_stack) {
    const auto body = []() -> task<int> {
        int sum = 0;
        for (int i = 0; i < many_all; ++i) {
            auto [a, b] = co_await when_all(tasks::number(1), tasks::number(2));
            sum += a + b;
        }
        co_return sum;
    };
    on_small_stack([&] { EXPECT_EQ(run(body()), 3 * many_all); });
}

// What waits costs nothing, however much of it there is.
TEST(when_all, of_a_hundred_thousand_waiters_uses_no_processor_time) {
    constexpr std::size_t many = weft::testing::slow || WEFT_DEBUG ? 10'000 : 100'000;
    weft::loop l;
    weft::event_source<int> e;
    const auto waits = [&]() -> task<int> { co_return co_await e.next(); };
    const auto body = [&]() -> task<std::size_t> {
        std::vector<task<int>> all;
        for (std::size_t i = 0; i < many; ++i) all.push_back(waits());
        co_return (co_await when_all(std::move(all))).size();
    };
    weft::detail::task_run<std::size_t> r(body(), l);
    r->post_first_turn();
    l.run_until_idle();
    weft::testing::nothing_spare();
    const std::clock_t before = std::clock();
    EXPECT_FALSE(l.run_once(weft::after(l.now(), 200ms)));
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 20);
    EXPECT_EQ(e.set(1), many);
    l.run_until_idle();
    EXPECT_EQ(r.take(), many);
}

}  // namespace
