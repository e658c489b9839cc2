#include "weft/sync/detail/scoped_lock_operation.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <type_traits>
#include <utility>

#include "test/support/agents.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/recursive_mutex.hpp"
#include "weft/sync/shared_mutex.hpp"
#include "weft/task/with_timeout.hpp"
#include "weft/wait/shield.hpp"

using namespace std::chrono_literals;

namespace {

template <class M>
using scoped_of = weft::await_result_t<decltype(std::declval<M&>().async_scoped_lock())>;
static_assert(std::is_same_v<scoped_of<weft::mutex>, std::unique_lock<weft::mutex>>);
static_assert(
    std::is_same_v<scoped_of<weft::recursive_mutex>, std::unique_lock<weft::recursive_mutex>>);
static_assert(std::is_same_v<scoped_of<weft::shared_mutex>, std::unique_lock<weft::shared_mutex>>);
static_assert(std::is_same_v<weft::await_result_t<decltype(std::declval<weft::shared_mutex&>()
                                                               .async_scoped_lock_shared())>,
                             std::shared_lock<weft::shared_mutex>>);

class async_scoped_lock_among : public weft::testing::among {};

TEST_P(async_scoped_lock_among, owns_the_mutex_until_the_end_of_its_scope) {
    weft::mutex m;
    int count = 0;
    run_many(4, [&](auto wait) -> weft::task<> {
        for (int i = 0; i < 100; ++i) {
            const std::unique_lock held = co_await wait(m.async_scoped_lock());
            EXPECT_TRUE(held.owns_lock() && held.mutex() == &m);
            const int before = count;
            if (i % 16 == 0) co_await wait(weft::sleep_for(0s));
            count = before + 1;
        }
    });
    EXPECT_EQ(count, 400);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST_P(async_scoped_lock_among, of_a_shared_mutex_writes_or_reads) {
    weft::shared_mutex m;
    int a = 0, b = 0;
    run_many(4, [&](auto wait) -> weft::task<> {
        for (int i = 0; i < 60; ++i) {
            if (i % 3 == 0) {
                const auto writes = co_await wait(m.async_scoped_lock());
                EXPECT_FALSE(m.is_shared());
                ++a;
                if (i % 10 == 0) co_await wait(weft::sleep_for(0s));
                ++b;
            } else {
                const auto reads = co_await wait(m.async_scoped_lock_shared());
                EXPECT_TRUE(m.is_shared());
                EXPECT_EQ(a, b);
                if (i % 10 == 0) co_await wait(weft::sleep_for(0s));
                EXPECT_EQ(a, b);
            }
        }
    });
    EXPECT_EQ(a, 80);
    EXPECT_TRUE(m.try_lock()) << "all readers have left";
    m.unlock();
}

WEFT_INSTANTIATE_AMONG(async_scoped_lock_among);

class async_scoped_lock_of_flows : public weft::testing::among {};

TEST_P(async_scoped_lock_of_flows, of_a_recursive_mutex_counts_its_depth) {
    weft::recursive_mutex m;
    int inside = 0;
    run_many(4, [&](auto wait) -> weft::task<> {
        for (int i = 0; i < 50; ++i) {
            const auto outer = co_await wait(m.async_scoped_lock());
            EXPECT_EQ(inside++, 0);
            {
                const auto inner = co_await wait(m.async_scoped_lock());
                if (i % 8 == 0) co_await wait(weft::sleep_for(0s));
            }
            EXPECT_TRUE(m.is_owned_by_caller());
            EXPECT_EQ(--inside, 0);
        }
    });
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

WEFT_INSTANTIATE_AMONG_KINDS(async_scoped_lock_of_flows, weft::testing::kind::fiber,
                             weft::testing::kind::task, weft::testing::kind::thread);

TEST(async_scoped_lock, is_the_lock_that_a_condition_waits_with) {
    weft::testing::virtual_loop l;
    weft::mutex m;
    weft::condition_variable changed;
    bool ready = false, seen = false;
    const auto body = [&]() -> weft::task<> {
        std::unique_lock lock = co_await m.async_scoped_lock();
        while (!ready) co_await changed.async_wait(lock);
        seen = true;
    };
    weft::detail::task_run<void> t(body(), l.loop());
    t->post_first_turn();
    weft::fiber sets(
        [&] {
            weft::this_fiber::sleep_for(1ms);
            const std::lock_guard held(m);
            ready = true;
            changed.notify_one();
        },
        {.on = l});
    l.run();
    sets.join();
    EXPECT_TRUE(seen);
}

TEST(async_scoped_lock, throws_a_stop_and_leaves_no_waiter_behind) {
    weft::testing::virtual_loop l;
    weft::mutex m;
    weft::shared_mutex s;
    ASSERT_TRUE(m.try_lock() && s.try_lock());
    int began = 0, came_back = 0;
    const auto waits_for = [&](auto make) {
        return weft::fiber(
            [&, make] {
                ++began;
                const auto held = weft::await(make());
                ++came_back;
            },
            {.on = l});
    };
    weft::fiber all[] = {waits_for([&] { return m.async_scoped_lock(); }),
                         waits_for([&] { return s.async_scoped_lock(); }),
                         waits_for([&] { return s.async_scoped_lock_shared(); })};
    weft::fiber stops(
        [&] {
            weft::this_fiber::sleep_for(1ms);
            for (auto& f : all) f.request_stop();
        },
        {.on = l});
    l.run();
    for (auto& f : all) EXPECT_TRUE(f.join().is_stopped());
    stops.join();
    EXPECT_EQ(began, 3);
    EXPECT_EQ(came_back, 0);
    m.unlock();
    s.unlock();
    EXPECT_TRUE(m.try_lock() && s.try_lock());
    m.unlock();
    s.unlock();
}

TEST(async_scoped_lock, is_awaited_with_a_deadline) {
    weft::testing::virtual_loop l;
    weft::mutex m;
    bool ended = false;
    const auto body = [&]() -> weft::task<> {
        {
            auto held = co_await weft::with_timeout(m.async_scoped_lock(), 1ms);
            EXPECT_TRUE(held.has_value() && held->owns_lock() && m.is_owned_by_caller());
        }
        weft::fiber other(
            [&] {
                const std::lock_guard held(m);
                weft::this_fiber::sleep_for(5ms);
            },
            {.on = l});
        co_await weft::sleep_for(1ms);
        auto late = co_await weft::with_timeout(m.async_scoped_lock(), 1ms);
        EXPECT_EQ(late.error(), std::errc::timed_out);
        EXPECT_FALSE(m.is_owned_by_caller());
        co_await other.async_join();
        ended = true;
    };
    weft::detail::task_run<void> t(body(), l.loop());
    t->post_first_turn();
    l.run();
    EXPECT_TRUE(ended);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

// The lock was passed to a waiter that never runs again.
TEST(async_scoped_lock, is_released_when_its_new_owners_frame_is_destroyed) {
    weft::loop l;
    weft::mutex m;
    const auto body = [&]() -> weft::task<> { const auto held = co_await m.async_scoped_lock(); };
    auto t = std::make_unique<weft::task<>>(body());
    l.post([&] {
        ASSERT_TRUE(m.try_lock());
        t->start();
        m.unlock();
        EXPECT_FALSE(m.try_lock()) << "passed on";
        t.reset();
    });
    l.run_until_idle();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(async_scoped_lock, is_released_when_its_owner_is_killed) {
    weft::mutex m;
    weft::shared_mutex s;
    {
        weft::loop l;
        weft::fiber(
            [&] {
                const auto held = weft::await(m.async_scoped_lock());
                const auto reads = weft::await(s.async_scoped_lock_shared());
                const weft::shield from_stops;
                weft::this_fiber::sleep_for(1h);
            },
            {.on = l})
            .detach();
        l.run_until_idle();
        EXPECT_FALSE(m.try_lock());
    }  // ends it
    EXPECT_TRUE(m.try_lock() && s.try_lock());
    m.unlock();
    s.unlock();
}

TEST(async_scoped_lock, is_released_by_an_exception) {
    weft::testing::virtual_loop l;
    weft::mutex m;
    const auto body = [&]() -> weft::task<> {
        const auto held = co_await m.async_scoped_lock();
        throw 3;
    };
    weft::detail::task_run<void> t(body(), l.loop());
    t->post_first_turn();
    l.run();
    EXPECT_THROW(t.take(), int);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(async_scoped_lock_death, second_lock_by_its_owner_names_the_callers_line) {
    EXPECT_DEATH(
        {
            weft::mutex m;
            const auto held = weft::await(m.async_scoped_lock());
            const auto again = weft::await(m.async_scoped_lock());
        },
        "lock of a mutex, which is held by thread [0-9]+: thread [0-9]+ "
        "\\(.*scoped_lock_operation_test\\.cpp:");
}

}  // namespace
