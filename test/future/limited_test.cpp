#include "weft/future/detail/limited.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/stop/stop_source.hpp"

namespace {

using namespace future_tests;

TEST(limited, keeps_an_outcome_that_comes_before_the_deadline) {
    virtual_loop l(1);
    promise<int> p(l.loop()), q(l.loop());
    auto f = p.get_future().with_timeout(1h);
    auto g = q.get_future().with_timeout(l.now() + 1h);
    run(l, [&] { p.set_value(1), q.set_error(weft::errc::closed); });
    EXPECT_EQ(f.get(), 1);
    EXPECT_EQ(g.error(), weft::errc::closed);
    EXPECT_EQ(l.now(), weft::time_point{});
}

TEST(limited, times_out_and_stops_its_source) {
    virtual_loop l(1);
    promise<int> p(l.loop());
    future<int> f = p.get_future().then([](int n) { return n; }).with_timeout(10ms);
    l.run();
    EXPECT_EQ(f.error(), std::errc::timed_out);
    EXPECT_TRUE(p.stop_requested());
    EXPECT_EQ(l.now(), weft::time_point{} + 10ms);
    auto late = make_ready_future(l.loop(), 1).with_timeout(l.now() - 1ms);
    auto never_comes = promise<int>(l.loop());
    auto at_once = never_comes.get_future().with_timeout(l.now() - 1ms);
    l.run();
    EXPECT_EQ(at_once.error(), std::errc::timed_out);
    EXPECT_TRUE(late.is_ready());
}

TEST(limited, is_stopped_when_its_loop_ends) {
    std::optional<promise<int>> p;
    future<int> f;
    {
        weft::loop l;
        p.emplace(l);
        f = p->get_future().with_timeout(1h);
        l.run_until_idle();
        l.post([&] { l.stop(); });
        l.run();
        EXPECT_FALSE(f.is_ready());
    }
    EXPECT_EQ(f.error(), std::errc::operation_canceled);
}

TEST(limited, destroys_an_untaken_value_with_its_future) {
    tracked::living = 0;
    {
        weft::loop l;
        promise<tracked> p(l);
        auto f = p.get_future().with_timeout(1h);
        p.set_value(1);
        l.run();
        EXPECT_TRUE(f.has_value());
    }
    EXPECT_EQ(tracked::living, 0);
}

// A value that comes nevertheless is not lost, and what runs has ended.
TEST(limited, waits_for_its_source_and_keeps_a_late_value) {
    virtual_loop l(1);
    bool over = false;
    future<int> f, g;
    run(l, [&] {
        f = make_ready_future()
                .then([&] {
                    try {
                        weft::this_fiber::sleep_for(1h);
                    } catch (const weft::stopped& s) {
                        EXPECT_EQ(s.reason, stop_reason::deadline);
                    }
                    over = true;
                    return 5;
                })
                .with_timeout(1ms);
        g = f.then([&](int n) {
            EXPECT_TRUE(over);
            return n;
        });
    });
    EXPECT_EQ(g.get(), 5);
}

TEST(limited, is_stopped_by_a_token_or_by_request_stop) {
    virtual_loop l(1);
    weft::stop_source source, unused;
    promise<int> p(l.loop()), q(l.loop()), r(l.loop());
    auto f = p.get_future().with_stop(source.get_token());
    auto g = q.get_future().with_stop(unused.get_token()).with_timeout(1h);
    source.request_stop(stop_reason::shutdown);
    auto h = r.get_future().with_stop(source.get_token());
    run(l, [&] { g.request_stop(); });
    for (auto* x : {&f, &g, &h}) EXPECT_EQ(x->error(), std::errc::operation_canceled);
    EXPECT_TRUE(p.stop_requested() && q.stop_requested() && r.stop_requested());
}

TEST(limited, has_one_outcome_in_a_race_of_value_stop_and_timeout) {
    weft::testing::loop_thread l;
    for (int i = 0; i < 200; ++i) {
        weft::stop_source source;
        promise<int> p(l.loop());
        auto f = p.get_future().with_stop(source.get_token()).with_timeout(1us);
        std::thread a([&] { p.set_value(1); });
        std::thread b([&] { source.request_stop(); });
        const auto r = f.get_result();
        EXPECT_TRUE(r.has_value() || r.error() == std::errc::timed_out ||
                    r.error() == std::errc::operation_canceled);
        a.join(), b.join();
    }
}

}  // namespace
