// Poll futures as they are awaited: by a fiber, a task, a thread, to the end and not to the end.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "test/poll/source.hpp"
#include "test/support/agents.hpp"
#include "test/support/on_stack.hpp"
#include "test/support/outside.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/with_timeout.hpp"

using namespace std::chrono_literals;

namespace {

using weft::poll_context;
using weft::poll_future;

struct ready_at_once {
    weft::poll<std::unique_ptr<int>> operator()(poll_future<std::unique_ptr<int>>&,
                                                poll_context<ready_at_once>&) {
        return std::make_unique<int>(1);
    }
};
struct throws_when_woken {
    bool woken = false;
    void operator()(poll_future<int>&, poll_context<throws_when_woken>&) {
        if (std::exchange(woken, true)) throw std::runtime_error("no news");
    }
};
struct never_says {
    void operator()(poll_future<weft::result<int>>&, poll_context<never_says>&) {}
};

class poll_future_among : public weft::testing::among {};

// Each sets what the other awaits: a fiber, a task, a thread, on one loop and on two.
TEST_P(poll_future_among, passes_values_back_and_forth_between_two_agents) {
    poll_future<int> there;
    poll_future<std::unique_ptr<int>> back;
    run(
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < 100; ++i) {
                there.set(i);
                const std::unique_ptr<int> answer = co_await wait(back);
                EXPECT_EQ(*answer, i + 1);
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < 100; ++i) back.set(std::make_unique<int>(co_await wait(there) + 1));
        });
}

TEST_P(poll_future_among, can_be_awaited_as_a_temporary) {
    source<int> requests, replies;
    run(
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < 20; ++i) {
                while (!requests.tell(i)) co_await wait(weft::sleep_for(0s));
                EXPECT_EQ(co_await wait(source<int>::future(replies)), i * 2);
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < 20; ++i) {
                const int n = co_await wait(source<int>::future(requests));
                while (!replies.tell(n * 2)) co_await wait(weft::sleep_for(0s));
            }
        });
    EXPECT_EQ(requests.interested() + replies.interested(), 0u);
}

WEFT_INSTANTIATE_AMONG(poll_future_among);

TEST(awaited_poll_future, ready_at_the_first_poll_needs_no_waiter) {
    const auto body = []() -> weft::task<int> {
        int sum = 0;
        for (int i = 0; i < 1000; ++i)
            sum += *co_await poll_future<std::unique_ptr<int>, ready_at_once>();
        co_return sum;
    };
    weft::task<int> t = body();
    t.start();  // no executor anywhere
    ASSERT_TRUE(t.done());
    EXPECT_EQ(t.get(), 1000);
}

TEST(awaited_poll_future, polled_directly_can_be_awaited_later) {
    weft::testing::virtual_loop l(1);
    source<int> s;
    poll_future<int> f;
    source<int>::context c(s);
    EXPECT_FALSE(f.poll(c));
    int got = 0;
    weft::fiber waits([&] { got = weft::await(f) + weft::await(f); }, {.on = l});
    l.loop().run_until_idle();
    EXPECT_EQ(c.data().looks, 1) << "it is asked already";
    EXPECT_TRUE(s.tell(3));
    l.loop().run_until_idle();
    EXPECT_EQ(s.interested(), 1u) << "the second await has asked anew";
    EXPECT_TRUE(s.tell(4));
    l.run();
    EXPECT_EQ(got, 7);
}

TEST(awaited_poll_future, wakes_its_awaiter_when_its_context_ends) {
    weft::testing::virtual_loop l(1);
    source<int> s;
    poll_future<int> f;
    auto c = std::make_unique<source<int>::context>(s);
    f.poll(*c);
    bool notified = false;
    weft::fiber waits(
        [&] {
            try {
                weft::await(f);
            } catch (const std::system_error& e) {
                notified = e.code() == weft::errc::broken_promise;
            }
        },
        {.on = l});
    l.loop().run_until_idle();
    c.reset();
    l.run();
    EXPECT_TRUE(notified);
}

TEST(awaited_poll_future, rethrows_the_operators_exception_to_its_awaiter) {
    const auto body = []() -> weft::task<int> {
        poll_future<int, throws_when_woken> f;
        f.poll();
        f.context().wake();
        co_return co_await f;
    };
    EXPECT_THROW(weft::sync_wait(body()), std::runtime_error);
}

TEST(awaited_poll_future, keeps_its_state_when_its_awaiter_is_stopped) {
    weft::testing::virtual_loop l(1);
    source<int> s;
    source<int>::future f(s);
    weft::fiber waits([&] { weft::await(f); }, {.on = l});
    l.loop().run_until_idle();
    waits.request_stop();
    l.loop().run_until_idle();
    EXPECT_TRUE(waits.join().is_stopped());
    EXPECT_EQ(s.interested(), 1u);
    EXPECT_TRUE(s.tell(5));
    EXPECT_EQ(f.take(), 5);
}

TEST(awaited_poll_future, as_a_temporary_ends_with_a_cancelled_wait) {
    weft::testing::virtual_loop l(1);
    source<int> s;
    const auto asks = [](source<int>& from) -> weft::task<int> {
        co_return co_await source<int>::future(from);
    };
    bool in_time = true;
    weft::fiber waits([&] { in_time = weft::await(weft::with_timeout(asks(s), 1s)).has_value(); },
                      {.on = l});
    weft::fiber throws([&] { weft::await(source<int>::future(s)); }, {.on = l});
    l.loop().run_until_idle();
    throws.request_stop();
    l.run();
    EXPECT_TRUE(throws.join().is_stopped());
    EXPECT_FALSE(in_time);
    EXPECT_EQ(s.interested(), 0u);
}

TEST(awaited_poll_future, named_can_be_awaited_again_after_a_timeout) {
    weft::testing::virtual_loop l(1);
    source<int> s;
    const auto asks = [&]() -> weft::task<int> {
        source<int>::future f(s);
        const auto early = co_await weft::with_timeout(f, 1s);
        EXPECT_EQ(early.error(), std::errc::timed_out);
        EXPECT_EQ(s.interested(), 1u) << "it is asked still";
        EXPECT_TRUE(s.tell(6));
        co_return co_await f;
    };
    int got = 0;
    weft::fiber waits([&] { got = weft::await(asks()); }, {.on = l});
    l.run();
    EXPECT_EQ(got, 6);
}

TEST(awaited_poll_future, leaves_its_source_when_its_loop_ends) {
    source<int> s;
    {
        weft::loop l;
        weft::fiber waits([&] { weft::await(source<int>::future(s)); }, {.on = l});
        waits.detach();
        l.run_until_idle();
        EXPECT_EQ(s.interested(), 1u);
    }
    EXPECT_EQ(s.interested(), 0u);
}

TEST(awaited_poll_future, reports_a_stop_in_a_result) {
    weft::testing::virtual_loop l(1);
    std::error_code why;
    weft::fiber waits(
        [&] { why = weft::await(poll_future<weft::result<int>, never_says>()).error(); },
        {.on = l});
    l.loop().run_until_idle();
    waits.request_stop();
    l.run();
    EXPECT_FALSE(waits.join().is_stopped()) << "it was notified, and did not throw";
    EXPECT_EQ(why, std::errc::operation_canceled);
}

TEST(awaited_poll_future, leaves_its_source_when_the_awaiting_frame_is_destroyed) {
    source<int> s;
    const auto asks = [](source<int>& from) -> weft::task<int> {
        co_return co_await source<int>::future(from);
    };
    {
        weft::task<int> t = asks(s);
        t.start();
        EXPECT_EQ(s.interested(), 1u);
    }
    EXPECT_EQ(s.interested(), 0u);
    EXPECT_FALSE(s.tell(1));
}

// A thousand waits, each ended by a stop or by a value from another thread, whichever is first.
TEST(awaited_poll_future, is_either_completed_or_stopped) {
    source<int> s;
    weft::loop l;
    std::atomic<bool> over{false};
    int notified = 0, stopped = 0;
    std::thread teller([&] {
        for (int n = 0; !over; ++n)
            if (!s.tell(n)) std::this_thread::yield();
    });
    weft::fiber all(
        [&] {
            for (int i = 0; i < 1000; ++i) {
                weft::fiber one([&] {
                    weft::await(source<int>::future(s));
                    ++notified;
                });
                weft::this_fiber::yield();
                one.request_stop();
                if (one.join().is_stopped()) ++stopped;
            }
        },
        {.on = l});
    l.run();
    all.join();
    over = true;
    teller.join();
    EXPECT_EQ(notified + stopped, 1000);
    EXPECT_EQ(s.interested(), 0u);
}

TEST(awaited_poll_future, is_excluded_from_deadlock_reports) {
    poll_future<int> f;
    EXPECT_TRUE(weft::testing::waits_for_outside([&] { weft::await(f); }));
}

TEST(awaited_poll_future, on_the_heap_can_be_awaited_from_a_shared_stack) {
    weft::testing::virtual_loop l(1);
    weft::shared_stack_group group;
    source<int> s;
    int got = 0;
    weft::fiber waits(
        [&] {
            const auto f = std::make_unique<source<int>::future>(s);
            got = weft::await(*f);
        },
        {.on = l, .shared = &group});
    l.loop().run_until_idle();
    EXPECT_TRUE(s.tell(3));
    l.run();
    EXPECT_EQ(got, 3);
}

template <class Body>
void run_on_a_shared_stack(Body body) {
    weft::testing::virtual_loop l(1);
    weft::shared_stack_group group;
    weft::fiber on_it(body, {.on = l, .shared = &group});
    l.run();
}

TEST(awaited_poll_future_death, on_a_shared_stack_aborts) {
    if (!weft::testing::locals_lie_on_the_stack) GTEST_SKIP() << "locals are kept elsewhere";
    source<int> s;
    EXPECT_DEATH(run_on_a_shared_stack([&] { weft::await(source<int>::future(s)); }),
                 "an operation that cannot be moved is awaited on a shared stack: fiber");
    EXPECT_DEATH(run_on_a_shared_stack([&] { source<int>::future(s).poll(); }),
                 "a poll_future that is polled lies on a shared stack: fiber");
    const auto elsewhere = std::make_unique<poll_future<int>>();
    EXPECT_DEATH(run_on_a_shared_stack([&] {
                     source<int>::context c(s);
                     elsewhere->poll(c);
                 }),
                 "a context that is polled lies on a shared stack: fiber");
}

}  // namespace
