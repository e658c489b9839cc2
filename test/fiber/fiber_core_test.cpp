#include "weft/fiber/detail/fiber_core.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "test/support/begun.hpp"
#include "test/support/gate.hpp"
#include "weft/base/detail/block_cache.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/fiber/detail/fiber_body.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/task/task.hpp"
#include "weft/task/with_nursery.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/detail/thread_executor.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/sleep.hpp"

namespace weft::detail {
namespace {

TEST(fiber_core, is_resumable_through_a_coroutine_handle) {
    loop l;
    fiber_core* seen = nullptr;
    std::coroutine_handle<> handle;
    fiber f(
        [&] {
            seen = fiber_core::current();
            handle = current_flow()->handle;
            this_fiber::yield();
            seen = nullptr;
        },
        {.on = l});
    l.run_once(l.now());
    l.run_until_idle();
    EXPECT_EQ(seen, nullptr);
    EXPECT_TRUE(handle);
    f.join();
}

TEST(fiber_core, starts_with_the_two_words_of_a_coroutine_frame) {
    loop l;
    const void* address = nullptr;
    const void* core = nullptr;
    fiber f(
        [&] {
            address = current_flow()->handle.address();
            core = fiber_core::current();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(address, core);
    EXPECT_NE(core, nullptr);
    f.join();
}

TEST(fiber_core, is_current_only_while_it_runs) {
    loop l;
    EXPECT_EQ(fiber_core::current(), nullptr);
    fiber_core* a_core = nullptr;
    fiber_core* b_core = nullptr;
    fiber a(
        [&] {
            a_core = fiber_core::current();
            this_fiber::yield();
            EXPECT_EQ(fiber_core::current(), a_core);
        },
        {.on = l});
    fiber b(
        [&] {
            b_core = fiber_core::current();
            this_fiber::yield();
            EXPECT_EQ(fiber_core::current(), b_core);
        },
        {.on = l});
    l.run();
    EXPECT_NE(a_core, b_core);
    EXPECT_EQ(fiber_core::current(), nullptr);
    a.join();
    b.join();
}

TEST(fiber_core, is_counted_by_its_loop_from_start_to_end) {
    loop l;
    std::size_t within = 0;
    fiber f([&] { within = l.flow_count(); }, {.on = l});
    EXPECT_EQ(l.flow_count(), 0u);
    l.run_until_idle();
    EXPECT_EQ(within, 1u);
    EXPECT_EQ(l.flow_count(), 0u);
    f.join();
}

TEST(fiber_core, is_killed_when_its_executor_destroys_it) {
    testing::virtual_loop on;  // whose deadlines are those of its timers alone
    loop& l = on.loop();
    int destroyed = 0;
    flow* inner = nullptr;
    fiber f(
        [&] {
            struct at_end {
                int& n;
                ~at_end() { ++n; }
            } const a{destroyed};
            inner = current_flow();
            this_fiber::sleep_for(std::chrono::hours(1));
        },
        {.on = l});
    l.run_until_idle();
    l.post([&] { inner->handle.destroy(); });
    l.run_until_idle();
    EXPECT_EQ(destroyed, 1);
    EXPECT_TRUE(f.done());
    EXPECT_EQ(l.next_deadline(), never) << "its wait was taken back";
    EXPECT_EQ(f.join().reason(), stop_reason::shutdown);
}

// Another thread has claimed the one that waits, and wakes it while the loop ends.
void end_beside_a_late_wake(std::optional<loop>& l, testing::gate& g) {
    waiter* const claimed = g.claim_one();
    ASSERT_NE(claimed, nullptr);
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        claimed->wake();
    });
    l.reset();
    other.join();
}

TEST(fiber_core, with_a_wake_in_progress_runs_before_its_loop_ends) {
    testing::gate g;
    bool has_passed = false;
    std::optional<loop> l(std::in_place);
    fiber f(
        [&] {
            await(g.async_pass());
            has_passed = true;
        },
        {.on = *l});
    f.detach();
    l->run_until_idle();
    end_beside_a_late_wake(l, g);
    EXPECT_TRUE(has_passed);
}

// Is checked twice, and cannot report that it was stopped.
struct in_two_looks {
    static constexpr bool reports_stop = false;
    waiter* waits = nullptr;
    int looks = 0;

    bool ready() { return false; }
    bool start(waiter& w) {
        waits = &w;
        w.enlist("two events", this, this, [](waiter&) noexcept {});
        return true;
    }
    bool again(waiter& w) noexcept { return ++looks == 2 || !w.rearm(never, reports_stop); }
    void take(const waiter* w, wait_status how) {
        if (how == wait_status::stopped) throw_stopped(w->reason());
    }
};

TEST(fiber_core, waiting_during_unwinding_is_not_stopped_at_a_second_check) {
    loop l;
    in_two_looks op;
    fiber f(
        [&] {
            struct cleans_up {
                in_two_looks& op;
                ~cleans_up() { await(op); }
            } const c{op};
            throw 7;
        },
        {.on = l});
    l.run_until_idle();
    f.request_stop();
    for (int look = 1; look <= 2; ++look) {
        ASSERT_NE(op.waits, nullptr);
        ASSERT_TRUE(op.waits->claim());
        op.waits->wake();
        l.run_until_idle();
        EXPECT_EQ(op.looks, look);
    }
    EXPECT_THROW(f.join(), int);
}

TEST(fiber_core, with_a_wake_in_progress_runs_beside_an_endless_yielder) {
    testing::gate g;
    bool has_passed = false;
    std::optional<loop> l(std::in_place);
    fiber endless(
        [] {
            const shield from_the_end;
            for (;;) this_fiber::yield();
        },
        {.on = *l});
    endless.detach();
    fiber f(
        [&] {
            await(g.async_pass());
            has_passed = true;
        },
        {.on = *l});
    f.detach();
    while (!g.anybody_waits()) l->run_once(never);
    end_beside_a_late_wake(l, g);
    EXPECT_TRUE(has_passed);
}

TEST(fiber_core, with_a_wake_of_an_outer_wait_in_progress_runs_before_its_loop_ends) {
    testing::gate g;
    testing::gate first;
    testing::gate second;
    bool has_passed = false;
    std::optional<loop> l(std::in_place);
    fiber f(
        [&] {
            const shield from_the_end;
            const testing::begun waits = testing::pass_both(first, second);
            await(g.async_pass());
            has_passed = true;
            second.let_one_pass();
            this_fiber::yield();
        },
        {.on = *l});
    f.detach();
    l->run_until_idle();
    ASSERT_TRUE(first.let_one_pass());
    l->run_until_idle();  // the coroutine's wait is the innermost
    end_beside_a_late_wake(l, g);
    EXPECT_TRUE(has_passed);
}

TEST(fiber_core, has_a_wait_of_its_own_beside_those_of_its_coroutines) {
    loop l;
    testing::gate g;
    testing::gate first;
    testing::gate second;
    const flow* of = nullptr;
    fiber f(
        [&] {
            const testing::begun waits = testing::pass_both(first, second);
            of = current_flow();
            EXPECT_NE(of->waiting, nullptr);
            EXPECT_EQ(of->own_wait(), nullptr);
            await(g.async_pass());
            second.let_one_pass();
            this_fiber::yield();
        },
        {.on = l});
    l.run_until_idle();
    ASSERT_NE(of, nullptr);
    waiter* const own = of->own_wait();
    EXPECT_NE(own, nullptr);
    EXPECT_EQ(own, of->waiting);
    ASSERT_TRUE(first.let_one_pass());
    l.run_until_idle();
    EXPECT_NE(own, of->waiting);
    EXPECT_EQ(own, of->own_wait());
    ASSERT_TRUE(g.let_one_pass());
    l.run();
    f.join();
}

// A stop of its flow comes while it starts, and asks it to end before the flow is suspended.
struct asked_as_it_begins {
    static constexpr bool reports_stop = true;
    bool could_suspend = true;

    bool ready() { return false; }
    bool start(waiter& w) {
        w.enlist(
            "a thing", this, this, [](waiter&) noexcept {},
            [](waiter& me, stop_reason) noexcept {
                me.operation<asked_as_it_begins>().could_suspend = current_flow()->can_suspend();
                if (me.claim()) me.wake();
            });
        current_flow()->request_stop(stop_reason::user);
        return true;
    }
    void take(const waiter*, wait_status) {}
};

TEST(fiber_core, can_be_suspended_by_code_on_its_stack_where_no_wait_begins) {
    loop l;
    testing::gate g;
    asked_as_it_begins op;
    const auto can = [] { return current_flow()->can_suspend(); };
    bool by_a_coroutine = true;
    fiber f(
        [&] {
            EXPECT_TRUE(can());
            const testing::begun waits = [](testing::gate& of, bool& seen) -> testing::begun {
                co_await of.async_pass();
                seen = current_flow()->can_suspend();  // on the stack of the loop
            }(g, by_a_coroutine);
            EXPECT_TRUE(can());
            coroutine<void()> inner([&] { EXPECT_TRUE(can()); });
            inner.resume();
            g.let_one_pass();
            this_fiber::yield();
            EXPECT_FALSE(by_a_coroutine);
            await(op);
            EXPECT_FALSE(op.could_suspend);
            EXPECT_TRUE(can());
        },
        {.on = l});
    l.run();
    f.join();
}

TEST(fiber_core, killed_while_ready_with_a_nested_wait_never_resumes) {
    testing::gate g;
    std::optional<loop> l(std::in_place);
    bool is_gone = false;
    fiber f(
        [&] {
            struct at_end {
                bool& gone;
                ~at_end() { gone = true; }
            } const a{is_gone};
            const shield from_the_end;
            const testing::begun waits = [](testing::gate& g) -> testing::begun {
                co_await g.async_pass();
            }(g);
            for (;;) {
                EXPECT_FALSE(is_gone);
                this_fiber::yield();
            }
        },
        {.on = *l});
    l->run_once(steady_now());
    l.reset();
    EXPECT_TRUE(is_gone);
    EXPECT_TRUE(f.done());
    EXPECT_EQ(f.join().reason(), stop_reason::shutdown);
}

TEST(fiber_core, is_migratable_in_a_pool_when_requested) {
    loop l;
    pool p({.thread_count = 1});
    bool seen = false;
    const auto looks = [&] { seen = current_flow()->migratable; };
    fiber(looks, {.on = p, .migratable = true}).join();
    EXPECT_TRUE(seen);
    fiber(looks, {.on = p}).join();
    EXPECT_FALSE(seen);
    fiber on_a_loop(looks, {.on = l, .migratable = true});
    l.run();
    on_a_loop.join();
    EXPECT_FALSE(seen) << "it was said where it is to be";
}

task<> sleep_for_an_hour() { co_await sleep_for(std::chrono::hours(1)); }

// The check comes from an executor that would offload the fiber's turn.
TEST(fiber_core, migrates_only_if_migratable_and_its_only_wait_ended) {
    testing::virtual_loop on;
    loop& l = on.loop();
    fiber_core* core = nullptr;
    fiber f(
        [&] {
            core = fiber_core::current();
            this_fiber::yield();
            await(sleep_for_an_hour());
        },
        {.on = l});
    const auto leaves = [&] { return core->kind->leave(*core, core->frame::handle()); };
    l.run_once(l.now());
    ASSERT_NE(core, nullptr);
    EXPECT_FALSE(leaves()) << "it does not roam";
    l.run_until_idle();
    ASSERT_NE(core->waiting, nullptr);
    core->migratable = true;
    EXPECT_FALSE(leaves()) << "what it awaits waits as well";
    core->migratable = false;
    EXPECT_EQ(core->home, &l);
    f.request_stop();
    l.run_until_idle();
    EXPECT_TRUE(f.join().is_stopped());
}

// -- derived classes ------------------------------------------------------------------------------

TEST(fiber_core, releases_its_block) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    loop l;
    const auto run_one = [&] {
        fiber f([] {}, {.on = l});
        l.run();
        f.join();
    };
    run_one();  // the loop has what it caches
    const std::size_t before = block_cache::stats().used_bytes;
    run_one();
    EXPECT_EQ(block_cache::stats().used_bytes, before);
    (new borrowed_fiber)->release();
    EXPECT_EQ(block_cache::stats().used_bytes, before) << "and all of a larger one";
}

struct has_an_end final : watched_fiber {
    int ends = 0;
    int& destroyed;
    explicit has_an_end(int& d) noexcept
        : watched_fiber([](void* self) noexcept { ++static_cast<has_an_end*>(self)->ends; }, this,
                        [](watched_fiber& f) noexcept { delete static_cast<has_an_end*>(&f); }),
          destroyed(d) {}
    ~has_an_end() { ++destroyed; }
};

TEST(fiber_core, when_watched_reports_its_end_and_is_destroyed_as_derived) {
    loop l;
    int destroyed = 0;
    auto* const f = new has_an_end(destroyed);
    watched_fiber* seen = nullptr;
    const auto looks = [&] { seen = watched_fiber::of(*current_flow()); };
    f->set_body(fiber_body<decltype(looks)>(looks));
    f->target = &l;
    f->home = &l;
    f->begin(false);
    l.run();
    EXPECT_EQ(seen, f);
    EXPECT_EQ(f->ends, 1);
    EXPECT_EQ(destroyed, 0);
    f->release();
    EXPECT_EQ(destroyed, 1);
    fiber other(looks, {.on = l});
    l.run();
    other.join();
    EXPECT_EQ(seen, nullptr);
    EXPECT_EQ(watched_fiber::of(this_thread_host().own_flow()), nullptr);
}

// A fiber that is always ready, and has turns that can be passed on to it, until its loop ends.
struct ready_one {
    std::shared_ptr<int> turns = std::make_shared<int>(0);
    explicit ready_one(loop& l) {
        fiber(
            [n = turns] {
                for (;;) {
                    ++*n;
                    this_fiber::yield();
                }
            },
            {.on = l})
            .detach();
    }
};

TEST(fiber_core, passes_no_turn_on_that_another_caller_waits_for) {
    loop l;
    ready_one other(l);
    l.run_once(l.now());
    int before = 0;
    const auto begins_one = [&] {
        before = *other.turns;
        fiber within([] { this_fiber::yield(); }, {.launch = launch::dispatch});
        EXPECT_EQ(*other.turns, before) << "the caller comes first";
        within.detach();
    };
    l.post(begins_one);
    l.run_once(l.now());
    fiber f(begins_one, {.on = l});
    l.run_once(l.now());
    EXPECT_TRUE(f.done());
    EXPECT_GT(*other.turns, before);
}

// Yields until it is ended on the spot, with the nursery.
testing::begun keeps_a_child(bool& has_begun) {
    co_await with_nursery([&](nursery& n) -> task<> {
        n.spawn([&] {
            for (;;) {
                has_begun = true;
                this_fiber::yield();
            }
        });
        co_await n.async_join();
    });
}

// The child's turn was the loop's, so its own frame is at the bottom of the stack when it passes
// the turn on to the fiber that ends it.
TEST(fiber_core, may_be_gone_when_the_turn_that_it_passed_on_ends) {
    loop l;
    bool has_begun = false;
    bool went_on = false;
    fiber f(
        [&] {
            {
                const testing::begun b = keeps_a_child(has_begun);
                while (!has_begun) this_fiber::yield();
            }
            this_fiber::yield();
            went_on = true;
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_TRUE(went_on);
}

TEST(fiber_core, that_yields_beside_a_wait_keeps_its_turn_when_it_passes_one_on) {
    loop l;
    ready_one other(l);
    testing::gate g;
    bool went_on = false;
    fiber f(
        [&] {
            const testing::begun b = [](testing::gate& to_pass) -> testing::begun {
                co_await to_pass.async_pass();
            }(g);
            this_fiber::yield();
            this_fiber::yield();
            went_on = true;
            g.open();
            this_fiber::yield();
        },
        {.on = l});
    for (int i = 0; i != 4; ++i) l.run_once(l.now());
    EXPECT_TRUE(went_on);
    EXPECT_TRUE(f.done());
}

TEST(fiber_core, throws_at_its_own_end_though_another_had_the_turn_first) {
    loop l;
    const auto fails = [](int n) {
        return [n] {
            this_fiber::yield();
            this_fiber::yield();
            throw n;
        };
    };
    fiber a(fails(1), {.on = l});
    fiber b(fails(2), {.on = l});
    l.run_until_idle();
    EXPECT_THROW(
        try { a.join(); } catch (int n) {
            EXPECT_EQ(n, 1);
            throw;
        },
        int);
    EXPECT_THROW(
        try { b.join(); } catch (int n) {
            EXPECT_EQ(n, 2);
            throw;
        },
        int);
}

TEST(fiber_core, that_passed_its_turn_on_is_ended_with_its_loop) {
    int ended = 0;
    {
        loop l;
        const auto waits = [&] {
            struct at_end {
                int& n;
                ~at_end() { ++n; }
            } const a{ended};
            for (;;) this_fiber::yield();
        };
        fiber a(waits, {.on = l});
        fiber b(waits, {.on = l});
        l.run_once(l.now());
        a.detach();
        b.detach();
    }
    EXPECT_EQ(ended, 2);
}

// Each waits in a coroutine that it resumed, which goes on there with the turn.
TEST(fiber_core, that_passed_its_turn_on_in_a_coroutine_of_its_own_is_ended_with_its_loop) {
    int turns = 0;
    int ended = 0;
    {
        struct at_end {
            int& n;
            ~at_end() { ++n; }
        };
        loop l;
        const auto waits = [&] {
            const at_end outer{ended};
            coroutine inner([&] {
                const at_end c{ended};
                for (;; ++turns) this_fiber::yield();
            });
            inner.resume();
        };
        fiber a(waits, {.on = l});
        fiber b(waits, {.on = l});
        l.run_once(l.now());
        l.run_once(l.now());
        EXPECT_GT(turns, 2);
        a.detach();
        b.detach();
    }
    EXPECT_EQ(ended, 4);
}

TEST(fiber_core, may_run_another_loop_in_a_turn_that_was_passed_to_it) {
    std::string trace;
    loop l;
    const auto notes = [&](char name, int times) {
        return [&trace, name, times] {
            for (int i = 0; i != times; ++i) {
                trace += name;
                this_fiber::yield();
            }
        };
    };
    fiber a(notes('a', 3), {.on = l});
    fiber b(
        [&] {
            notes('b', 1)();
            loop inner;
            fiber x(notes('x', 3), {.on = inner});
            fiber y(notes('y', 3), {.on = inner});
            inner.run();
            notes('b', 2)();
        },
        {.on = l});
    l.run();
    EXPECT_EQ(trace, "abaxyxyxybab");
}

}  // namespace
}  // namespace weft::detail
