#include "weft/manager/task_manager.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/manager/managed.hpp"
#include "test/support/allocation_fails.hpp"
#include "test/support/counted.hpp"
#include "test/support/outside.hpp"
#include "test/support/slow.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/task/task_handle.hpp"
#include "weft/wait/shield.hpp"

using namespace std::chrono_literals;

namespace {

// What the options of spawned work have in common has one name, type and order in all of them: a
// list of designators in another order would not compile.
template <class Options>
Options with_common_fields(const weft::fiber_options& o) {
    return {.name = o.name,
            .on = o.on,
            .launch = o.launch,
            .stack_bytes = o.stack_bytes,
            .stack = o.stack,
            .fp = o.fp};
}
template <class Options>
Options with_fields_of_a_task(const weft::fiber_options& o) {
    return {.name = o.name, .on = o.on};
}
template <class A, class B>
concept has_fields_of_a_task_as = std::same_as<decltype(A::name), decltype(B::name)> &&
                                  std::same_as<decltype(A::on), decltype(B::on)>;
template <class A, class B>
concept has_common_fields_as =
    has_fields_of_a_task_as<A, B> && std::same_as<decltype(A::launch), decltype(B::launch)> &&
    std::same_as<decltype(A::stack_bytes), decltype(B::stack_bytes)> &&
    std::same_as<decltype(A::stack), decltype(B::stack)> &&
    std::same_as<decltype(A::fp), decltype(B::fp)>;
static_assert(has_fields_of_a_task_as<weft::task_options, weft::fiber_options>);
static_assert(has_common_fields_as<weft::spawn_options, weft::fiber_options>);

TEST(spawn_options, have_the_fields_of_fiber_options_and_task_options_in_their_order) {
    const weft::fiber_options o{.name = "a", .stack_bytes = 65536};
    EXPECT_EQ(with_common_fields<weft::fiber_options>(o).name, "a");
    EXPECT_EQ(with_common_fields<weft::spawn_options>(o).stack_bytes, 65536u);
    EXPECT_EQ(with_fields_of_a_task<weft::task_options>(o).name, "a");
}

using weft::managed_handle;
using weft::managed_status;
using weft::manager_errc;
using weft::stop_reason;
using weft::task_manager;
using weft::testing::managed_world;

// -- a life -------------------------------------------------------------------------------------

class managed_life : public weft::testing::of_both_kinds {};
WEFT_INSTANTIATE_OF_BOTH_KINDS(managed_life);

TEST_P(managed_life, passes_from_created_to_waiting_to_done) {
    const auto h = begin([] { return weft::sleep_for(1s); },
                         [] {
                             const weft::detail::managed_task* t =
                                 weft::detail::managed_task::current();
                             EXPECT_EQ(t->status(), managed_status::running);
                         },
                         {.name = "sleeper"});
    EXPECT_EQ(h.status(), managed_status::created);
    EXPECT_EQ(h.name(), "sleeper");
    w.m.check();
    w.settle();
    EXPECT_EQ(h.status(), managed_status::waiting);
    EXPECT_FALSE(h.over());
    w.l.run();
    EXPECT_EQ(h.status(), managed_status::done);
    EXPECT_TRUE(h.over());
    EXPECT_EQ(w.m.live_count(), 0u);
    EXPECT_FALSE(w.m.find(h.id()));
    w.m.check();
}

TEST_P(managed_life, ends_by_cancel_while_it_waits) {
    bool after = false;
    const auto h = begin([] { return weft::sleep_for(1h); }, [&] { after = true; });
    w.settle();
    EXPECT_FALSE(w.m.cancel(h.id()));
    EXPECT_EQ(h.status(), managed_status::cancelled) << "at once, for good";
    EXPECT_EQ(w.m.cancel(h.id()), manager_errc::already_stopping);
    w.l.run();
    EXPECT_TRUE(h.over());
    EXPECT_FALSE(after);
    EXPECT_EQ(w.m.cancel(h.id()), manager_errc::no_such_task);
    EXPECT_EQ(h.reason(), stop_reason::user);
    EXPECT_EQ(w.m.stats().cancelled_count, 1u);
}

TEST_P(managed_life, ends_by_kill_in_one_unwind) {
    int gone = 0;
    weft::channel<int> c;
    const auto h = begin([&] { return c.async_recv(); },
                         [c = std::shared_ptr<void>(nullptr, [&](void*) { ++gone; })](auto&&) {});
    w.settle();
    EXPECT_FALSE(w.m.kill(h.id(), stop_reason::shutdown));
    EXPECT_EQ(gone, 0) << "not within the call";
    w.settle();
    EXPECT_GE(gone, 1);
    EXPECT_TRUE(h.over());
    EXPECT_EQ(h.status(), managed_status::killed);
    EXPECT_EQ(h.reason(), stop_reason::shutdown);
    EXPECT_FALSE(c.try_send(1)) << "nobody receives";
    EXPECT_EQ(w.m.kill(h.id()), manager_errc::no_such_task);
    w.l.run();
}

TEST_P(managed_life, ended_before_its_first_turn_never_runs) {
    bool ran = false;
    const auto op = [&] {
        ran = true;
        return weft::sleep_for(1s);
    };
    const auto killed = begin(op), cancelled = begin(op);
    const auto lazy = begin(op, [] {}, {.launch = weft::launch::deferred});
    EXPECT_FALSE(w.m.kill(killed.id()));
    EXPECT_FALSE(w.m.cancel(cancelled.id()));
    EXPECT_FALSE(w.m.kill(lazy.id()));
    EXPECT_TRUE(lazy.over()) << "here and now";
    w.l.run();
    EXPECT_TRUE(killed.over());
    EXPECT_TRUE(cancelled.over());
    EXPECT_FALSE(ran);
    EXPECT_EQ(killed.status(), managed_status::killed);
    EXPECT_EQ(cancelled.status(), managed_status::cancelled);
    EXPECT_EQ(w.m.live_count(), 0u);
}

TEST_P(managed_life, starts_with_start_if_deferred) {
    const auto h =
        begin([] { return weft::sleep_for(1s); }, [] {}, {.launch = weft::launch::deferred});
    w.settle();
    EXPECT_EQ(h.status(), managed_status::created);
    EXPECT_FALSE(w.m.start(h.id()));
    EXPECT_EQ(w.m.start(h.id()), manager_errc::already_started);
    w.l.run();
    EXPECT_EQ(h.status(), managed_status::done);
    EXPECT_EQ(w.m.start(h.id()), manager_errc::no_such_task);
}

TEST_P(managed_life, times_out_after_its_timeout_and_never_early) {
    const weft::time_point begun = w.l.now();
    weft::time_point ended;
    const auto h = begin([] { return weft::sleep_for(1h); }, [] {}, {.timeout = 5s});
    EXPECT_FALSE(w.m.on_finish(h, [&] { ended = w.l.now(); }));
    w.l.run();
    EXPECT_EQ(h.status(), managed_status::timed_out);
    EXPECT_EQ(h.reason(), stop_reason::deadline);
    EXPECT_GE(ended - begun, 5s);
    EXPECT_LE(ended - begun, 5s + 3ms);
    EXPECT_EQ(h.join().value(), managed_status::timed_out);
}

TEST_P(managed_life, does_not_time_out_after_its_deadline_is_removed) {
    const weft::time_point begun = w.l.now();
    const auto h = begin([] { return weft::sleep_for(10s); }, [] {}, {.timeout = 5s});
    EXPECT_FALSE(w.m.set_time_limit(h.id(), weft::never));
    EXPECT_EQ(w.m.deadline(h.id()), weft::never);
    w.l.run();
    EXPECT_EQ(h.status(), managed_status::done);
    EXPECT_GE(w.l.now() - begun, 10s);
    EXPECT_EQ(w.m.set_time_limit(h.id(), 1s), manager_errc::no_such_task);
}

TEST_P(managed_life, ends_with_its_loop) {
    managed_handle<> h;
    int finished = 0;
    {
        weft::loop l;
        task_manager<> m({.on = l});
        h = weft::testing::body_of(
                GetParam(), m, [] { return weft::sleep_for(1h); }, [] {})
                .value();
        EXPECT_FALSE(m.on_finish(h, [&] { ++finished; }));
        l.run_until_idle();
        l.kill_all();
        EXPECT_TRUE(h.over());
        EXPECT_EQ(m.live_count(), 0u);
    }
    EXPECT_EQ(finished, 1);
    EXPECT_TRUE(weft::is_final(h.status()));
}

TEST_P(managed_life, calls_its_hooks_once_before_joiners_wake) {
    std::string order;
    const auto h = begin([] { return weft::sleep_for(1s); });
    EXPECT_FALSE(w.m.on_finish(h.id(), [&](const managed_handle<>& of) {
        order += 'a';
        EXPECT_EQ(of, h);
        EXPECT_EQ(of.status(), managed_status::done);
        EXPECT_FALSE(of.over()) << "hooks are part of it";
    }));
    EXPECT_FALSE(w.m.on_finish(h, [&] { order += 'b'; }));
    const auto joins = w.m.spawn([&] {
        static_cast<void>(h.join());
        order += 'j';
    });
    ASSERT_TRUE(joins);
    w.l.run();
    EXPECT_EQ(order, "abj");
    EXPECT_EQ(w.m.on_finish(h.id(), [] {}), manager_errc::no_such_task);
    EXPECT_FALSE(w.m.on_finish(h, [&](const managed_handle<>& of) {
        order += 'c';
        EXPECT_EQ(of, h);
    }));
    EXPECT_EQ(order, "abjc") << "with a handle in hand it is called at once";
}

TEST_P(managed_life, killed_while_running_ends_at_its_next_wait) {
    const auto h = begin(
        [this] {
            // From within: it is killed when it suspends next.
            EXPECT_FALSE(w.m.kill(weft::this_managed::id()));
            return weft::sleep_for(1h);
        },
        [] { ADD_FAILURE() << "it went on"; });
    w.l.run();
    EXPECT_EQ(h.status(), managed_status::killed);
}

// -- what cannot prevent a kill -----------------------------------------------------------------

// Its state is destroyed at once, and not with the last handle.
TEST(task_manager_kill, of_an_unstarted_task_destroys_its_state_at_once) {
    managed_world w;
    const auto held = std::make_shared<int>(1);
    const auto fiber = [held] { ADD_FAILURE(); };
    const auto coroutine = [held]() -> weft::task<> {
        ADD_FAILURE();
        co_return;
    };
    const long before = held.use_count();
    for (const weft::launch how : {weft::launch::deferred, weft::launch::post}) {
        const auto a = w.m.spawn_with_handle(fiber, {.launch = how}).value();
        const auto b = w.m.spawn_with_handle(coroutine, {.launch = how}).value();
        EXPECT_EQ(held.use_count(), before + 2);
        EXPECT_FALSE(w.m.kill(a.id()));
        EXPECT_FALSE(w.m.kill(b.id()));
        if (how != weft::launch::deferred) w.settle();
        EXPECT_EQ(held.use_count(), before);
        EXPECT_TRUE(a.over() && b.over());
    }
}

TEST(task_manager_kill, ends_a_body_that_yields_forever) {
    weft::loop l;
    task_manager<> m({.on = l});
    int gone = 0;
    const auto id = m.spawn([&] {
        const weft::testing::counted c{gone};
        for (;;) weft::this_fiber::yield();
    });
    l.run_once(weft::never);
    const auto begun = weft::steady_now();
    EXPECT_FALSE(m.kill(*id));
    l.run();
    EXPECT_LT(weft::steady_now() - begun, 500ms);
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(m.stats().killed_count, 1u);
}

TEST(task_manager_kill, ends_a_body_that_swallows_every_exception) {
    managed_world w;
    int swallowed = 0;
    int gone = 0;
    const auto id = w.m.spawn([&] {
        const weft::testing::counted c{gone};
        for (int i = 0; i < 10; ++i) {
            try {
                weft::this_fiber::sleep_for(1h);
            } catch (...) {
                ++swallowed;
            }
        }
    });
    w.settle();
    EXPECT_FALSE(w.m.kill(*id));
    w.settle();
    EXPECT_EQ(gone, 1);
    EXPECT_GT(swallowed, 0);
    EXPECT_EQ(w.m.live_count(), 0u);
}

TEST(task_manager_kill, ends_a_cancelled_task_that_is_slow_to_end) {
    managed_world w;
    int gone = 0;
    const auto h = w.m.spawn_with_handle([&] {
        const weft::testing::counted c{gone};
        const weft::shield from_all;
        weft::this_fiber::sleep_for(1h);
    });
    w.settle();
    EXPECT_FALSE(w.m.cancel(h->id()));
    w.settle();
    EXPECT_EQ(gone, 0) << "the shield holds";
    EXPECT_EQ(w.m.kill(h->id()), manager_errc::already_stopping);
    w.settle();
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(h->status(), managed_status::cancelled) << "the first cause wins";
}

TEST(task_manager_kill, also_kills_what_the_task_awaits) {
    managed_world w;
    int gone = 0;
    const auto inner = [&]() -> weft::task<int> {
        const weft::testing::counted c{gone};
        co_await weft::sleep_for(1h);
        co_return 1;
    };
    const auto outer = w.m.spawn([&]() -> weft::task<int> {
        const weft::testing::counted c{gone};
        co_return co_await inner();
    });
    const auto fiber = w.m.spawn([&] {
        const weft::testing::counted c{gone};
        return weft::await(inner());
    });
    w.settle();
    w.m.kill(*outer);
    w.m.kill(*fiber);
    w.settle();
    EXPECT_EQ(gone, 4);
}

// Where they run in the same loop, also under a shield, and when one of them has failed before.
TEST(task_manager_kill, also_kills_the_children_that_the_task_joins) {
    for (const bool fails : {false, true}) {
        managed_world w;
        int gone = 0;
        const auto h = w.m.spawn_with_handle([&] {
            weft::nursery n;
            n.spawn([&] {
                const weft::testing::counted c{gone};
                const weft::shield s;
                weft::this_fiber::sleep_for(1h);
            });
            if (fails) n.spawn([] { throw 1; });
            n.join();
        });
        w.settle();
        EXPECT_EQ(gone, 0);
        EXPECT_FALSE(w.m.kill(h->id()));
        w.settle();
        EXPECT_EQ(gone, 1);
        EXPECT_TRUE(h->over());
        EXPECT_EQ(h->status(), managed_status::killed);
    }
}

// A frame between the throw and the handler cannot be unwound a second time: there the kill is a
// stop.
TEST(task_manager_kill, during_unwinding_lets_a_nursery_wait_for_its_children) {
    managed_world w;
    int gone = 0;
    int caught = 0;
    const auto h = w.m.spawn_with_handle([&] {
        try {
            weft::nursery n;
            n.spawn([&] {
                const weft::testing::counted c{gone};
                const weft::shield s;
                weft::this_fiber::sleep_for(1h);
            });
            weft::this_fiber::yield();
            throw 1;
        } catch (int) {
            ++caught;
        }
    });
    w.settle();
    EXPECT_FALSE(w.m.kill(h->id()));
    w.settle();
    EXPECT_EQ(gone, 0);
    w.l.run();
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(caught, 1);
    EXPECT_EQ(h->status(), managed_status::killed);
}

TEST(task_manager_kill, releases_the_lock_of_the_killed_task) {
    managed_world w;
    weft::mutex lock;
    const auto holds = w.m.spawn([&] {
        const std::lock_guard held(lock);
        weft::this_fiber::sleep_for(1h);
    });
    bool had = false;
    const auto waits = w.m.spawn([&] {
        const std::lock_guard held(lock);
        had = true;
    });
    w.settle();
    EXPECT_TRUE(waits);
    w.m.kill(*holds);
    w.settle();
    EXPECT_TRUE(had);
}

// -- values and errors --------------------------------------------------------------------------

TEST(task_manager, returns_values_of_fibers_and_coroutines) {
    managed_world w;
    const auto a = w.m.spawn_with_handle([] { return std::make_unique<int>(1); });
    const auto body = []() -> weft::task<std::string> {
        co_await weft::sleep_for(1s);
        co_return "two";
    };
    const auto b = w.m.spawn_with_handle(body());
    const auto c = w.m.spawn_with_handle([n = std::make_unique<int>(3)]() -> weft::task<int> {
        co_await weft::sleep_for(1s);
        co_return *n;  // what was captured is there
    });
    const auto d = w.m.spawn([]() -> weft::task<> { co_return; });
    bool checked = false;
    const auto joins = w.m.spawn([&] {
        EXPECT_EQ(*a->join<std::unique_ptr<int>>().value(), 1);
        EXPECT_EQ(b->join<std::string>().value(), "two");
        EXPECT_EQ(c->join<int>().value(), 3);
        checked = true;
    });
    ASSERT_TRUE(joins && d);
    w.l.run();
    EXPECT_TRUE(checked);
}

TEST(task_manager, dispatch_starts_a_task_at_once) {
    managed_world w;
    int turns = 0;
    const auto outer = w.m.spawn([&] {
        const auto fiber = w.m.spawn([&] { ++turns; }, {.launch = weft::launch::dispatch});
        EXPECT_EQ(turns, 1);
        const auto task = w.m.spawn(
            [&]() -> weft::task<> {
                ++turns;
                co_await weft::sleep_for(1s);
                ++turns;
            },
            {.launch = weft::launch::dispatch});
        EXPECT_EQ(turns, 2);
        EXPECT_FALSE(w.m.find(*fiber)) << "it is over";
        EXPECT_TRUE(w.m.find(*task));
    });
    ASSERT_TRUE(outer);
    w.l.run();
    EXPECT_EQ(turns, 3);
}

TEST(task_manager, keeps_user_data_with_the_task) {
    managed_world w;
    struct player {
        int number;
    };
    int seen = 0;
    const auto h =
        w.m.spawn_with_handle([&] { seen = weft::this_managed::private_data<player>()->number; },
                              {.private_data = player{7}});
    EXPECT_EQ(h->private_data<player>()->number, 7);
    EXPECT_EQ(h->private_data<int>(), nullptr);
    w.l.run();
    EXPECT_EQ(seen, 7);
    EXPECT_EQ(weft::this_managed::private_data<player>(), nullptr);
    EXPECT_EQ(weft::this_managed::id(), 0u);
    EXPECT_FALSE(weft::this_managed::exists());
}

TEST(task_manager, reports_an_error_that_was_not_joined) {
    static int reported;
    reported = 0;
    const auto before = weft::on_unhandled([](std::exception_ptr, weft::agent_info who) {
        ++reported;
        EXPECT_STREQ(who.name, "thrower");
    });
    {
        managed_world w;
        const auto a = w.m.spawn([] { throw std::runtime_error("x"); }, {.name = "thrower"});
        const auto b = w.m.spawn(
            []() -> weft::task<> {
                throw std::runtime_error("y");
                co_return;
            },
            {.name = "thrower"});
        ASSERT_TRUE(a && b);
        w.l.run();
        EXPECT_EQ(reported, 2);
        const auto joined = w.m.spawn_with_handle([] { throw std::runtime_error("z"); });
        w.l.run();
        EXPECT_EQ(joined->status(), managed_status::done);
        EXPECT_THROW(static_cast<void>(joined->join<void>()), std::runtime_error);
    }
    EXPECT_EQ(reported, 2);
    weft::on_unhandled(before);
}

// -- chains -------------------------------------------------------------------------------------

TEST(task_manager_then, starts_when_the_previous_task_is_done_in_any_way) {
    managed_world w;
    std::string order;
    const auto a = w.m.spawn([&] {
        weft::this_fiber::sleep_for(1s);
        order += 'a';
        return 1;
    });
    const auto b = w.m.then(*a, [&](const managed_handle<>& before) {
        order += 'b';
        return *before.join<int>() + 1;
    });
    const auto c = w.m.then(*b, [&]() -> weft::task<> {
        order += 'c';
        co_await weft::sleep_for(1s);
    });
    const auto d = w.m.then(*c, [&](const managed_handle<>& before) {
        order += before.status() == managed_status::killed ? 'k' : '?';
    });
    ASSERT_TRUE(d);
    EXPECT_EQ(w.m.find(*b).status(), managed_status::created);
    w.m.on_finish(*b, [&] { w.m.kill(*c); });  // before its first turn
    w.l.run();
    EXPECT_EQ(order, "abk");
    EXPECT_EQ(w.m.then(*a, [] {}).error(), manager_errc::no_such_task);
    EXPECT_EQ(w.m.live_count(), 0u);
}

TEST(task_manager_then, starts_at_once_after_a_done_task) {
    managed_world w;
    const auto before = w.m.spawn_with_handle([] { return 20; }).value();
    w.l.run();
    int got = 0, plain = 0;
    const auto next = w.m.then(before, [&](const managed_handle<>& h) { got = *h.join<int>() + 1; },
                               {.name = "next"});
    ASSERT_TRUE(next);
    EXPECT_EQ(w.m.find(*next).name(), "next");
    ASSERT_TRUE(w.m.then(before, [&] { ++plain; }));
    w.l.run();
    EXPECT_EQ(got, 21);
    EXPECT_EQ(plain, 1);
    EXPECT_EQ(w.m.then(managed_handle<>(), [] {}).error(), manager_errc::no_such_task);
    EXPECT_EQ(w.m.live_count(), 0u);
}

// Whichever allocation fails, nothing is left behind, and the next attempt succeeds.
TEST(task_manager_then, leaves_no_state_when_out_of_memory) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "a sanitizer has operators of its own";
    managed_world w;
    struct alive {
        int* count;
        explicit alive(int& c) : count(&c) { ++c; }
        alive(const alive& other) : count(other.count) { ++*count; }
        ~alive() { --*count; }
    };
    int made = 0;
    const std::string name(100, 'n');
    const auto before = w.m.spawn_with_handle([] { weft::this_managed::suspend<int>(); }).value();
    w.settle();
    const auto try_all = [&](auto attempt) {
        int failed = 0;
        for (bool done = false; !done;) {
            const std::size_t living = w.m.live_count();
            const int before_it = made;
            try {
                const weft::testing::allocation_fails no_memory(failed + 1);
                attempt(alive(made));
                done = true;
            } catch (const std::bad_alloc&) {
                ++failed;
                EXPECT_EQ(w.m.live_count(), living) << "the allocation " << failed;
                EXPECT_EQ(made, before_it) << "the allocation " << failed;
            }
        }
        return failed;
    };
    EXPECT_GT(try_all([&](alive a) {
                  static_cast<void>(w.m.spawn([a] {}, {.name = name, .timeout = 1s}));
              }),
              0);
    EXPECT_GT(
        try_all([&](alive a) {
            static_cast<void>(w.m.spawn([a]() -> weft::task<> { co_return; }, {.name = name}));
        }),
        0);
    EXPECT_GT(try_all([&](alive a) { static_cast<void>(w.m.on_finish(before, [a] {})); }), 0);
    EXPECT_GT(
        try_all([&](alive a) { static_cast<void>(w.m.then(before, [a] {}, {.name = name})); }), 0);
    EXPECT_GT(
        try_all([&](alive a) {
            static_cast<void>(w.m.then(before, [a](const managed_handle<>&) {}, {.name = name}));
        }),
        0);
    w.settle();
    w.m.resume(before.id(), 1);
    w.l.run();
    w.m.check();
    EXPECT_EQ(w.m.live_count(), 0u);
}

TEST(task_manager_then, chain_of_a_hundred_thousand_takes_no_stack) {
    managed_world w;
    constexpr int count = WEFT_DEBUG ? 5'000 : 100'000;
    int ran = 0;
    auto last = w.m.spawn([&] { ++ran; });
    const auto first = *last;
    for (int i = 1; i < count; ++i) last = w.m.then(*last, [&] { ++ran; });
    EXPECT_EQ(w.m.live_count(), static_cast<std::size_t>(count));
    w.l.run();
    EXPECT_EQ(ran, count);
    EXPECT_FALSE(w.m.find(first));
}

// -- limits and the end -------------------------------------------------------------------------

TEST(task_manager, refuses_spawns_beyond_its_limit) {
    weft::testing::virtual_loop l(1);
    task_manager<> m({.on = l.loop(), .max_live_count = 2});
    int made = 0;
    const auto body = [&made] { ++made; };
    EXPECT_TRUE(m.spawn(body));
    EXPECT_TRUE(m.spawn(body));
    const auto third = m.spawn(body);
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error(), manager_errc::too_many_tasks);
    weft::task<> t = [](int& n) -> weft::task<> {
        ++n;
        co_return;
    }(made);
    EXPECT_EQ(m.spawn(std::move(t)).error(), manager_errc::too_many_tasks);
    EXPECT_TRUE(t) << "it was not taken";
    EXPECT_EQ(m.stats().refused_count, 2u);
    l.run();
    EXPECT_EQ(made, 2);
    EXPECT_TRUE(m.spawn(std::move(t)));
    l.run();
    EXPECT_EQ(made, 3);
}

TEST(task_manager, visits_no_task_started_or_ended_during_the_visit) {
    managed_world w;
    std::set<std::uint64_t> wanted, seen;
    for (int i = 0; i < 500; ++i)
        wanted.insert(*w.m.spawn([] { weft::this_fiber::sleep_for(1s); }));
    bool first = true;
    w.m.for_each([&](const managed_handle<>& h) {
        EXPECT_TRUE(seen.insert(h.id()).second);
        if (!std::exchange(first, false)) return;
        // A task that starts now is not visited; a task that ends now is not visited either.
        EXPECT_TRUE(w.m.spawn([] {}));
        const std::uint64_t other = h.id() == *wanted.begin() ? *wanted.rbegin() : *wanted.begin();
        w.m.kill(other);
        w.settle();
        wanted.erase(other);
    });
    EXPECT_EQ(seen, wanted);
    w.l.run();
}

TEST(task_manager_stop_all, requests_stop_then_kills_then_is_empty) {
    managed_world w;
    int polite = 0, stubborn = 0;
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(w.m.spawn([&] {
            const weft::testing::counted c{polite};
            weft::this_fiber::sleep_for(1h);
        }));
    ASSERT_TRUE(w.m.spawn([&] {
        const weft::testing::counted c{stubborn};
        const weft::shield from_all;
        weft::this_fiber::sleep_for(1h);
    }));
    w.settle();
    const weft::time_point begun = w.l.now();
    w.m.stop_all(stop_reason::shutdown, 3s);
    EXPECT_EQ(w.m.spawn([] {}).error(), weft::errc::closed);
    w.settle();
    EXPECT_EQ(polite, 10);
    EXPECT_EQ(stubborn, 0);
    weft::fiber waits([&] { EXPECT_TRUE(w.m.wait_until_idle()); }, {.on = w.l});
    w.l.run();
    waits.join();
    EXPECT_EQ(stubborn, 1);
    EXPECT_GE(w.l.now() - begun, 3s);
    EXPECT_LE(w.l.now() - begun, 4s);
    w.m.restart();
    EXPECT_TRUE(w.m.spawn([] {}));
    w.l.run();
}

TEST(task_manager_stop_all, without_a_grace_period_kills_at_once) {
    managed_world w;
    int gone = 0;
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(w.m.spawn([&] {
            const weft::testing::counted c{gone};
            for (;;) weft::this_fiber::sleep_for(1s);
        }));
    w.settle();
    w.m.stop_all(stop_reason::user, 0s);
    w.settle();
    EXPECT_EQ(gone, 10);
    EXPECT_EQ(w.m.stats().killed_count, 10u);
}

TEST(task_manager_end, kills_live_tasks_while_its_loop_keeps_running) {
    int begun = 0, gone = 0;
    weft::testing::virtual_loop l(1);
    weft::fiber owner(
        [&] {
            task_manager<> m;
            for (int i = 0; i < 10; ++i)
                ASSERT_TRUE(m.spawn([&] {
                    ++begun;
                    const weft::testing::counted c{gone};
                    for (;;) weft::this_fiber::yield();
                }));
            while (begun < 5) weft::this_fiber::yield();
        },
        {.on = l});
    l.run();
    owner.join();
    EXPECT_EQ(gone, begun);
}

TEST(task_manager, wait_until_idle_ends_when_idle_or_at_a_deadline) {
    managed_world w;
    ASSERT_TRUE(w.m.spawn([] { weft::this_fiber::sleep_for(10s); }));
    std::error_code first;
    bool then = false;
    weft::fiber waits(
        [&] {
            first = w.m.wait_until_idle(weft::after(weft::now(), 1s)).error();
            then = w.m.wait_until_idle().has_value();
        },
        {.on = w.l});
    w.l.run();
    waits.join();
    EXPECT_EQ(first, std::errc::timed_out);
    EXPECT_TRUE(then);
    EXPECT_TRUE(w.m.wait_until_idle()) << "on a thread, at once";
}

TEST(task_manager, wait_until_idle_is_excluded_from_deadlock_reports) {
    managed_world w;
    const auto lazy = w.m.spawn([] {}, {.launch = weft::launch::deferred});
    EXPECT_TRUE(
        weft::testing::waits_for_outside([&] { static_cast<void>(w.m.wait_until_idle()); }));
    EXPECT_FALSE(w.m.kill(*lazy));
}

// -- time that the test advances ---------------------------------------------------------------

// A manager with a time that is the test's.
struct ticked {
    weft::testing::virtual_loop l{1};
    weft::time_point start{1000h};
    task_manager<> m{{.on = l.loop(), .start = start}};

    std::uint64_t sleeper(weft::duration timeout) {
        return *m.spawn([] { weft::this_fiber::sleep_for(100h); }, {.timeout = timeout});
    }
};

TEST(task_manager_tick, counts_from_the_given_start_before_the_first_tick) {
    ticked t;
    const auto id = t.sleeper(5s);
    EXPECT_EQ(t.m.deadline(id), t.start + 5s);
    EXPECT_EQ(t.m.next_deadline(), t.start + 5s);
    t.l.loop().run_until_idle();
    EXPECT_EQ(t.m.tick(t.start + 5s - 1ns), 0u) << "never early";
    EXPECT_EQ(t.m.tick(t.start + 5s), 1u) << "and not late";
    EXPECT_EQ(t.m.find(id).status(), managed_status::timed_out);
    t.l.loop().run_until_idle();
    EXPECT_FALSE(t.m.find(id));
}

TEST(task_manager_tick, carries_nanoseconds_and_rounds_up) {
    ticked t;
    const auto id = t.sleeper(999'999'999ns);
    EXPECT_FALSE(t.m.set_time_limit(id, 1'999'999'999ns));
    EXPECT_EQ(t.m.deadline(id), t.start + 2s);
    t.l.loop().run_until_idle();
    EXPECT_EQ(t.m.tick(t.start + 1'999'999'999ns), 0u);
    EXPECT_EQ(t.m.tick(t.start + 2s), 1u);
    t.l.loop().run_until_idle();
}

TEST(task_manager_tick, catches_up_a_day_in_order_and_within_its_budget) {
    ticked t;
    std::vector<int> order;
    constexpr int count = 1000;
    for (int i = 0; i < count; ++i) {
        const int nth = (i * 617) % count;  // any order
        const auto id = t.sleeper(std::chrono::seconds(80 * (nth + 1)));
        EXPECT_FALSE(t.m.on_finish(id, [&order, nth] { order.push_back(nth); }));
    }
    t.l.loop().run_until_idle();
    const weft::time_point later = t.start + 24h;
    EXPECT_EQ(t.m.tick(later, 10), 10u);
    t.l.loop().run_until_idle();
    EXPECT_EQ(order.size(), 10u);
    EXPECT_EQ(t.m.tick(later, 70), 70u) << "more than are ended at a time, and no more";
    EXPECT_EQ(t.m.tick(later), static_cast<std::size_t>(count) - 80);
    t.l.loop().run_until_idle();
    ASSERT_EQ(order.size(), static_cast<std::size_t>(count));
    std::vector<int> sorted(order.begin(), order.end());
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    EXPECT_EQ(sorted.size(), order.size()) << "each once";
    for (int i = 0; i < 10; ++i) EXPECT_LT(order[static_cast<std::size_t>(i)], 10);
    EXPECT_EQ(t.m.tick(later), 0u);
    EXPECT_EQ(t.m.next_deadline(), weft::never);
}

TEST(task_manager_tick, never_goes_back) {
    ticked t;
    t.m.tick(t.start + 10s);
    t.m.tick(t.start + 1s);
    EXPECT_EQ(t.m.now(), t.start + 10s);
    const auto id = t.sleeper(1s);
    EXPECT_EQ(t.m.deadline(id), t.start + 11s);
    t.m.kill(id);
    t.l.run();
}

TEST(task_manager_tick, accepts_any_duration) {
    ticked t;
    const auto id = t.sleeper(weft::duration::max());
    EXPECT_EQ(t.m.deadline(id), weft::never);
    t.l.loop().run_until_idle();
    for (const weft::duration d : {weft::duration(24h * 3650), weft::duration(50h), 41s + 0ns}) {
        EXPECT_FALSE(t.m.set_time_limit(id, d));
        EXPECT_GE(t.m.deadline(id), t.m.now() + d);
        EXPECT_LT(t.m.deadline(id), t.m.now() + d + 1ms);
        EXPECT_EQ(t.m.tick(t.m.now() + d - 1ns), 0u);
        t.m.set_time_limit(id, weft::never);
    }
    EXPECT_FALSE(t.m.set_time_limit(id, -1s));
    EXPECT_EQ(t.m.tick(t.m.now() + 1ms), 1u) << "it was due when it was set";
    EXPECT_EQ(t.m.tick(weft::never), 1u) << "and its grace is over at the end of time";
    t.l.run();
}

TEST(task_manager_tick, kills_a_late_task_that_does_not_end) {
    weft::testing::virtual_loop l(1);
    const weft::time_point start{1h};
    task_manager<> m({.on = l.loop(), .start = start, .grace = 2s});
    task_manager<> at_once({.on = l.loop(), .start = start, .grace = 0s});
    const auto stays = [] {
        const weft::shield from_all;
        weft::this_fiber::sleep_for(100h);
    };
    const auto a = m.spawn_with_handle(stays, {.timeout = 1s});
    const auto b = at_once.spawn_with_handle(stays, {.timeout = 1s});
    l.loop().run_until_idle();
    EXPECT_EQ(m.tick(start + 1s), 1u);
    EXPECT_EQ(at_once.tick(start + 1s), 1u);
    l.loop().run_until_idle();
    EXPECT_FALSE(a->over());
    EXPECT_TRUE(b->over());
    EXPECT_EQ(m.tick(start + 3s), 1u);
    l.loop().run_until_idle();
    EXPECT_TRUE(a->over());
    EXPECT_EQ(a->status(), managed_status::timed_out);
}

TEST(task_manager, keeps_no_timer_without_deadlines) {
    managed_world w;
    const weft::time_point begun = w.l.now();
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(w.m.spawn([] {}, {.timeout = 1h}));
    w.l.run();
    EXPECT_LT(w.l.now() - begun, 1s) << "the loop ends with the tasks";
    EXPECT_EQ(w.m.next_deadline(), weft::never);
}

// -- another's thread ---------------------------------------------------------------------------

TEST(task_manager, keeps_tasks_of_several_managers_apart) {
    weft::testing::virtual_loop l(1);
    task_manager<> a({.on = l.loop()}), b({.on = l.loop()});
    const auto in_a = a.spawn([] { weft::this_managed::suspend(); });
    const auto in_b = b.spawn([] { weft::this_managed::suspend(); });
    l.loop().run_until_idle();
    EXPECT_FALSE(a.resume(*in_a));
    l.loop().run_until_idle();
    EXPECT_EQ(a.live_count(), 0u);
    EXPECT_EQ(b.live_count(), 1u);
    b.kill(*in_b);
    l.run();
}

}  // namespace
