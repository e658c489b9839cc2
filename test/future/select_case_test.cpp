#include "weft/future/select_case.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "test/future/values.hpp"
#include "test/support/agents.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace future_tests;
using weft::on_ready;
using weft::on_recv;

constexpr auto does_nothing = [] {};

class select_future_among : public weft::testing::among {};

TEST_P(select_future_among, each_outcome_and_each_item_arrives_once) {
    constexpr std::size_t count = 50;
    std::vector<promise<std::size_t>> promises(count);
    std::vector<future<std::size_t>> futures;
    for (auto& p : promises) futures.push_back(p.get_future());
    weft::channel<std::size_t> c;
    std::size_t outcomes = 0, items = 0;
    run(
        [&](auto wait) -> weft::task<> {
            while (outcomes < count && items < count)
                co_await wait(
                    weft::async_select(on_ready(futures[outcomes],
                                                [&] {
                                                    EXPECT_EQ(futures[outcomes].get(), outcomes);
                                                    ++outcomes;
                                                }),
                                       on_recv(c, [&](std::size_t i) { EXPECT_EQ(i, items++); })));
            for (; outcomes < count; ++outcomes) {
                const std::size_t n = co_await wait(futures[outcomes].async_get());
                EXPECT_EQ(n, outcomes);
            }
            while (items < count) {
                const auto item = co_await wait(c.async_recv());
                EXPECT_EQ(*item, items++);
            }
        },
        [&](auto wait) -> weft::task<> {
            for (std::size_t i = 0; i < count; ++i) {
                promises[i].set_value(i);
                EXPECT_TRUE(co_await wait(c.async_send(i)));
            }
        });
    EXPECT_EQ(outcomes + items, 2 * count);
}

TEST_P(select_future_among, a_timeout_case_leaves_the_future_as_it_was) {
    run_many(4, [&](auto wait) -> weft::task<> {
        promise<int> p, q;
        future<int> f = p.get_future(), g = q.get_future();
        weft::channel<int> c;
        const std::size_t first = co_await wait(
            weft::async_select(on_ready(f, does_nothing), weft::on_timeout(1ms, does_nothing),
                               on_recv(c, [](int) {}), on_ready(g, does_nothing)));
        EXPECT_EQ(first, 1u);
        EXPECT_FALSE(f.is_ready());
        p.set_value(7);
        const std::size_t second =
            co_await wait(weft::async_select(on_ready(g, does_nothing), on_ready(f, does_nothing)));
        EXPECT_EQ(second, 1u);
        EXPECT_EQ(f.get(), 7);
    });
}

WEFT_INSTANTIATE_AMONG(select_future_among);

TEST(select_future, chooses_any_case_that_has_happened_and_leaves_the_others) {
    int outcomes = 0, items = 0;
    promise<int> p;
    future<int> f = p.get_future();
    p.set_value(1);
    weft::channel<int> c(1);
    ASSERT_TRUE(c.try_send(2));
    for (int i = 0; i < 200; ++i) {
        weft::select(on_ready(f, [&] { ++outcomes; }), on_recv(c, [&](int n) {
                         EXPECT_EQ(n, 2);
                         ++items;
                         EXPECT_TRUE(c.try_send(2));
                     }));
        EXPECT_TRUE(f.is_ready());
        EXPECT_EQ(c.size(), 1u);
    }
    EXPECT_GT(outcomes, 50);
    EXPECT_GT(items, 50);
    EXPECT_EQ(f.get(), 1);
}

TEST(select_future, otherwise_does_not_wait) {
    promise<int> p;
    future<int> f = p.get_future();
    const auto looks = [&] {
        return weft::select(on_ready(f, does_nothing), weft::otherwise(does_nothing));
    };
    EXPECT_EQ(looks(), 1u);
    p.set_value(1);
    EXPECT_EQ(looks(), 0u);
    EXPECT_EQ(f.get(), 1);
}

TEST(select_future, a_broken_promise_is_an_outcome) {
    std::optional<promise<int>> p(std::in_place);
    future<int> f = p->get_future();
    weft::loop l;
    weft::fiber waits(
        [&] {
            EXPECT_EQ(weft::select(on_ready(f, does_nothing)), 0u);
            EXPECT_EQ(f.get_result().error(), weft::errc::broken_promise);
        },
        {.on = l});
    l.run_until_idle();
    p.reset();
    l.run();
    waits.join();
}

TEST(select_future, a_case_of_it_keeps_a_select_waiting_when_the_channels_are_closed) {
    promise<int> p;
    future<int> f = p.get_future();
    weft::channel<int> c, d;
    weft::loop l;
    std::size_t which = weft::select_none;
    c.close();
    weft::fiber waits(
        [&] {
            which = weft::select(on_recv(c, [](int) {}), on_ready(f, does_nothing),
                                 on_recv(d, [](int) {}));
        },
        {.on = l});
    l.run_until_idle();
    d.close();
    l.run_until_idle();
    EXPECT_EQ(which, weft::select_none);
    p.set_value(1);
    l.run();
    EXPECT_EQ(which, 1u);
    waits.join();
}

TEST(select_future, a_stop_is_a_case_or_throws) {
    for (const bool is_case : {true, false}) {
        promise<int> p;
        future<int> f = p.get_future();
        weft::channel<int> c;
        weft::loop l;
        std::size_t which = weft::select_none;
        weft::fiber waits(
            [&] {
                if (is_case)
                    which = weft::select(on_ready(f, does_nothing), on_recv(c, [](int) {}),
                                         weft::on_stop(does_nothing));
                else
                    weft::select(on_ready(f, does_nothing), on_recv(c, [](int) {}));
            },
            {.on = l});
        l.run_until_idle();
        waits.request_stop();
        l.run();
        EXPECT_EQ(waits.join().is_stopped(), !is_case);
        EXPECT_EQ(which, is_case ? 2u : weft::select_none);
        EXPECT_FALSE(c.try_send(1));
        p.set_value(3);
        EXPECT_EQ(f.get(), 3);
    }
}

TEST(select_future, a_killed_select_leaves_the_future_and_the_channel) {
    promise<int> p;
    future<int> f = p.get_future();
    weft::channel<int> c;
    {
        weft::loop l;
        weft::fiber(
            [&] {
                const weft::shield s;
                weft::select(on_recv(c, [](int) {}), on_ready(f, does_nothing));
            },
            {.on = l})
            .detach();
        l.run_until_idle();
    }  // ends it
    EXPECT_FALSE(c.try_send(1));
    p.set_value(3);
    EXPECT_EQ(f.get(), 3);
}

// Whichever source has claimed it.
TEST(select_future, leaves_everything_if_its_frame_is_destroyed_unresumed) {
    for (const bool by_future : {true, false}) {
        promise<int> p;
        future<int> f = p.get_future();
        weft::channel<int> c;
        weft::loop l;
        const auto body = [&]() -> weft::task<> {
            co_await weft::async_select(on_recv(c, [](int) { ADD_FAILURE(); }),
                                        on_ready(f, [] { ADD_FAILURE(); }));
        };
        auto t = std::make_unique<weft::task<>>(body());
        l.post([&] { t->start(); });
        l.run_until_idle();
        l.post([&] {
            if (by_future)
                p.set_value(3);
            else
                EXPECT_TRUE(c.try_send(1));
            t.reset();
        });
        l.run();
        EXPECT_FALSE(c.try_send(1));
        EXPECT_EQ(f.is_ready(), by_future);
        if (!by_future) p.set_value(3);
        EXPECT_EQ(f.get(), 3);
    }
}

TEST(select_future_death, an_empty_future) {
    EXPECT_DEATH(
        {
            future<int> none;
            weft::select(on_ready(none, does_nothing));
        },
        "use of a future that is empty \\(.*select_case_test\\.cpp:");
}

TEST(select_future_death, a_future_in_two_cases_of_a_select_that_waits) {
    EXPECT_DEATH(
        {
            promise<int> p;
            future<int> f = p.get_future();
            weft::select(on_ready(f, does_nothing), on_ready(f, does_nothing));
        },
        "two wait for one future");
}

}  // namespace
