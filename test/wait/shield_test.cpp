#include "weft/wait/shield.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "test/wait/names.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/stopped.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace weft {
namespace {

using namespace testing::names;

struct said {
    bool passed = false;
    stop_reason after = stop_reason::none;
};

// Waits for a under a shield, and then for b without one.
plain_coroutine goodbye(gate& a, gate& b, said& s, int shields) {
    {
        const shield outer;
        if (shields == 2) {
            const shield inner;
        }
        co_await a.async_pass();
        s.passed = true;
    }
    try {
        co_await b.async_pass();
    } catch (const stopped& e) {
        s.after = e.reason;
    }
}

TEST(shield, defers_a_stop_to_the_next_unshielded_wait) {
    for (int shields : {1, 2}) {
        manual_executor on;
        coroutine_flow f(on);
        gate a;
        gate b;
        said s;
        plain_coroutine c = goodbye(a, b, s, shields);
        c.start(on, &f);
        f.request_stop(stop_reason::user);
        on.run_all();
        EXPECT_FALSE(s.passed);
        EXPECT_TRUE(a.let_one_pass());
        on.run_all();
        EXPECT_TRUE(s.passed);
        EXPECT_EQ(s.after, stop_reason::user);
        EXPECT_TRUE(c.done());
    }
}

TEST(shield_death, overflow_of_the_count_names_the_last_raising_line) {
    manual_executor on;
    coroutine_flow f(on);
    for (unsigned n = 0; n != 0xffff; ++n) f.raise_shield();
    const auto one_more = [&] { on.call([] { const shield s; }, &f); };
    EXPECT_DEATH(one_more(), "more shields than can be counted: .*shield_test[.]cpp:");
    for (unsigned n = 0; n != 0xffff; ++n) f.lower_shield();
}

TEST(shield, defers_a_stop_requested_before_it) {
    manual_executor on;
    coroutine_flow f(on);
    gate a;
    gate b;
    said s;
    on.call([&] { f.request_stop(stop_reason::user); });
    plain_coroutine c = goodbye(a, b, s, 1);
    c.start(on, &f);
    EXPECT_TRUE(a.let_one_pass());
    on.run_all();
    EXPECT_TRUE(s.passed);
    EXPECT_EQ(s.after, stop_reason::user);
}

TEST(shield, defers_the_deadline_of_a_scope) {
    manual_executor on;
    coroutine_flow f(on);
    gate a;
    gate b;
    said s;
    f.set_deadline(on.now() + 1ms);
    plain_coroutine c = goodbye(a, b, s, 1);
    c.start(on, &f);
    on.advance(1h);
    EXPECT_FALSE(s.passed);
    EXPECT_TRUE(a.let_one_pass());
    on.run_all();
    EXPECT_TRUE(s.passed);
    EXPECT_EQ(s.after, stop_reason::deadline);
}

TEST(shield, does_not_defer_the_waits_own_deadline) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    std::vector<wait_status> ends;
    const auto body = [](gate& gate, std::vector<wait_status>& e, time_point t) -> plain_coroutine {
        const shield s;
        e.push_back(co_await gate.async_pass_until(t));
    };
    plain_coroutine c = body(g, ends, on.now() + 1ms);
    c.start(on, &f);
    on.advance(1ms);
    EXPECT_EQ(ends, std::vector{wait_status::timed_out});
}

TEST(shield, on_a_plain_thread_holds_for_its_waits) {
    gate g;
    std::thread opens;
    {
        const timeout_scope over(0ms);
        {
            const shield s;
            opens = std::thread([&] {
                while (!g.let_one_pass()) std::this_thread::yield();
            });
            sync_wait(g.async_pass());
        }
        EXPECT_THROW(sync_wait(g.async_pass()), stopped);
    }
    opens.join();
}

TEST(shield, outside_any_flow_does_nothing) {
    manual_executor on;
    on.call([] { const shield s; });
    const timeout_scope over(0ms);
    EXPECT_EQ(detail::this_thread_host().own_flow().shields, 0);
}

TEST(shield_death, lowering_one_that_was_not_raised) {
    flow& own = detail::this_thread_host().own_flow();
    if (WEFT_DEBUG == 0) GTEST_SKIP() << "it is an assertion";
    EXPECT_DEATH(own.lower_shield(), "weft: a shield is lowered that was not raised");
}

}  // namespace
}  // namespace weft
