#include "weft/wait/flow.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "test/wait/names.hpp"
#include "weft/wait/stopped.hpp"

namespace weft {
namespace {

using namespace testing::names;

// Passes a gate; records the reason when a stop prevents that, and tries `more` times again.
plain_coroutine pass(gate& g, std::vector<stop_reason>& stops, int more = 0) {
    for (;;) {
        try {
            co_await g.async_pass();
            co_return;
        } catch (const stopped& s) {
            stops.push_back(s.reason);
            if (more-- == 0) co_return;
        }
    }
}

TEST(flow, is_current_only_during_its_turn) {
    EXPECT_EQ(current_flow(), nullptr);
    EXPECT_EQ(current_executor(), nullptr);
    manual_executor on;
    coroutine_flow f(on);
    coroutine_flow inner(on);
    on.call(
        [&] {
            EXPECT_EQ(current_flow(), &f);
            EXPECT_EQ(current_executor(), &on);
            EXPECT_EQ(now(), on.now());
            on.call([&] { EXPECT_EQ(current_flow(), &inner); }, &inner);
            EXPECT_EQ(current_flow(), &f);
        },
        &f);
    EXPECT_EQ(current_flow(), nullptr);
    EXPECT_EQ(current_executor(), nullptr);
}

TEST(flow, a_stop_before_it_waits_ends_its_first_wait) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    std::vector<stop_reason> stops;
    EXPECT_TRUE(f.request_stop(stop_reason::user));
    on.run_all();  // the message: the request came from outside it
    plain_coroutine c = pass(g, stops);
    c.start(on, &f);
    EXPECT_TRUE(c.done()) << "it never suspended";
    EXPECT_EQ(stops, std::vector{stop_reason::user});
    EXPECT_FALSE(g.anybody_waits());
}

TEST(flow, a_stop_ends_the_wait_it_is_in) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    std::vector<stop_reason> stops;
    plain_coroutine c = pass(g, stops);
    c.start(on, &f);
    EXPECT_TRUE(g.anybody_waits());
    f.request_stop(stop_reason::shutdown);
    EXPECT_TRUE(g.anybody_waits()) << "until the flow's own thread knows";
    on.run_all();
    EXPECT_TRUE(c.done());
    EXPECT_EQ(stops, std::vector{stop_reason::shutdown});
    EXPECT_FALSE(g.anybody_waits());
    EXPECT_EQ(f.waiting, nullptr);  // F1
}

TEST(flow, a_stop_after_the_event_does_not_override_it) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    std::vector<stop_reason> stops;
    plain_coroutine c = pass(g, stops);
    c.start(on, &f);
    EXPECT_TRUE(g.let_one_pass());
    on.call([&] { f.request_stop(stop_reason::user); });
    on.run_all();
    EXPECT_TRUE(c.done());
    EXPECT_TRUE(stops.empty());
}

// A stop is a state and not an event. F2
TEST(flow, a_stop_ends_every_later_wait_too) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    std::vector<stop_reason> stops;
    plain_coroutine c = pass(g, stops, 3);
    c.start(on, &f);
    f.request_stop(stop_reason::sibling_failed);
    on.run_all();
    EXPECT_TRUE(c.done());
    EXPECT_EQ(stops, std::vector<stop_reason>(4, stop_reason::sibling_failed));
}

TEST(flow, the_first_request_wins) {
    manual_executor on;
    coroutine_flow f(on);
    EXPECT_TRUE(f.request_stop(stop_reason::user));
    EXPECT_FALSE(f.request_stop(stop_reason::shutdown));
    on.run_all();
    EXPECT_EQ(f.pending_stop(), stop_reason::user);
}

TEST(flow, is_referenced_while_a_message_to_it_is_pending) {
    manual_executor on;
    coroutine_flow f(on);
    const int before = coroutine_flow::kept;
    f.request_stop(stop_reason::user);
    EXPECT_EQ(coroutine_flow::kept, before + 1);
    on.run_all();
    EXPECT_EQ(coroutine_flow::kept, before);
}

TEST(flow, without_an_executor_only_records_the_stop) {
    manual_executor on;
    coroutine_flow f(on);
    f.home = nullptr;
    EXPECT_TRUE(f.request_stop(stop_reason::user));
    f.home = &on;
    EXPECT_EQ(f.pending_stop(), stop_reason::none);  // F3: the flow's starter delivers the stop
    f.deliver_stop();
    EXPECT_EQ(f.pending_stop(), stop_reason::user);
}

TEST(flow, an_expired_deadline_is_a_pending_stop) {
    manual_executor on;
    coroutine_flow f(on);
    f.set_deadline(on.now() + 1ms);
    EXPECT_EQ(f.pending_stop(), stop_reason::none);
    on.advance(1ms);
    EXPECT_EQ(f.pending_stop(), stop_reason::deadline);
    f.set_deadline(never);
    EXPECT_EQ(f.pending_stop(), stop_reason::none);
    EXPECT_EQ(f.pending_flags, 0);
}

// A coroutine that is started in a flow and not awaited waits beside the flow's other waits, and
// they end in any order.
TEST(flow, may_wait_for_several_events_in_any_order) {
    for (int order = 0; order < 6; ++order) {
        manual_executor on;
        coroutine_flow f(on);
        gate g[3];
        std::vector<stop_reason> stops;
        plain_coroutine c[3];
        for (int i = 0; i < 3; ++i) {
            c[i] = pass(g[i], stops);
            c[i].start(on, &f);
        }
        int at[3] = {order / 2, (order / 2 + 1 + order % 2) % 3, (order / 2 + 2 - order % 2) % 3};
        g[at[0]].let_one_pass();
        on.run_all();
        g[at[1]].let_one_pass();
        on.run_all();
        EXPECT_TRUE(c[at[0]].done() && c[at[1]].done());
        EXPECT_FALSE(c[at[2]].done());
        EXPECT_NE(f.waiting, nullptr);
        f.request_stop(stop_reason::user);
        on.run_all();
        EXPECT_TRUE(c[at[2]].done());
        EXPECT_EQ(stops.size(), 1u);
        EXPECT_EQ(f.waiting, nullptr);  // F1
    }
}

TEST(flow, a_stop_ends_all_of_several_waits) {
    manual_executor on;
    coroutine_flow f(on);
    gate g;
    std::vector<stop_reason> stops;
    plain_coroutine a = pass(g, stops);
    plain_coroutine b = pass(g, stops);
    a.start(on, &f);
    b.start(on, &f);
    f.request_stop(stop_reason::user);
    on.run_all();
    EXPECT_TRUE(a.done());
    EXPECT_TRUE(b.done());
    EXPECT_EQ(stops.size(), 2u);
    EXPECT_FALSE(g.anybody_waits());
}

// Two coroutines of one flow; while one of them is shielded, the stop reaches neither.
TEST(flow, lowering_its_shield_lets_a_stop_end_concurrent_waits) {
    manual_executor on;
    coroutine_flow f(on);
    gate a, b;
    std::vector<stop_reason> stops;
    plain_coroutine beside = pass(b, stops);
    beside.start(on, &f);
    const auto body = [](flow& of, gate& g) -> plain_coroutine {
        of.raise_shield();
        co_await g.async_pass();
        of.lower_shield();
    };
    plain_coroutine shielded = body(f, a);
    shielded.start(on, &f);
    on.call([&] { f.request_stop(stop_reason::user); });
    on.run_all();
    EXPECT_TRUE(a.anybody_waits() && b.anybody_waits());
    EXPECT_TRUE(a.let_one_pass());
    on.run_all();
    EXPECT_TRUE(shielded.done());
    EXPECT_TRUE(beside.done());
    EXPECT_EQ(stops, std::vector{stop_reason::user});
    b.open();
    on.run_all();
}

// A wait beside a shielded one, and what its end was.
struct beside_a_shield {
    manual_executor on;
    coroutine_flow f{on};
    gate a, b;
    std::vector<wait_status> ends;

    plain_coroutine wait(time_point until) {
        const wait_status how = co_await b.async_pass_until(until);
        ends.push_back(how);
    }
    plain_coroutine shielded() {
        f.raise_shield();
        co_await a.async_pass();
        f.lower_shield();
    }
    void lower() {
        EXPECT_TRUE(a.let_one_pass());
        on.run_all();
    }
};

TEST(flow, lowering_its_shield_lets_a_deadline_that_came_meanwhile_end_concurrent_waits) {
    beside_a_shield t;
    t.f.set_deadline(t.on.now() + 2ms);
    plain_coroutine beside = t.wait(never);
    beside.start(t.on, &t.f);
    plain_coroutine shielded = t.shielded();
    shielded.start(t.on, &t.f);
    t.on.advance(5ms);
    EXPECT_TRUE(t.ends.empty());
    t.lower();
    EXPECT_EQ(t.ends, std::vector{wait_status::stopped});
    EXPECT_EQ(t.on.timer_count(), 0u);
    EXPECT_EQ(t.f.pending_flags, detail::flow_hot::has_deadline);
}

TEST(flow, under_a_shield_ends_waits_by_their_own_deadlines) {
    beside_a_shield t;
    t.f.set_deadline(t.on.now() + 2ms);
    plain_coroutine beside = t.wait(t.on.now() + 4ms);
    beside.start(t.on, &t.f);
    plain_coroutine shielded = t.shielded();
    shielded.start(t.on, &t.f);
    t.on.advance(3ms);
    EXPECT_TRUE(t.ends.empty());
    t.on.advance(2ms);
    EXPECT_EQ(t.ends, std::vector{wait_status::timed_out});
    t.lower();
    EXPECT_EQ(t.on.timer_count(), 0u);
}

TEST(flow, lowering_its_shield_bounds_the_waits_that_have_begun_under_it) {
    for (const bool has_own_deadline : {false, true}) {
        beside_a_shield t;
        t.f.set_deadline(t.on.now() + 3ms);
        plain_coroutine shielded = t.shielded();
        shielded.start(t.on, &t.f);
        plain_coroutine beside = t.wait(has_own_deadline ? t.on.now() + 9ms : never);
        beside.start(t.on, &t.f);
        t.on.advance(1ms);
        t.lower();
        EXPECT_TRUE(t.ends.empty());
        t.on.advance(3ms);
        EXPECT_EQ(t.ends, std::vector{wait_status::stopped});
        EXPECT_EQ(t.on.timer_count(), 0u);
    }
}

// An executor with a slow post().
class slow_executor final : public executor {
public:
    void post(runnable& r) noexcept override {
        posting = true;
        for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
        left_too_early = left.load();
        posted.push_back(r);
    }
    void defer(std::coroutine_handle<>, flow*) noexcept override {}
    void cancel_post(runnable&) noexcept override {}
    void arm(timer_node&) noexcept override {}
    void disarm(timer_node&) noexcept override {}
    time_point now() const noexcept override { return {}; }
    void register_flow(flow&) noexcept override {}
    void deregister_flow(flow&) noexcept override {}
    bool running_in_this_thread() const noexcept override { return false; }

    std::atomic<bool> posting{false}, left{false}, left_too_early{false};
    forward_queue<runnable> posted;
};

TEST(flow, does_not_leave_an_executor_during_a_remote_post) {
    manual_executor next;
    coroutine_flow f(next);
    slow_executor on;
    f.home = &on;
    std::thread asks([&] { f.request_stop(stop_reason::user); });
    while (!on.posting) std::this_thread::yield();
    f.migrate_to(nullptr);
    on.left = true;
    asks.join();
    EXPECT_FALSE(on.left_too_early);
    EXPECT_EQ(on.posted.pop_front(), &f.message);
    f.kind->release(f);
    f.home = &next;
}

// An executor offloads the turn that was to end a wait.
TEST(flow, detach_from_executor_disarms_the_deadline_of_its_wait) {
    manual_executor a, b;
    coroutine_flow f(a);
    gate g;
    const auto body = [](gate& of, time_point until) -> plain_coroutine {
        EXPECT_EQ(co_await of.async_pass_until(until), wait_status::woken);
    };
    a.register_flow(f);
    plain_coroutine c = body(g, a.now() + 1ms);
    c.start(a, &f);
    EXPECT_EQ(a.timer_count(), 1u);
    g.let_one_pass();
    a.cancel_post(*f.waiting);
    a.call([&] { f.detach_from_executor(); });
    EXPECT_EQ(a.timer_count(), 0u);
    EXPECT_EQ(f.home, nullptr);
    b.call(
        [&] {
            f.attach_to_executor();
            c.handle().resume();
        },
        &f);
    EXPECT_TRUE(c.done());
    EXPECT_EQ(f.home, &b);
    b.deregister_flow(f);
}

TEST(flow_death, ends_before_a_coroutine_that_waits_in_it) {
    EXPECT_DEATH(
        {
            manual_executor on;
            gate g;
            std::vector<stop_reason> stops;
            plain_coroutine c = pass(g, stops);
            coroutine_flow f(on);
            c.start(on, &f);
        },
        "weft: a flow ends while a coroutine that began in it waits");
}

}  // namespace
}  // namespace weft
