#include "weft/sync/manual_reset_event.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <memory>
#include <vector>

#include "test/support/agents.hpp"
#include "weft/sched/virtual_loop.hpp"

using namespace std::chrono_literals;

namespace {

class manual_reset_event_among : public weft::testing::among {};

TEST_P(manual_reset_event_among, set_lets_a_waiter_through) {
    weft::manual_reset_event ready;
    int value = 0;
    int seen = 0;
    run(
        [&](auto wait) -> weft::task<> {
            co_await wait(ready.async_wait());
            seen = value;
        },
        [&](auto wait) -> weft::task<> {
            co_await wait(weft::sleep_for(1ms));
            value = 7;
            ready.set();
        });
    EXPECT_EQ(seen, 7);
}

TEST_P(manual_reset_event_among, two_agents_alternate) {
    weft::manual_reset_event there, back;
    constexpr int rounds = 300;
    int at = 0;
    run(
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < rounds; ++i) {
                EXPECT_EQ(at++, 2 * i);
                there.set();
                co_await wait(back.async_wait());
                back.reset();
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < rounds; ++i) {
                co_await wait(there.async_wait());
                there.reset();
                EXPECT_EQ(at++, 2 * i + 1);
                back.set();
            }
        });
    EXPECT_EQ(at, 2 * rounds);
}

TEST_P(manual_reset_event_among, a_deadline_ends_a_wait) {
    weft::manual_reset_event never_set;
    run(
        [&](auto wait) -> weft::task<> {
            const auto until = weft::after(weft::now(), 2ms);
            EXPECT_FALSE(co_await wait(never_set.async_wait(until)));
            EXPECT_GE(weft::now(), until);
        },
        [&](auto wait) -> weft::task<> {
            EXPECT_FALSE(co_await wait(never_set.async_wait(weft::now())));
        });
}

WEFT_INSTANTIATE_AMONG(manual_reset_event_among);

TEST(manual_reset_event, lets_all_pass_until_reset) {
    weft::manual_reset_event e(true);
    e.wait();
    e.wait();
    EXPECT_TRUE(e.wait(0s));
    e.reset();
    EXPECT_FALSE(e.is_set());
    EXPECT_FALSE(e.wait(0s));
}

TEST(manual_reset_event, releases_woken_waiters_despite_an_immediate_reset) {
    weft::loop l;
    weft::manual_reset_event e;
    int through = 0;
    weft::fiber f([&] { e.wait(), ++through; }, {.on = l});
    l.run_until_idle();
    e.set();
    e.reset();
    l.run();
    EXPECT_EQ(through, 1);
    f.join();
}

// A coroutine whose frame is destroyed at its end.
struct passer {
    struct promise_type {
        passer get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};
passer pass(weft::manual_reset_event& e, std::size_t& through) {
    co_await e.async_wait();
    ++through;
}

// A million waiters are woken on a stack of 256 KiB: one after the other, none in set().
TEST(manual_reset_event, wakes_a_million_without_recursion) {
    const std::size_t count = WEFT_TEST_ASAN || WEFT_TEST_TSAN ? 100'000 : 1'000'000;
    weft::loop l;
    weft::manual_reset_event e;
    std::size_t through = 0;
    weft::fiber f(
        [&] {
            for (std::size_t i = 0; i < count; ++i) pass(e, through);
            e.set();
            EXPECT_EQ(through, 0u) << "woken within set()";
            weft::this_fiber::yield();
        },
        {.on = l, .stack_bytes = std::size_t{256} << 10});
    l.run();
    f.join();
    EXPECT_EQ(through, count);
}

TEST(manual_reset_event_death, destruction_while_a_fiber_waits) {
    EXPECT_DEATH(
        {
            weft::loop l;
            auto e = std::make_unique<weft::manual_reset_event>();
            weft::fiber f([&] { e->wait(); }, {.on = l});
            l.run_until_idle();
            e.reset();
        },
        "weft: an object is destroyed while it has waiters");
}

}  // namespace
