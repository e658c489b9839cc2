// Every awaitable can be awaited by a coroutine that is independent of weft: its promise has no
// await_transform, no flow and no executor of its own.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "test/task/agents.hpp"
#include "test/task/on_loop.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/select.hpp"
#include "weft/task/async_generator.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/event_source.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/shared_task.hpp"
#include "weft/task/when_all.hpp"
#include "weft/task/when_any.hpp"
#include "weft/task/with_nursery.hpp"
#include "weft/task/with_timeout.hpp"
#include "weft/wait/from_callback.hpp"

namespace {

using namespace on_loop;

weft::eager_task<int> eager_number_in(std::chrono::milliseconds d, int n) {
    if (d != 0ms) co_await weft::sleep_for(d);
    co_return n;
}
weft::shared_task<int> shared_number_in(std::chrono::milliseconds d, int n) {
    if (d != 0ms) co_await weft::sleep_for(d);
    co_return n;
}
weft::async_generator<int> numbers_in(std::chrono::milliseconds d, int first, int last) {
    for (int n = first; n <= last; ++n) {
        if (d != 0ms) co_await weft::sleep_for(d);
        co_yield n;
    }
}

// Starts body(ended) on a loop, outside any flow, and runs the loop to the end. The body sets
// `ended` at its own end.
template <class Body>
void foreign_on_a_loop(Body body) {
    weft::testing::virtual_loop l(1);
    bool ended = false;
    l.loop().post([&] { body(ended); });
    l.run();
    EXPECT_TRUE(ended) << "somebody was not resumed";
}

TEST(foreign, awaits_a_task) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        EXPECT_EQ(co_await number_in(0ms, 1), 1);
        EXPECT_EQ(co_await number_in(1ms, 2), 2);
        task<int> named = number_in(1ms, 3);
        EXPECT_EQ(co_await named, 3);
        ended = true;
    });
}

TEST(foreign, awaits_an_eager_task) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        auto ready = eager_number_in(0ms, 1), later = eager_number_in(1ms, 2);
        EXPECT_TRUE(ready.done());
        EXPECT_FALSE(later.done());
        EXPECT_EQ(co_await ready, 1);
        EXPECT_EQ(co_await later, 2);
        EXPECT_EQ(co_await eager_number_in(1ms, 3), 3);
        ended = true;
    });
}

TEST(foreign, awaits_a_shared_task) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        const auto t = shared_number_in(1ms, 1);
        EXPECT_EQ(co_await t, 1);
        EXPECT_EQ(co_await t, 1) << "again";
        EXPECT_EQ(co_await shared_number_in(0ms, 2), 2);
        ended = true;
    });
}

TEST(foreign, awaits_the_next_of_an_async_generator) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        std::vector<int> got;
        auto slow = numbers_in(1ms, 1, 2);
        while (const int* n = co_await slow.next()) got.push_back(*n);
        auto at_once = numbers_in(0ms, 3, 4);
        for (auto it = co_await at_once.begin(); it != at_once.end(); co_await ++it)
            got.push_back(*it);
        EXPECT_EQ(got, (std::vector{1, 2, 3, 4}));
        ended = true;
    });
}

TEST(foreign, awaits_when_all) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        auto [a, b] = co_await weft::when_all(number_in(1ms, 1), number_in(0ms, 2));
        EXPECT_EQ(a, 1);
        EXPECT_EQ(b, 2);
        std::vector<task<int>> many;
        for (int i = 0; i < 3; ++i) many.push_back(number_in(1ms, i));
        const std::vector<int> all = co_await weft::when_all(std::move(many));
        EXPECT_EQ(all, (std::vector{0, 1, 2}));
        ended = true;
    });
}

TEST(foreign, awaits_when_any_and_some) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        int live_count = 0;
        auto first = co_await weft::when_any(hold_for_an_hour(live_count), number_in(1ms, 2));
        EXPECT_EQ(first.index, 1u);
        EXPECT_EQ(std::get<1>(first.value), 2);
        EXPECT_EQ(live_count, 0) << "the loser has ended";
        auto two =
            co_await weft::when_n(2, number_in(3ms, 3), number_in(2ms, 2), number_in(1ms, 1));
        EXPECT_EQ(two.size(), 2u);
        EXPECT_EQ(two.at(0).index, 2u);
        EXPECT_EQ(two.at(1).index, 1u);
        ended = true;
    });
}

TEST(foreign, awaits_with_timeout) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        EXPECT_EQ((co_await weft::with_timeout(number_in(1ms, 1), 1h)).value(), 1);
        const auto late = co_await weft::with_timeout(number_in(1h, 1), 1ms);
        EXPECT_EQ(late.error(), std::errc::timed_out);
        ended = true;
    });
}

TEST(foreign, awaits_the_join_of_a_fiber) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        int at = 0;
        weft::fiber f([&] { weft::this_fiber::sleep_for(1ms), at = 1; });
        EXPECT_FALSE((co_await f.async_join()).is_stopped());
        EXPECT_EQ(at, 1);
        auto has_value = weft::spawn([] { return 2; });
        EXPECT_EQ(co_await has_value.async_get(), 2);
        weft::fiber stopped([] { weft::this_fiber::sleep_for(1h); });
        stopped.request_stop();
        EXPECT_TRUE((co_await stopped.async_join()).is_stopped());
        ended = true;
    });
}

TEST(foreign, awaits_with_nursery_and_schedule_on) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        const int sum = co_await weft::with_nursery([](weft::nursery& n) -> task<int> {
            auto a = n.spawn(number_in(1ms, 1));
            auto b = n.spawn(number_in(2ms, 2));
            const int first = co_await a.async_get();
            co_return first + co_await b.async_get();
        });
        EXPECT_EQ(sum, 3);
        EXPECT_EQ(co_await weft::schedule_on(weft::detail::executor_here(), number_in(1ms, 4)), 4);
        ended = true;
    });
}

TEST(foreign, awaits_synchronisation_operations) {
    weft::mutex m;
    weft::auto_reset_event event;
    weft::channel<int> items, silent;
    weft::event_source<int> source;
    foreign_on_a_loop([&](bool& ended) -> foreign_coroutine {
        weft::fiber other([&] {
            const std::lock_guard held(m);
            weft::this_fiber::sleep_for(1ms);
            event.set();
            EXPECT_TRUE(items.send(5));
            EXPECT_TRUE(items.send(6));
            weft::this_fiber::sleep_for(1ms);
            EXPECT_EQ(source.set(7), 1u);
        });
        co_await event.async_wait();
        EXPECT_EQ(*co_await items.async_recv(), 5);
        int selected = 0;
        co_await weft::async_select(weft::on_recv(items, [&](int i) { selected = i; }),
                                    weft::on_recv(silent, [](int) {}));
        EXPECT_EQ(selected, 6);
        EXPECT_EQ(co_await source.next(), 7);
        co_await m.async_lock();
        m.unlock();
        co_await weft::sleep_for(1ms);
        EXPECT_EQ((co_await weft::from_callback<int>([](auto done) { done(8); })).value(), 8);
        co_await other.async_join();
        ended = true;
    });
}

TEST(foreign, catches_exceptions_of_what_it_awaits) {
    foreign_on_a_loop([](bool& ended) -> foreign_coroutine {
        std::vector<int> caught;
        const auto eager = [](int n) -> weft::eager_task<int> {
            co_await weft::sleep_for(1ms);
            throw n;
        };
        const auto shared = [](int n) -> weft::shared_task<int> {
            co_await weft::sleep_for(1ms);
            throw n;
        };
        const auto elements = [](int n) -> weft::async_generator<int> {
            co_await weft::sleep_for(1ms);
            throw n;
            co_yield n;
        };
        try {
            co_await failing_in(1ms, 1);
        } catch (int n) {
            caught.push_back(n);
        }
        try {
            co_await eager(2);
        } catch (int n) {
            caught.push_back(n);
        }
        try {
            co_await shared(3);
        } catch (int n) {
            caught.push_back(n);
        }
        try {
            auto g = elements(4);
            co_await g.next();
        } catch (int n) {
            caught.push_back(n);
        }
        try {
            co_await weft::when_all(number_in(2ms, 0), failing_in(1ms, 5));
        } catch (int n) {
            caught.push_back(n);
        }
        try {
            static_cast<void>(co_await weft::with_timeout(failing_in(1ms, 6), 1h));
        } catch (int n) {
            caught.push_back(n);
        }
        try {
            weft::fiber f([] { throw 7; });
            co_await f.async_join();
        } catch (int n) {
            caught.push_back(n);
        }
        EXPECT_EQ(caught, (std::vector{1, 2, 3, 4, 5, 6, 7}));
        ended = true;
    });
}

}  // namespace
