#include "weft/wait/detail/thread_executor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/waits_while_unwinding.hpp"
#include "test/wait/names.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/when_all.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {
namespace {

using namespace testing::names;

TEST(thread_executor, is_one_for_each_thread) {
    detail::thread_executor& mine = detail::this_thread_host();
    EXPECT_EQ(&mine, &detail::this_thread_host());
    EXPECT_TRUE(mine.running_in_this_thread());
    EXPECT_STREQ(mine.own_flow().info().kind, "thread");
    std::thread other([&] {
        EXPECT_NE(&mine, &detail::this_thread_host());
        EXPECT_FALSE(mine.running_in_this_thread());
        EXPECT_EQ(current_flow(), nullptr);
    });
    other.join();
}

TEST(thread_executor, runs_earlier_posts_once_its_thread_waits) {
    struct noting_frame : detail::frame {
        int ran = 0;
        runnable node;
        noting_frame() : frame{[](frame* f) { ++static_cast<noting_frame*>(f)->ran; }, nullptr} {
            node.handle = handle();
        }
    } n;
    detail::this_thread_host().post(n.node);
    EXPECT_EQ(n.ran, 0);
    sync_wait(sleep_for(0ns));
    EXPECT_EQ(n.ran, 1);
}

TEST(thread_executor, a_timed_wait_ends_at_its_deadline_and_never_earlier) {
    gate g;
    for (duration d : {duration(-1s), duration(0ns), duration(1ns), duration(2ms)}) {
        const time_point end = steady_now() + d;
        EXPECT_EQ(sync_wait(g.async_pass_until(end)), wait_status::timed_out);
        EXPECT_GE(steady_now(), end);
        EXPECT_FALSE(g.anybody_waits());
    }
}

TEST(thread_executor, an_event_ends_a_wait_with_a_distant_or_no_deadline) {
    for (time_point end : {never, never - 1ns, never - 24h}) {
        gate g;
        std::thread other([&] {
            while (!g.let_one_pass()) std::this_thread::yield();
        });
        EXPECT_EQ(sync_wait(g.async_pass_until(end)), wait_status::woken);
        other.join();
    }
}

// What is posted keeps it busy: each runs and posts itself again.
TEST(thread_executor, a_deadline_fires_while_work_is_always_ready) {
    struct restless : detail::frame {
        runnable node;
        int left = 10'000'000;
        restless()
            : frame{[](frame* f) {
                        auto* self = static_cast<restless*>(f);
                        if (--self->left > 0) detail::this_thread_host().post(self->node);
                    },
                    nullptr} {
            node.handle = handle();
        }
    } r;
    gate g;
    detail::this_thread_host().post(r.node);
    EXPECT_EQ(sync_wait(g.async_pass_until(steady_now() + 1ms)), wait_status::timed_out);
    EXPECT_GT(r.left, 0);
    detail::this_thread_host().cancel_post(r.node);
}

// The event and the deadline at about the same time, checked against what the waker saw.
TEST(thread_executor, a_wake_and_a_deadline_agree_in_every_race) {
    const int races = slow ? 1'000 : 5'000;
    gate g;
    std::atomic<bool> over{false};
    int let_through = 0;
    std::thread other([&] {
        while (!over) {
            let_through += g.let_one_pass();
            std::this_thread::yield();
        }
    });
    int woken = 0;
    for (int i = 0; i < races; ++i) {
        const time_point end = steady_now() + i % 50 * 1us;
        if (sync_wait(g.async_pass_until(end)) == wait_status::woken)
            ++woken;
        else
            EXPECT_GE(steady_now(), end);
    }
    over = true;
    other.join();
    EXPECT_EQ(woken, let_through);
}

TEST(thread_executor, a_stop_from_another_thread_ends_a_wait) {
    gate g;
    std::atomic<flow*> waits{nullptr};
    stop_reason seen = stop_reason::none;
    std::thread stopped_one([&] {
        waits = &detail::this_thread_host().own_flow();
        try {
            sync_wait(g.async_pass());
        } catch (const stopped& s) {
            seen = s.reason;
        }
    });
    while (waits == nullptr || !g.anybody_waits()) std::this_thread::yield();
    waits.load()->request_stop(stop_reason::shutdown);
    stopped_one.join();
    EXPECT_EQ(seen, stop_reason::shutdown);
    EXPECT_FALSE(g.anybody_waits());
}

TEST(thread_executor, runs_nothing_among_the_exceptions_of_its_thread) {
    EXPECT_EQ(testing::exceptions_seen_while_unwinding(), 0);
    try {
        throw 7;
    } catch (int) {
        sync_wait(sleep_for(1ms));
        EXPECT_THROW(throw, int);
    }
}

TEST(thread_executor, wakes_alternate_between_threads) {
    const int rounds = slow ? 2'000 : 10'000;
    gate there;
    gate back;
    std::thread other([&] {
        for (int i = 0; i < rounds; ++i) {
            sync_wait(there.async_pass());
            while (!back.let_one_pass()) std::this_thread::yield();
        }
    });
    for (int i = 0; i < rounds; ++i) {
        while (!there.let_one_pass()) std::this_thread::yield();
        sync_wait(back.async_pass());
    }
    other.join();
    EXPECT_FALSE(there.anybody_waits() || back.anybody_waits());
}

TEST(thread_executor_death, a_yield_in_work_run_by_a_waiting_thread) {
    EXPECT_DEATH(detail::this_thread_host().defer(std::noop_coroutine(), nullptr),
                 "weft: a yield in what a waiting thread runs");
}

task<> sleeps(duration d) { co_await sleep_for(d); }

// Each wake checks all sleepers, or the next sleeper alone.
TEST(thread_executor, wakes_many_sleepers_in_time) {
    const int count = slow ? 20'000 : 100'000;
    std::vector<task<>> all;
    for (int i = 0; i < count; ++i) all.push_back(sleeps(i * 7919 % 100 * 1ms));
    const time_point begun = steady_now();
    sync_wait(when_all(std::move(all)));
    EXPECT_LE(steady_now() - begun, 30s);
}

TEST(thread_executor_death, a_thread_that_ends_before_work_started_on_it) {
    const auto body = []() -> testing::plain_coroutine { co_await sleep_for(1h); };
    EXPECT_DEATH(
        {
            testing::plain_coroutine c = body();
            std::thread([&] { c.handle().resume(); }).join();
        },
        "weft: a thread ends while what was begun on it still waits: thread [0-9]+");
    const auto posts = [] {
        runnable node;
        std::thread([&] { detail::this_thread_host().post(node); }).join();
    };
    EXPECT_DEATH(posts(), "weft: a thread ends while what was begun on it still waits");
}

}  // namespace
}  // namespace weft
