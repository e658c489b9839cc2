#include "weft/future/poll_event.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/loop_thread.hpp"

namespace {

using namespace future_tests;

TEST(poll_event, polls_its_waiter_once_for_each_set) {
    weft::loop l;
    weft::poll_event e;
    int asked = 0;
    future<int> f;
    l.post([&] { f = make_ready_future(3).poll_on(e, [&](int n) { return ++asked == n; }); });
    l.run();
    EXPECT_EQ(asked, 1);
    e.set();
    l.run();
    EXPECT_EQ(asked, 2);
    EXPECT_FALSE(f.is_ready());
    e.set();
    l.run();
    EXPECT_EQ(f.get(), 3);
}

TEST(poll_event, set_during_a_poll_causes_one_more_poll) {
    weft::loop l;
    weft::poll_event e;
    int asked = 0;
    future<> f;
    l.post([&] {
        f = make_ready_future().poll_on(plain, e, [&] {
            if (++asked == 1) e.set();
            return asked == 2;
        });
    });
    l.run();
    EXPECT_TRUE(f.has_value());
}

TEST(poll_event, loses_no_set_from_another_thread) {
    weft::testing::loop_thread l;
    weft::poll_event e;
    for (int i = 0; i < 300; ++i) {
        std::atomic<int> stock{0};
        auto f = make_ready_future(l.loop()).poll_on(e, [&] { return stock == 3; });
        for (int k = 0; k < 3; ++k) ++stock, e.set();
        f.get();
    }
}

TEST(poll_event, destructor_ends_its_waiters_with_closed) {
    weft::loop l;
    auto e = std::make_unique<weft::poll_event>();
    future<> f;
    l.post([&] { f = make_ready_future().poll_on(*e, [] { return false; }); });
    l.run();
    e.reset();
    l.run();
    EXPECT_EQ(f.error(), weft::errc::closed);
}

TEST(poll_event, destroyed_before_the_value_ends_a_later_wait) {
    weft::loop l;
    auto e = std::make_unique<weft::poll_event>();
    promise<int> p(l), failing(l);
    bool asked = false;
    auto f = p.get_future().poll_on(plain, *e, [&](int) { return asked = true; });
    auto g = failing.get_future().poll_on(*e, [&](int) { return asked = true; });
    l.run_until_idle();
    e.reset();
    l.run_until_idle();
    EXPECT_FALSE(f.is_ready());
    p.set_value(1);
    failing.set_error(std::make_error_code(std::errc::io_error));
    l.run_until_idle();
    EXPECT_EQ(f.error(), weft::errc::closed);
    EXPECT_EQ(g.error(), std::errc::io_error);
    EXPECT_FALSE(asked);
}

TEST(poll_event, destroyed_during_a_poll_ends_it_unless_it_returns_true) {
    weft::loop l;
    future<> f[2];
    for (const bool answer : {false, true}) {
        auto e = std::make_unique<weft::poll_event>();
        l.post([&] {
            f[answer] = make_ready_future().poll_on(plain, *e, [&] {
                e.reset();
                return answer;
            });
        });
        l.run_until_idle();
    }
    EXPECT_EQ(f[false].error(), weft::errc::closed);
    EXPECT_TRUE(f[true].has_value());
}

}  // namespace
