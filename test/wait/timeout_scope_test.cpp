#include "weft/wait/timeout_scope.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "test/wait/names.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/stopped.hpp"

namespace weft {
namespace {

using namespace testing::names;

struct ending {
    stop_reason reason = stop_reason::none;
    bool inner_expired = false;
    bool outer_expired = false;
    bool went_on = false;
};

// Waits within two scopes, and after both.
plain_coroutine within(gate& g, duration outer, duration inner, ending& e) {
    {
        const timeout_scope a(outer);
        const timeout_scope b(inner);
        try {
            co_await g.async_pass();
        } catch (const stopped& s) {
            e.reason = s.reason;
            e.inner_expired = b.has_expired();
            e.outer_expired = a.has_expired();
        }
    }
    co_await g.async_pass();
    e.went_on = true;
}

TEST(timeout_scope, ends_a_wait_at_the_earlier_of_two_deadlines) {
    const struct {
        duration outer, inner;
        bool inner_expired, outer_expired;
    } table[] = {{2ms, 1ms, true, false},
                 {1ms, 2ms, false, true},
                 {1ms, 1ms, true, true},
                 {1ms, duration::max(), false, true},
                 {duration::max(), 1ms, true, false}};
    for (const auto& row : table) {
        manual_executor on;
        coroutine_flow f(on);
        gate g;
        ending e;
        plain_coroutine c = within(g, row.outer, row.inner, e);
        c.start(on, &f);
        on.advance(1ms - 1ns);
        EXPECT_EQ(e.reason, stop_reason::none);
        on.advance(1ns);
        EXPECT_EQ(e.reason, stop_reason::deadline);
        EXPECT_EQ(e.inner_expired, row.inner_expired);
        EXPECT_EQ(e.outer_expired, row.outer_expired);
        EXPECT_FALSE(c.done());
        on.advance(1h);
        EXPECT_FALSE(c.done()) << "outside of the scopes nothing ends the wait";
        g.let_one_pass();
        on.run_all();
        EXPECT_TRUE(e.went_on);
        EXPECT_EQ(f.deadline, never);
        EXPECT_EQ(f.pending_flags, 0);
    }
}

TEST(timeout_scope, ends_a_wait_that_begins_after_its_deadline_at_once) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    ending e;
    plain_coroutine c = within(g, -1h, 1h, e);
    c.start(on, &f);
    EXPECT_EQ(e.reason, stop_reason::deadline);
    EXPECT_TRUE(e.outer_expired);
    EXPECT_FALSE(e.inner_expired);
    g.open();
    on.run_all();
}

TEST(timeout_scope, is_distinguished_from_the_deadline_of_the_wait) {
    const struct {
        duration wait, scope;
        wait_status end;
    } table[] = {{1ms, 2ms, wait_status::timed_out},
                 {2ms, 1ms, wait_status::stopped},
                 {1ms, 1ms, wait_status::timed_out}};
    for (const auto& row : table) {
        manual_executor on;
        coroutine_flow f(on);
        gate g;
        std::optional<wait_status> end;
        const auto body = [](gate& gate, duration wait, duration scope,
                             std::optional<wait_status>& how) -> plain_coroutine {
            const timeout_scope limit(scope);
            how = co_await gate.async_pass_until(now() + wait);
        };
        plain_coroutine c = body(g, row.wait, row.scope, end);
        c.start(on, &f);
        on.advance(1ms);
        EXPECT_EQ(end, row.end);
    }
}

TEST(timeout_scope, takes_a_time_of_the_system_clock) {
    const timeout_scope none(never);
    const timeout_scope limit(std::chrono::system_clock::now() + 1h);
    EXPECT_LE(limit.deadline(), now() + 1h);
    EXPECT_GT(limit.deadline(), now() + 59min);
    EXPECT_EQ(none.deadline(), never);
}

TEST(timeout_scope, is_not_expired_when_a_stop_ended_the_wait) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    std::optional<bool> expired;
    const auto body = [](gate& gate, std::optional<bool>& e) -> plain_coroutine {
        const timeout_scope limit(1ms);
        try {
            co_await gate.async_pass();
        } catch (const stopped& s) {
            EXPECT_EQ(s.reason, stop_reason::user);
            e = limit.has_expired();
        }
    };
    plain_coroutine c = body(g, expired);
    c.start(on, &f);
    on.set(on.now() + 1ms);
    on.call([&] { f.request_stop(stop_reason::user); });
    on.run_all();
    EXPECT_EQ(expired, false);
}

TEST(timeout_scope, on_a_plain_thread_ends_its_waits) {
    gate g;
    {
        const timeout_scope limit(1ms);
        EXPECT_EQ(sync_wait(g.async_pass_until(never)), wait_status::stopped);
        EXPECT_TRUE(limit.has_expired());
        EXPECT_THROW(sync_wait(g.async_pass()), stopped);
    }
    EXPECT_EQ(sync_wait(g.async_pass_until(steady_now() + 1ms)), wait_status::timed_out);
}

TEST(timeout_scope_death, outside_any_flow) {
    manual_executor on;
    EXPECT_DEATH(on.call([] { const timeout_scope limit(1ms); }),
                 "weft: a timeout_scope outside any flow");
}

}  // namespace
}  // namespace weft
