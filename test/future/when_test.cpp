#include "weft/future/when.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/allocation_fails.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/task/when_all.hpp"  // the same names, for tasks
#include "weft/task/when_any.hpp"

namespace {

using namespace future_tests;

struct several {
    weft::loop l;
    std::vector<promise<int>> promises;
    std::vector<future<int>> futures;

    explicit several(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            promises.emplace_back(l);
            futures.push_back(promises.back().get_future());
        }
    }
    // Whether source i has lost, and was asked to stop.
    bool is_stopped(std::size_t i) const { return promises[i].stop_requested(); }
};

TEST(when_all, returns_all_values_in_argument_order) {
    weft::loop l;
    promise<int> a(l);
    promise<moving> b(l);
    promise<> c(l);
    int n = 0;
    promise<int&> d(l);
    auto f = weft::when_all(a.get_future(), b.get_future(), c.get_future(), d.get_future());
    d.set_value(n), c.set_value(), b.set_value(2);
    l.run();
    EXPECT_FALSE(f.is_ready());
    a.set_value(1);
    l.run();
    auto [x, y, z, r] = f.get();
    EXPECT_EQ(x + *y.n, 3);
    EXPECT_EQ(&r.get(), &n);

    several s(3);
    auto g = weft::when_all(std::move(s.futures));
    for (int i : {2, 0, 1}) s.promises[static_cast<std::size_t>(i)].set_value(i);
    s.l.run();
    EXPECT_EQ(g.get(), (std::vector<int>{0, 1, 2}));
    auto none = weft::when_all(std::vector<future<int>>());
    EXPECT_TRUE(none.get().empty());
}

TEST(when_all, ends_with_the_first_failure_and_stops_the_others) {
    several s(3);
    auto f = weft::when_all(s.futures);
    s.promises[1].set_exception(std::make_exception_ptr(std::runtime_error("one")));
    s.l.run();
    EXPECT_TRUE(s.is_stopped(0) && s.is_stopped(2));
    EXPECT_THROW(f.get(), std::runtime_error);
}

TEST(when_any, returns_the_first_value_and_stops_the_others) {
    several s(3);
    auto f = weft::when_any(s.futures);
    s.promises[1].set_value(7);
    s.l.run();
    EXPECT_TRUE(s.is_stopped(0) && s.is_stopped(2));
    const auto won = f.get();
    EXPECT_EQ(won.index, 1u);
    EXPECT_EQ(won.value, 7);

    promise<int> a(s.l);
    promise<std::string> b(s.l);
    auto g = weft::when_any(a.get_future(), b.get_future());
    b.set_value("x");
    s.l.run();
    const auto mixed = g.get();
    EXPECT_EQ(mixed.index, 1u);
    EXPECT_EQ(std::get<1>(mixed.value), "x");
    EXPECT_TRUE(a.stop_requested());

    auto of_none = weft::when_any(std::vector<future<int>>());
    EXPECT_EQ(of_none.get_result().error(), weft::errc::too_few_results);
}

TEST(when_any, waits_for_the_losers_to_end) {
    virtual_loop l(1);
    int live_count = 0;
    run(l, [&] {
        auto holds = [&](weft::duration d) {
            return make_ready_future().then([&live_count, d] {
                ++live_count;
                struct at_end {
                    int& n;
                    ~at_end() { --n; }
                } const lets_go{live_count};
                weft::this_fiber::sleep_for(d);
            });
        };
        weft::when_any(holds(1h), holds(1ms), holds(2h))
            .then([&](auto won) {
                EXPECT_EQ(won.index, 1u);
                EXPECT_EQ(live_count, 0);
            })
            .detach();
    });
    EXPECT_EQ(l.now(), weft::time_point{} + 1ms);
}

// A loser's stop reason, as the loser's own code sees it.
TEST(future_group, gives_its_losers_the_reason_of_their_stop) {
    virtual_loop l(1);
    stop_reason of_all = stop_reason::none, of_any = stop_reason::none, of_none = stop_reason::none;
    const auto waits = [](stop_reason& why) {
        return make_ready_future().then([&why] {
            try {
                weft::this_fiber::sleep_for(1h);
            } catch (const weft::stopped& s) {
                why = s.reason;
            }
        });
    };
    const auto ends = [](weft::duration d, std::error_code e) {
        return make_ready_future().delay(d).then([e] {
            if (e) throw std::system_error(e);
        });
    };
    run(l, [&] {
        weft::when_all(waits(of_all), ends(1ms, weft::errc::closed)).detach();
        weft::when_any(waits(of_any), ends(1ms, {})).detach();
        std::vector<future<>> none;
        none.push_back(waits(of_none));
        none.push_back(make_ready_future().delay(1ms));
        weft::when_n_if(2, none, [] { return false; }).detach();
    });
    EXPECT_EQ(of_all, stop_reason::sibling_failed);
    EXPECT_EQ(of_any, stop_reason::user);
    EXPECT_EQ(of_none, stop_reason::user);
}

TEST(future_group, is_stopped_with_its_loop_and_releases_its_members) {
    auto l = std::make_unique<weft::loop>();
    promise<int> late(*l), open(*l);
    bool notified = false;
    auto f = weft::when_all(late.get_future().with_timeout(1h), open.get_future())
                 .then(plain, [&](const auto&) { notified = true; });
    l->run_until_idle();  // the timer is armed, and ends with the loop
    l.reset();
    EXPECT_TRUE(f.is_ready());
    EXPECT_EQ(f.error(), std::errc::operation_canceled);
    EXPECT_TRUE(open.set_value(2)) << "it was let go of";
    EXPECT_FALSE(notified);
}

TEST(when_n, returns_the_first_n_in_order_of_completion) {
    several s(4);
    auto f = weft::when_n(2, s.futures);
    s.promises[3].set_value(3);
    s.promises[0].set_value(0);
    s.l.run();
    const auto r = f.get();
    ASSERT_EQ(r.size(), 2u);
    EXPECT_EQ(r[0].index, 3u);
    EXPECT_EQ(r[1].index, 0u);
    EXPECT_TRUE(s.is_stopped(1) && s.is_stopped(2));

    several t(2);
    auto all = weft::when_n(5, t.futures);
    t.promises[1].set_value(1), t.promises[0].set_value(0);
    t.l.run();
    EXPECT_EQ(all.get().size(), 2u);

    several u(2);
    auto none = weft::when_n(0, u.futures);
    u.l.run();
    EXPECT_TRUE(none.get().empty());
    EXPECT_TRUE(u.is_stopped(0) && u.is_stopped(1));

    several v(2);
    auto failed = weft::when_n(1, std::move(v.futures[0]), std::move(v.futures[1]));
    v.promises[1].set_error(weft::errc::closed);
    v.l.run();
    EXPECT_EQ(failed.get_result().error(), weft::errc::closed);
}

TEST(when_n_if, counts_values_for_which_its_function_is_true) {
    const auto odd = [](int n) { return n % 2 == 1; };
    several s(5);
    auto f = weft::when_n_if(2, s.futures, odd);
    for (std::size_t i : {0u, 1u, 2u, 4u}) s.promises[i].set_value(static_cast<int>(i));
    s.promises[3].set_value(3);
    s.l.run();
    const auto r = f.get();
    ASSERT_EQ(r.size(), 2u);
    EXPECT_EQ(r[0].value, 1);
    EXPECT_EQ(r[1].value, 3);

    several t(3);  // as soon as there can be no two any more
    auto too_few = weft::when_n_if(2, t.futures, odd);
    t.promises[0].set_value(0), t.promises[1].set_value(2);
    t.l.run();
    EXPECT_TRUE(t.is_stopped(2));
    EXPECT_EQ(too_few.get_result().error(), weft::errc::too_few_results);

    several u(2);
    auto any = weft::when_any_if(u.futures, odd);
    u.promises[0].set_error(weft::errc::closed), u.promises[1].set_value(5);
    u.l.run();
    EXPECT_EQ(any.get().index, 1u);

    several v(2);
    auto failed = weft::when_any_if(v.futures, odd);
    v.promises[0].set_error(weft::errc::closed), v.promises[1].set_value(2);
    v.l.run();
    EXPECT_EQ(failed.get_result().error(), weft::errc::closed);
}

TEST(when_n_if, fails_at_once_when_n_exceeds_the_member_count) {
    for (const std::size_t n : {std::size_t{3}, std::numeric_limits<std::size_t>::max()}) {
        several s(2);
        auto f = weft::when_n_if(n, s.futures, [](int) { return true; });
        s.l.run();
        EXPECT_TRUE(s.is_stopped(0) && s.is_stopped(1));
        EXPECT_EQ(f.get_result().error(), weft::errc::too_few_results);
    }
}

#if !WEFT_ASAN && !WEFT_TSAN
// As wide as this, its block comes from operator new.
struct alignas(128) wide_result : tracked {
    using tracked::tracked;
};
TEST(when_all, leaves_the_futures_unchanged_when_out_of_memory) {
    {
        weft::loop l;
        std::vector<future<wide_result>> range;
        for (int i = 0; i < 3; ++i) range.push_back(make_ready_future(l, wide_result(i)));
        // Fails at each allocation in turn. How many there are.
        const auto allocations_of = [&](auto make) {
            for (long n = 1;; ++n) try {
                    const weft::testing::allocation_fails no_memory(n);
                    static_cast<void>(make());
                    return n - 1;
                } catch (const std::bad_alloc&) {
                    for (const auto& f : range) EXPECT_TRUE(f.has_value());
                }
        };
        EXPECT_GT(allocations_of([&] {
                      return weft::when_n_if(2, range, [](const wide_result&) { return true; });
                  }),
                  2);
        l.run_until_idle();
        range.clear();
        for (int i = 0; i < 2; ++i) range.push_back(make_ready_future(l, wide_result(i)));
        EXPECT_GT(allocations_of(
                      [&] { return weft::when_all(std::move(range[0]), std::move(range[1])); }),
                  1);
        l.run_until_idle();
    }
    EXPECT_EQ(tracked::living, 0);
}
#endif

TEST(when_all, passes_a_stop_to_all_its_members) {
    several s(3);
    auto f = weft::when_all(s.futures);
    auto g = f.then([](const auto&) {});
    EXPECT_TRUE(g.request_stop(stop_reason::shutdown));
    s.l.run();
    for (std::size_t i : {0u, 1u, 2u}) EXPECT_TRUE(s.is_stopped(i));
    EXPECT_THROW(g.get(), weft::stopped);
}

TEST(when_all, completes_with_members_of_other_threads) {
    weft::testing::loop_thread a, b;
    for (int i = 0; i < 100; ++i) {
        std::vector<future<int>> fs;
        for (int k = 0; k < 10; ++k)
            fs.push_back(make_ready_future(k % 2 == 0 ? a.loop() : b.loop(), k).then([](int n) {
                weft::this_fiber::yield();
                return n;
            }));
        const auto all = weft::when_all(std::move(fs)).get();
        EXPECT_EQ(all.size(), 10u);
    }
}

TEST(when_all_death, refuses_a_future_that_is_passed_twice) {
    weft::loop l;
    auto f = make_ready_future(l, 7);
    EXPECT_DEATH(static_cast<void>(weft::when_all(std::move(f), std::move(f))),
                 "weft: a group has a future that is empty, or named twice\n");
}

TEST(when_n_death, names_the_calling_line_for_futures) {
    EXPECT_DEATH(static_cast<void>(weft::when_n(1, future<int>(), future<int>())),
                 "a group has a future that is empty, or named twice .*when_test.cpp");
}

TEST(when_all_death, names_the_calling_line_for_a_range) {
    weft::loop l;
    std::vector<future<int>> fs(2);
    const char* const rule = "a group has a future that is empty, or named twice .*when_test.cpp";
    EXPECT_DEATH(static_cast<void>(weft::when_all(fs)), rule);
    EXPECT_DEATH(static_cast<void>(weft::when_any(fs)), rule);
    EXPECT_DEATH(static_cast<void>(weft::when_n(1, fs)), rule);
    const auto is_there = [](int) { return true; };
    EXPECT_DEATH(static_cast<void>(weft::when_n_if(1, fs, is_there)), rule);
    EXPECT_DEATH(static_cast<void>(weft::when_any_if(fs, is_there)), rule);
}

}  // namespace
