#include "weft/manager/suspension.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "test/manager/managed.hpp"
#include "test/support/allocations.hpp"
#include "test/support/outside.hpp"
#include "test/support/slow.hpp"
#include "test/support/stops_in_copy.hpp"
#include "weft/wait/shield.hpp"

using namespace std::chrono_literals;

namespace {

using weft::manager_errc;
namespace this_managed = weft::this_managed;

class managed_suspension : public weft::testing::of_both_kinds {};
WEFT_INSTANTIATE_OF_BOTH_KINDS(managed_suspension);

TEST_P(managed_suspension, ends_with_the_value_of_resume) {
    std::string got;
    const auto h = begin([] { return this_managed::async_suspend<std::string>(); },
                         [&](std::string s) { got = std::move(s); });
    w.settle();
    EXPECT_FALSE(w.m.resume(h.id(), std::string("value")));
    EXPECT_TRUE(got.empty()) << "not within the call";
    w.l.run();
    EXPECT_EQ(got, "value");
    EXPECT_EQ(w.m.resume(h.id(), std::string("late")), manager_errc::no_such_task);
}

TEST_P(managed_suspension, receives_a_value_sent_before_it) {
    std::unique_ptr<int> got;
    const auto h = begin([] { return this_managed::async_suspend<std::unique_ptr<int>>(); },
                         [&](std::unique_ptr<int> p) { got = std::move(p); });
    EXPECT_FALSE(w.m.resume(h.id(), std::make_unique<int>(1)));
    EXPECT_EQ(w.m.resume(h.id(), std::make_unique<int>(2)), manager_errc::value_pending);
    w.l.run();
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(*got, 1);
}

TEST_P(managed_suspension, is_the_only_wait_that_a_resume_ends) {
    const weft::time_point begun = w.l.now();
    weft::time_point woken;
    const auto h = begin([] { return weft::sleep_for(5s); }, [&] { woken = w.l.now(); });
    w.settle();
    EXPECT_FALSE(w.m.resume(h.id(), 7)) << "kept";
    w.l.run();
    EXPECT_GE(woken - begun, 5s);
}

TEST_P(managed_suspension, refuses_a_value_of_another_type) {
    int got = 0;
    const auto h =
        begin([] { return this_managed::async_suspend<int>(); }, [&](int n) { got = n; });
    w.settle();
    EXPECT_EQ(w.m.resume(h.id(), 1L), manager_errc::type_mismatch);
    EXPECT_EQ(w.m.resume(h.id()), manager_errc::type_mismatch);
    EXPECT_FALSE(w.m.resume(h.id(), 1));
    w.l.run();
    EXPECT_EQ(got, 1);
    EXPECT_EQ(w.m.stats().type_mismatch_count, 2u);
}

TEST_P(managed_suspension, discards_a_pending_value_of_another_type) {
    int got = 0;
    const auto h =
        begin([] { return this_managed::async_suspend<int>(); }, [&](int n) { got = n; });
    EXPECT_FALSE(w.m.resume(h.id(), std::string("kept")));
    w.settle();
    EXPECT_EQ(w.m.stats().type_mismatch_count, 1u);
    EXPECT_FALSE(w.m.resume(h.id(), 1));
    w.l.run();
    EXPECT_EQ(got, 1);
}

TEST_P(managed_suspension, with_a_deadline_reports_timed_out) {
    std::error_code why;
    const auto h =
        begin([] { return this_managed::async_suspend<int>(weft::after(weft::now(), 1s)); },
              [&](weft::result<int> r) { why = r.error(); });
    w.l.run();
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_EQ(h.status(), weft::managed_status::done);
}

TEST_P(managed_suspension, ends_when_its_task_is_cancelled_or_killed) {
    const auto cancelled = begin([] { return this_managed::async_suspend<int>(); });
    const auto killed = begin([] { return this_managed::async_suspend<int>(); });
    w.settle();
    w.m.cancel(cancelled.id());
    EXPECT_EQ(w.m.resume(cancelled.id(), 1), manager_errc::already_stopping);
    w.m.kill(killed.id());
    w.l.run();
    EXPECT_TRUE(cancelled.over());
    EXPECT_TRUE(killed.over());
}

// A timer with the same deadline fires before the wait's own, and resumes the task.
TEST_P(managed_suspension, resumed_at_its_deadline_does_not_time_out) {
    struct resuming : weft::timer_node {
        weft::task_manager<>* m;
        std::uint64_t id = 0;
        std::error_code refused;
    } t;
    const weft::time_point noon = weft::after(w.l.now(), 1s);
    t.deadline = noon;
    t.m = &w.m;
    t.fire = [](weft::timer_node& n) noexcept {
        auto& self = static_cast<resuming&>(n);
        self.refused = self.m->resume(self.id, 7);
    };
    w.l.loop().post([&] { w.l.loop().arm(t); });
    w.settle();
    weft::result<int> got = 0;
    const auto h = begin([noon] { return this_managed::async_suspend<int>(noon); },
                         [&](weft::result<int> r) { got = r; });
    t.id = h.id();
    w.l.run();
    EXPECT_FALSE(t.refused);
    EXPECT_FALSE(t.armed);
    EXPECT_EQ(got.value_or(0), 7);
    EXPECT_TRUE(h.over());
}

TEST_P(managed_suspension, resumed_can_be_stopped_or_killed_before_its_turn) {
    for (const bool kill : {false, true}) {
        bool ran = false;
        const auto h =
            begin([] { return this_managed::async_suspend<int>(); }, [&](int n) { ran = n == 7; });
        w.settle();
        w.l.loop().post([&] {
            EXPECT_FALSE(w.m.resume(h.id(), 7));
            EXPECT_FALSE(kill ? w.m.kill(h.id()) : w.m.cancel(h.id()));
            EXPECT_EQ(w.m.resume(h.id(), 8), manager_errc::already_stopping);
        });
        w.l.run();
        EXPECT_TRUE(h.over());
        EXPECT_EQ(h.status(),
                  kill ? weft::managed_status::killed : weft::managed_status::cancelled);
        EXPECT_TRUE(ran || kill) << "the value came first";
    }
}

TEST_P(managed_suspension, resumed_ends_with_its_loop) {
    auto loop = std::make_unique<weft::loop>();
    weft::task_manager<> m({.on = *loop});
    const auto fiber = m.spawn_with_handle([] { this_managed::suspend<int>(); });
    const auto coroutine =
        m.spawn_with_handle([]() -> weft::task<> { co_await this_managed::async_suspend<int>(); });
    loop->run_until_idle();
    loop->post([&] {
        EXPECT_FALSE(m.resume(fiber->id(), 1));
        EXPECT_FALSE(m.resume(coroutine->id(), 1));
        loop->stop();
    });
    loop->run();
    loop.reset();
    EXPECT_TRUE(fiber->over());
    EXPECT_TRUE(coroutine->over());
}

TEST(managed_suspension, repeated_allocates_nothing) {
    weft::loop l;
    weft::task_manager<> m({.on = l});
    constexpr int rounds = WEFT_DEBUG ? 10'000 : 100'000;
    std::int64_t sum = 0;
    const auto fiber = m.spawn([&] {
        for (int i = 0; i < rounds; ++i) sum += this_managed::suspend<int>();
    });
    const auto coroutine = m.spawn([&]() -> weft::task<> {
        for (int i = 0; i < rounds; ++i) sum += co_await this_managed::async_suspend<int>();
    });
    std::size_t allocated = 1;
    weft::fiber resumes(
        [&] {
            std::size_t before = 0;
            for (int i = 0; i < rounds; ++i) {
                weft::this_fiber::yield();
                if (i == rounds / 2) before = weft::testing::allocations();
                EXPECT_FALSE(m.resume(*fiber, i));
                EXPECT_FALSE(m.resume(*coroutine, i));
            }
            allocated = weft::testing::allocations() - before;
        },
        {.on = l});
    l.run();
    resumes.join();
    EXPECT_EQ(allocated, 0u);
    EXPECT_EQ(sum, std::int64_t{rounds} * (rounds - 1));
}

struct fails_to_move {
    bool fails = false;
    fails_to_move() = default;
    explicit fails_to_move(bool f) : fails(f) {}
    fails_to_move(const fails_to_move& other) : fails(other.fails) {
        if (fails) throw std::runtime_error("no copy");
    }
};

// A stop does not end this wait, so the resume still does; and the next wait finds the stop.
TEST(managed_suspension, under_a_shield_is_resumed_despite_a_cancelled_task) {
    for (const bool coroutine : {false, true}) {
        weft::testing::managed_world w;
        int got = 0;
        bool after = false;
        const auto fiber = [&] {
            {
                const weft::shield s;
                got = this_managed::suspend<int>();
            }
            this_managed::suspend<int>();
            after = true;
        };
        const auto task = [&]() -> weft::task<> {
            {
                const weft::shield s;
                got = co_await this_managed::async_suspend<int>();
            }
            co_await this_managed::async_suspend<int>();
            after = true;
        };
        const auto h =
            coroutine ? w.m.spawn_with_handle(task).value() : w.m.spawn_with_handle(fiber).value();
        w.settle();
        EXPECT_FALSE(w.m.cancel(h.id()));
        w.settle();
        EXPECT_FALSE(w.m.resume(h.id(), 7));
        w.l.run();
        EXPECT_EQ(got, 7);
        EXPECT_FALSE(after);
        EXPECT_EQ(h.status(), weft::managed_status::cancelled);
        EXPECT_TRUE(h.over());
    }
}

TEST(managed_suspension, under_a_shield_is_ended_by_a_kill) {
    weft::testing::managed_world w;
    const auto h = w.m.spawn_with_handle([&] {
                          const weft::shield s;
                          this_managed::suspend<int>();
                      })
                       .value();
    w.settle();
    EXPECT_FALSE(w.m.cancel(h.id()));
    w.settle();
    EXPECT_EQ(w.m.kill(h.id()), manager_errc::already_stopping);
    w.settle();
    EXPECT_TRUE(h.over());
}

TEST(managed_suspension, is_excluded_from_deadlock_reports) {
    weft::task_manager<> m;
    EXPECT_TRUE(weft::testing::waits_for_outside([&] {
        static_cast<void>(m.spawn_with_handle([] { this_managed::suspend<int>(); })->join());
    }));
}

TEST(managed_suspension, rethrows_what_constructing_the_value_threw) {
    weft::testing::managed_world w;
    bool caught = false;
    const auto id = w.m.spawn([&] {
        try {
            this_managed::suspend<fails_to_move>();
        } catch (const std::runtime_error&) {
            caught = true;
        }
    });
    w.settle();
    const fails_to_move bad(true);
    EXPECT_FALSE(w.m.resume(*id, bad));
    w.l.run();
    EXPECT_TRUE(caught);
}

// Otherwise the waiter would never be notified.
TEST(managed_suspension_death, refuses_a_kill_while_the_value_is_copied) {
    weft::testing::managed_world w;
    bool over = false;
    const auto id = w.m.spawn([&] {
        this_managed::suspend<weft::testing::stops_in_copy>();
        over = true;
    });
    w.settle();
    weft::testing::expect_no_kill_in_copy([&] {
        const weft::testing::stops_in_copy value;
        EXPECT_FALSE(w.m.resume(*id, value));
    });
    w.l.run();
    EXPECT_TRUE(over);
}

TEST(managed_suspension_death, outside_a_managed_task) {
    EXPECT_DEATH(this_managed::suspend<int>(), "a suspend outside of any task of a task_manager");
}

}  // namespace
