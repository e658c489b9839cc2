#include "weft/future/detail/poll.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/timer.hpp"

namespace {

using namespace future_tests;

TEST(poll, calls_its_function_until_true_and_delivers_the_value) {
    weft::loop l;
    future<int> by_fiber, by_plain;
    l.post([&] {
        by_fiber = make_ready_future(0).poll([](int& n) { return ++n == 1000; });
        by_plain = make_ready_future(0).poll(plain, [](int& n) { return ++n == 1000; });
    });
    l.run();
    EXPECT_EQ(by_fiber.get(), 1000);
    EXPECT_EQ(by_plain.get(), 1000);
}

TEST(poll, calls_its_function_once_per_turn_so_that_others_run) {
    weft::loop l;
    std::string order;
    bool go = false;
    l.post([&] {
        make_ready_future().poll([&] { return order += 'a', go; }).detach();
        make_ready_future().poll(plain, [&] { return order += 'b', order.size() >= 8; }).detach();
        l.post([&] { go = true; });
    });
    l.run();
    EXPECT_EQ(order.substr(0, 4), "abab");
}

TEST(poll, alone_in_a_loop_still_lets_timers_and_posts_run) {
    weft::loop l;
    bool due = false;
    std::atomic<bool> from_outside{false};
    weft::timer t(l, 2ms, [&] { due = true; });
    future<> f = make_ready_future(l).poll([&] { return due && from_outside; });
    std::thread outside([&] { l.post([&] { from_outside = true; }); });
    l.run();
    outside.join();
    EXPECT_TRUE(f.has_value());
}

TEST(poll, fails_after_its_maximum_of_attempts) {
    weft::loop l;
    int asked = 0;
    future<int> f, g;
    l.post([&] {
        f = make_ready_future(1).poll(5, [&] { return ++asked, false; });
        g = make_ready_future(2).poll(plain, 5, [&](int n) { return n == 2; });
    });
    l.run();
    EXPECT_EQ(asked, 5);
    EXPECT_EQ(f.error(), std::errc::resource_unavailable_try_again);
    EXPECT_EQ(g.get(), 2);
}

// And not with the future, which may be stored for long.
TEST(poll, releases_its_function_and_value_once_it_has_an_outcome) {
    weft::loop l;
    const auto held = std::make_shared<int>(1);
    auto yes = make_ready_future(l, 1).poll([held] { return true; });
    auto no = make_ready_future(l, held).poll(plain, 1, [held] { return false; });
    l.run();
    EXPECT_TRUE(yes.has_value());
    EXPECT_EQ(no.error(), std::errc::resource_unavailable_try_again);
    EXPECT_EQ(held.use_count(), 1);
}

TEST(poll, forwards_failures_and_exceptions_of_its_function) {
    weft::loop l;
    int asked = 0;
    auto f =
        weft::make_failed_future<int>(weft::errc::closed, l).poll([&] { return ++asked, true; });
    auto g = make_ready_future(l, 1).poll([](int) -> bool { throw 7; });
    auto h = make_ready_future(l, 1).poll(plain, [](int) -> bool { throw 8; });
    l.run();
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(f.error(), weft::errc::closed);
    EXPECT_THROW(g.get(), int);
    EXPECT_THROW(h.get(), int);
}

TEST(poll, lets_its_function_wait) {
    virtual_loop l(1);
    future<int> f;
    run(l, [&] {
        f = make_ready_future(0).poll([](int& n) {
            weft::this_fiber::sleep_for(1ms);
            return ++n == 5;
        });
    });
    EXPECT_EQ(f.get(), 5);
    EXPECT_EQ(l.now(), weft::time_point{} + 5ms);
}

TEST(poll, sleeps_between_calls_at_an_interval) {
    virtual_loop l(1);
    future<int> f, g;
    run(l, [&] {
        f = make_ready_future(0).poll_every(10ms, [](int& n) { return ++n == 4; });
        g = make_ready_future(0).poll_every(plain, 10ms, [](int& n) { return ++n == 3; });
    });
    EXPECT_EQ(f.get(), 4);
    EXPECT_EQ(g.get(), 3);
    EXPECT_EQ(l.now(), weft::time_point{} + 30ms);
}

TEST(poll, delays_a_value_for_a_duration_or_until_a_time_point) {
    virtual_loop l(1);
    weft::time_point first{}, second{}, third{};
    run(l, [&] {
        make_ready_future(1).delay(5ms).then([&] { first = l.now(); }).detach();
        make_ready_future(1).delay(l.now() + 7ms).then([&] { second = l.now(); }).detach();
        make_ready_future(1).delay(l.now()).then([&] { third = l.now(); }).detach();
    });
    EXPECT_EQ(first, weft::time_point{} + 5ms);
    EXPECT_EQ(second, weft::time_point{} + 7ms);
    EXPECT_EQ(third, weft::time_point{});
}

TEST(poll, delays_a_value_until_a_time_point_of_the_system_clock) {
    virtual_loop l(1);
    weft::time_point ready{};
    run(l, [&] {
        make_ready_future(1)
            .delay(std::chrono::system_clock::now() + 1h)
            .then([&] { ready = l.now(); })
            .detach();
    });
    EXPECT_GT(ready, weft::time_point{} + 59min);
    EXPECT_LE(ready, weft::time_point{} + 1h);
}

TEST(poll, delays_a_value_without_limit_until_a_stop) {
    virtual_loop l(1);
    future<int> f;
    bool asked = false;
    run(l, [&] {
        f = make_ready_future(1).delay(weft::no_timeout);
        make_ready_future(1)
            .delay(24h)
            .then([&] {
                EXPECT_FALSE(f.is_ready());
                asked = f.request_stop();
            })
            .detach();
    });
    EXPECT_TRUE(asked);
    EXPECT_THROW(f.get(), weft::stopped);
}

struct stop_case {
    const char* name;
    future<int> (*make)(future<int>, weft::poll_event&);
};
const stop_case every_poll[] = {
    {"each_turn", [](future<int> f, weft::poll_event&) { return f.poll([] { return false; }); }},
    {"each_turn_plain",
     [](future<int> f, weft::poll_event&) { return f.poll(plain, [] { return false; }); }},
    {"in_a_wait",
     [](future<int> f, weft::poll_event&) {
         return f.poll([] { return weft::this_fiber::sleep_for(1h), false; });
     }},
    {"every",
     [](future<int> f, weft::poll_event&) { return f.poll_every(1h, [] { return false; }); }},
    {"on", [](future<int> f, weft::poll_event& e) { return f.poll_on(e, [] { return false; }); }},
    {"delay", [](future<int> f, weft::poll_event&) { return f.delay(1h); }},
};

TEST(poll, is_stopped_in_every_kind_of_wait) {
    for (const stop_case& c : every_poll) {
        SCOPED_TRACE(c.name);
        virtual_loop l(1);
        weft::poll_event e;
        future<int> f, pending;
        promise<int> p(l.loop());
        run(l, [&] {
            f = c.make(make_ready_future(1), e);
            pending = c.make(p.get_future(), e);
            l.loop().post([&] {
                l.loop().post([&] {
                    EXPECT_TRUE(f.request_stop());
                    EXPECT_TRUE(pending.request_stop());
                });
            });
        });
        EXPECT_EQ(f.error(), std::errc::operation_canceled);
        EXPECT_EQ(pending.error(), std::errc::operation_canceled);
        EXPECT_TRUE(p.stop_requested());
        EXPECT_LT(l.now(), weft::time_point{} + 1h);
    }
}

TEST(poll, is_stopped_from_another_thread_in_every_kind_of_wait) {
    for (const stop_case& c : every_poll) {
        SCOPED_TRACE(c.name);
        weft::testing::loop_thread l;
        weft::poll_event e;
        for (int i = 0; i < 100; ++i) {
            future<int> f = c.make(make_ready_future(l.loop(), 1), e);
            if (i % 2 == 0) std::this_thread::yield();
            f.request_stop();
            EXPECT_EQ(f.get_result().error(), std::errc::operation_canceled);
        }
    }
}

TEST(poll, is_stopped_when_its_loop_ends) {
    for (const stop_case& c : every_poll) {
        SCOPED_TRACE(c.name);
        weft::poll_event e;
        future<int> f;
        if (std::string(c.name) == "on") continue;  // the loop does not know its poller
        {
            weft::loop l;
            l.post([&] {
                f = c.make(make_ready_future(1), e);
                l.post([&] { l.stop(); });
            });
            l.run();
        }
        EXPECT_EQ(f.error(), std::errc::operation_canceled);
    }
}

TEST(poll, leaves_the_future_unchanged_if_its_creation_throws) {
    struct throws_when_copied {
        throws_when_copied() = default;
        throws_when_copied(const throws_when_copied&) { throw 3; }
        bool operator()() const { return true; }
    } const f;
    weft::loop l;
    auto ready = make_ready_future(l, 7);
    const auto used = weft::detail::block_cache::stats().used_bytes;
    EXPECT_THROW(static_cast<void>(ready.poll(f)), int);
    EXPECT_THROW(static_cast<void>(ready.poll(plain, f)), int);
    EXPECT_THROW(static_cast<void>(ready.then(f)), int);
    EXPECT_EQ(weft::detail::block_cache::stats().used_bytes, used);
    EXPECT_EQ(ready.get(), 7);
}

}  // namespace
