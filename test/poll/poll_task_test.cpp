#include "weft/poll/poll_task.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "test/support/outside.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/channel.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/event_source.hpp"
#include "weft/task/sync_wait.hpp"

using namespace std::chrono_literals;

namespace {

using weft::poll_task;

weft::task<std::string> text_in(weft::duration d) {
    co_await weft::sleep_for(d);
    co_return "text";
}

TEST(poll_task, passes_the_value_of_a_fiber_to_a_task) {
    weft::testing::virtual_loop l(1);
    auto stackful = weft::spawn(
        [] {
            weft::this_fiber::sleep_for(1s);
            return std::make_unique<int>(42);
        },
        {.on = l});
    const auto awaits = [&]() -> weft::task<int> {
        poll_task value(stackful.async_get());
        co_return *co_await value;
    };
    weft::detail::task_run<int> t(awaits(), l.loop());
    t->post_first_turn();
    l.run();
    EXPECT_EQ(t.take(), 42);
}

TEST(poll_task, passes_the_value_of_a_task_to_a_fiber) {
    weft::testing::virtual_loop l(1);
    auto stackful = weft::spawn([] { return weft::await(poll_task(text_in(1s))); }, {.on = l});
    l.run();
    EXPECT_EQ(stackful.get(), "text");
}

TEST(poll_task, can_be_polled_directly_while_a_loop_runs_its_operation) {
    weft::testing::virtual_loop l(1);
    std::string got;
    int polls = 0;
    weft::fiber f(
        [&] {
            poll_task value(text_in(5s));
            for (; !value.poll(); ++polls) weft::this_fiber::sleep_for(1s);
            got = value.take();
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_EQ(got, "text");
    EXPECT_GE(polls, 5);
    EXPECT_LE(polls, 6);
}

TEST(poll_task, stores_an_lvalue_operation_by_reference) {
    weft::event_source<int> e;
    auto next = e.next();
    poll_task value(next);
    const auto body = [&]() -> weft::task<int> {
        EXPECT_FALSE(value.poll());
        EXPECT_EQ(e.set(7), 1u);
        co_return co_await value;
    };
    EXPECT_EQ(weft::sync_wait(body()), 7);
}

// An awaiter that is not weft's, which gives a reference.
struct gives_reference {
    int& n;
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    int& await_resume() const noexcept { return n; }
};

TEST(poll_task, awaits_foreign_awaitables) {
    int n = 3;
    poll_task value(gives_reference{n});
    EXPECT_TRUE(value.poll());
    EXPECT_EQ(&value.take(), &n);
    poll_task nothing(std::suspend_never{});
    EXPECT_TRUE(nothing.poll());
    nothing.take();
}

TEST(poll_task, rethrows_the_exception_of_its_operation) {
    const auto throws = []() -> weft::task<int> {
        throw std::runtime_error("thrown");
        co_return 1;
    };
    poll_task value(throws());
    EXPECT_TRUE(value.poll());
    try {
        static_cast<void>(value.take());
        ADD_FAILURE() << "it threw nothing";
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "thrown");
    }
}

TEST(poll_task, releases_the_memory_of_its_operation) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    const auto used = weft::detail::block_cache::stats().used_bytes;
    {
        poll_task value(std::suspend_never{});
        EXPECT_TRUE(value.poll());
        EXPECT_GT(weft::detail::block_cache::stats().used_bytes, used);
    }
    EXPECT_EQ(weft::detail::block_cache::stats().used_bytes, used);
}

TEST(poll_task, destroyed_cancels_its_operation) {
    weft::testing::virtual_loop l(1);
    weft::channel<int> c;
    weft::fiber f(
        [&] {
            poll_task value(c.async_recv());
            EXPECT_FALSE(value.poll());
            EXPECT_FALSE(value.poll()) << "once is enough";
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_FALSE(c.try_send(1)) << "nobody receives";
}

TEST(poll_task, ends_with_the_frame_of_a_stopped_awaiter) {
    weft::testing::virtual_loop l(1);
    weft::channel<int> c;
    std::error_code why;
    weft::fiber reports([&] { why = weft::await(poll_task(c.async_recv())).error(); }, {.on = l});
    weft::fiber thrown([&] { weft::await(poll_task(text_in(1h))); }, {.on = l});
    l.loop().run_until_idle();
    reports.request_stop();
    thrown.request_stop();
    l.run();
    EXPECT_EQ(why, std::errc::operation_canceled);
    EXPECT_FALSE(reports.join().is_stopped());
    EXPECT_TRUE(thrown.join().is_stopped());
    EXPECT_FALSE(c.try_send(1));
}

TEST(poll_task, can_complete_on_a_thread_other_than_its_awaiters) {
    weft::loop here, there;
    auto stackful = weft::spawn([] { return 5; }, {.on = there});
    int got = 0;
    weft::fiber waits([&] { got = weft::await(poll_task(stackful.async_get())); }, {.on = here});
    std::thread other([&] { there.run(); });
    here.run();
    other.join();
    waits.join();
    EXPECT_EQ(got, 5);
}

TEST(poll_task, is_excluded_from_deadlock_reports_if_its_operation_is) {
    weft::channel<int> c;
    EXPECT_FALSE(weft::testing::waits_for_outside(
        [&] { static_cast<void>(weft::await(poll_task(c.async_recv()))); }));
    weft::poll_future<int> from_anywhere;
    EXPECT_TRUE(weft::testing::waits_for_outside([&] { weft::await(poll_task(from_anywhere)); }));
}

TEST(poll_task_death, awaiting_what_never_completes_is_a_deadlock) {
    EXPECT_DEATH(
        {
            weft::testing::virtual_loop l(1);
            weft::channel<int> c;
            weft::fiber f([&] { static_cast<void>(weft::await(poll_task(c.async_recv()))); },
                          {.on = l});
            l.run();
        },
        "deadlock in a virtual loop");
}

TEST(poll_task_death, polled_after_its_value_was_taken) {
    EXPECT_DEATH(
        {
            poll_task value(std::suspend_never{});
            value.poll();
            value.take();
            value.poll();
        },
        "a poll_task has given its value away");
}

// A poll that runs what it awaits neither throws nor is unwound.
TEST(poll_task_death, refuses_a_kill_during_its_first_poll) {
    struct stops_here {
        bool await_ready() const {
            weft::this_coroutine::yield();
            return true;
        }
        void await_suspend(std::coroutine_handle<>) const {}
        void await_resume() const {}
    };
    weft::coroutine<void()> c([] {
        poll_task value(stops_here{});
        EXPECT_TRUE(value.poll());
    });
    c.resume();
    EXPECT_DEATH(c.kill(), "a noexcept function is in the way");
    c.resume();
}

}  // namespace
