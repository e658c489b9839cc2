#include "weft/task/with_timeout.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <system_error>

#include "test/task/on_loop.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace on_loop;
using weft::with_timeout;

TEST(with_timeout, returns_a_value_that_comes_in_time) {
    const auto body = []() -> task<int> {
        weft::result<int> r = co_await with_timeout(number_in(5ms, 4), 6ms);
        co_return r.value();
    };
    EXPECT_EQ(run(body()), 4);
}

TEST(with_timeout, ends_a_late_task_and_reports_timed_out) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    int live_count = 0;
    const auto body = [&]() -> task<> {
        weft::result<int> r = co_await with_timeout(hold_for_an_hour(live_count), 5ms);
        EXPECT_EQ(r.error(), std::errc::timed_out);
        EXPECT_EQ(live_count, 0);
        co_await weft::sleep_for(1ms);  // the deadline has passed
    };
    run(l, body());
    EXPECT_EQ(l.now() - before, 6ms);
}

TEST(with_timeout, returns_the_value_of_a_task_that_never_waits) {
    const auto now_ready = []() -> task<std::unique_ptr<int>> {
        co_return std::make_unique<int>(1);
    };
    const auto body = [&]() -> task<> {
        weft::result<std::unique_ptr<int>> r = co_await with_timeout(now_ready(), -1s);
        EXPECT_TRUE(r.has_value());
        weft::result<void> v = co_await with_timeout(weft::sleep_for(1ms), 2ms);
        EXPECT_TRUE(v.has_value());
    };
    run(body());
}

TEST(with_timeout, reports_a_timeout_at_the_nearest_of_nested_limits) {
    const auto body = []() -> task<> {
        const auto inner = []() -> task<int> {
            const weft::result<int> r = co_await with_timeout(number_in(1h, 1), 50ms);
            EXPECT_TRUE(false) << "the outer one ended it";
            co_return r.value();
        };
        const weft::result<int> outer = co_await with_timeout(inner(), 10ms);
        EXPECT_EQ(outer.error(), std::errc::timed_out);
        const auto other = []() -> task<int> {
            const weft::result<int> r = co_await with_timeout(number_in(1h, 1), 10ms);
            EXPECT_EQ(r.error(), std::errc::timed_out);
            co_return 2;
        };
        EXPECT_EQ((co_await with_timeout(other(), 50ms)).value(), 2);
    };
    run(body());
}

TEST(with_timeout, reaches_the_children_of_what_it_awaits) {
    int live_count = 0;
    const auto body = [&]() -> task<> {
        auto r = co_await with_timeout(
            weft::when_all(hold_for_an_hour(live_count), hold_for_an_hour(live_count)), 5ms);
        EXPECT_EQ(r.error(), std::errc::timed_out);
        EXPECT_EQ(live_count, 0);
    };
    run(body());
}

TEST(with_timeout, forwards_a_stop_and_an_error) {
    const auto failing = []() -> task<> {
        EXPECT_THROW(static_cast<void>(co_await with_timeout(failing_in(1ms, 3), 1s)), int);
    };
    run(failing());
    weft::testing::virtual_loop l(1);
    const auto body = []() -> task<> {
        static_cast<void>(co_await with_timeout(number_in(1h, 1), 1s));
    };
    weft::detail::task_run<void> r(body(), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    r->request_stop(weft::stop_reason::user);
    l.run();
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(with_timeout, of_a_duration_begins_when_it_is_awaited) {
    const auto body = []() -> task<> {
        auto limited = with_timeout(number_in(1h, 1), 5ms);
        co_await weft::sleep_for(1h);
        const weft::time_point begin = weft::now();
        const weft::result<int> r = co_await limited;
        EXPECT_EQ(r.error(), std::errc::timed_out);
        EXPECT_EQ(weft::now() - begin, 5ms);
    };
    run(body());
}

TEST(with_timeout, takes_a_time_of_the_system_clock) {
    const auto body = []() -> task<> {
        const auto passed = std::chrono::system_clock::now() - 1s;
        EXPECT_EQ((co_await with_timeout(number_in(1h, 1), passed)).error(), std::errc::timed_out);
        const auto later = std::chrono::system_clock::now() + 1h;
        EXPECT_EQ((co_await with_timeout(number_in(1ms, 1), later)).value(), 1);
    };
    run(body());
}

TEST(with_timeout, of_a_result_returns_an_unnested_result) {
    const auto reads = [](bool ends) -> task<weft::result<int>> {
        try {
            co_await weft::sleep_for(ends ? 1ms : 1h);
        } catch (const weft::stopped&) {
            co_return weft::failure(std::errc::operation_canceled);
        }
        co_return 5;
    };
    const auto body = [&]() -> task<> {
        weft::result<int> r = co_await with_timeout(reads(true), weft::now() + 5ms);
        EXPECT_EQ(r.value(), 5);
        r = co_await with_timeout(reads(false), weft::now() + 5ms);
        EXPECT_EQ(r.error(), std::errc::timed_out);
    };
    run(body());
}

TEST(with_timeout, can_be_awaited_by_a_fiber) {
    weft::testing::virtual_loop l(1);
    weft::fiber f(
        [] {
            const weft::result<int> r = weft::await(with_timeout(number_in(1h, 1), 5ms));
            EXPECT_EQ(r.error(), std::errc::timed_out);
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(with_timeout, can_be_awaited_outside_any_flow) {
    weft::testing::virtual_loop l(1);
    const auto body = []() -> task<bool> {
        co_return (co_await with_timeout(number_in(1h, 1), 5ms)).error() == std::errc::timed_out;
    };
    task<bool> t = body();
    l.loop().post([&] { t.start(); });
    l.run();
    EXPECT_TRUE(t.get());
}

TEST(with_timeout, started_without_an_await_limits_nothing_beside_it) {
    weft::testing::virtual_loop l(1);
    const auto body = []() -> task<> {
        auto late = with_timeout(number_in(1h, 1), 10ms);
        auto soon = with_timeout(number_in(1h, 2), 5ms);
        late.start();
        soon.start();
        co_await weft::sleep_for(7ms);
        EXPECT_TRUE(soon.done());
        EXPECT_FALSE(late.done());
        co_await weft::sleep_for(7ms);
        EXPECT_TRUE(late.done());
        EXPECT_EQ(late.get().error(), std::errc::timed_out);
        EXPECT_EQ(soon.get().error(), std::errc::timed_out);
    };
    run(l, body());
    EXPECT_EQ(l.now(), weft::time_point(14ms));
}

TEST(with_timeout, inside_a_task_that_was_started_limits_nothing_beside_it) {
    weft::testing::virtual_loop l(1);
    const auto body = []() -> task<> {
        const auto asks = []() -> task<bool> {
            co_return (co_await with_timeout(number_in(1h, 1), 5ms)).has_value();
        };
        auto beside = asks();
        beside.start();
        co_await weft::sleep_for(7ms);
        EXPECT_FALSE(co_await beside);
    };
    run(l, body());
    EXPECT_EQ(l.now(), weft::time_point(7ms));
}

}  // namespace
