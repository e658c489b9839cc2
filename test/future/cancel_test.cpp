// Every wait of this layer, ended early: by a stop, by the deadline of a scope; in a fiber, in a
// task, on a thread, on one loop and on two. The waiter comes back at once, and the future is as it
// was.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/agents.hpp"
#include "test/support/loop_thread.hpp"
#include "test/support/outside.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/future/shared_future.hpp"
#include "weft/future/when.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace future_tests;

struct waited_for {
    promise<int> p, q;
    future<int> f = p.get_future();
    weft::shared_future<int> s = q.get_future().share();

    explicit waited_for(weft::executor& on) : p(on), q(on) {}
    // No wait for the future is left, and the outcome is all there.
    bool is_intact(weft::executor& home) {
        auto g = f.then(plain, [](int n) { return n; });
        const bool set = p.set_value(1) && q.set_value(2);
        if (&home == weft::current_executor()) return set;
        return set && g.get() == 1 && s.get() == 2;
    }
};

struct future_wait_row {
    const char* name;
    // Whether its return value reports that it was ended early; otherwise it throws.
    bool (*blocks)(waited_for&);
    weft::task<bool> (*suspends)(waited_for&);
};

const future_wait_row every_wait_for_a_future[] = {
    {"get", [](waited_for& w) { return w.f.get(), false; },
     [](waited_for& w) -> weft::task<bool> {
         co_await w.f;
         co_return false;
     }},
    {"get_result",
     [](waited_for& w) { return w.f.get_result().error() == std::errc::operation_canceled; },
     [](waited_for& w) -> weft::task<bool> {
         co_return (co_await w.f.async_get_result()).error() == std::errc::operation_canceled;
     }},
    {"wait", [](waited_for& w) { return w.f.wait(), false; },
     [](waited_for& w) -> weft::task<bool> {
         co_await w.f.async_wait(weft::never);
         co_return false;
     }},
    {"wait_for", [](waited_for& w) { return w.f.wait_for(1000h), false; },
     [](waited_for& w) -> weft::task<bool> {
         co_await w.f.async_wait(weft::after(weft::now(), 1000h));
         co_return false;
     }},
    {"shared_get", [](waited_for& w) { return w.s.get(), false; },
     [](waited_for& w) -> weft::task<bool> {
         co_await w.s;
         co_return false;
     }},
    {"shared_wait_for", [](waited_for& w) { return w.s.wait_for(1000h), false; },
     [](waited_for& w) -> weft::task<bool> {
         co_await w.s.async_wait(weft::after(weft::now(), 1000h));
         co_return false;
     }},
};

class every_wait_of_future : public ::testing::TestWithParam<future_wait_row> {
protected:
    virtual_loop l{1};
    waited_for w{l.loop()};
    bool said = false;
    stop_reason why = stop_reason::none;

    template <class F>
    void block(F f) {
        try {
            said = f();
        } catch (const weft::stopped& s) {
            why = s.reason;
        }
    }
    weft::task<> suspend() {
        try {
            said = co_await GetParam().suspends(w);
        } catch (const weft::stopped& s) {
            why = s.reason;
        }
    }
    weft::task<> suspend_in_a_scope() {
        const weft::timeout_scope scope(10ms);
        co_await suspend();
    }
    bool ended_by(stop_reason r) const { return said != (why == r); }
};

TEST_P(every_wait_of_future, is_ended_by_a_stop_of_a_fiber) {
    weft::fiber f([&] { block([&] { return GetParam().blocks(w); }); }, {.on = l});
    l.loop().post([&] { l.loop().post([&] { f.request_stop(stop_reason::shutdown); }); });
    l.run();
    f.join();
    EXPECT_TRUE(ended_by(stop_reason::shutdown));
    l.loop().post([&] { EXPECT_TRUE(w.is_intact(l.loop())); });
    l.run();
}

TEST_P(every_wait_of_future, is_ended_by_a_stop_of_a_task) {
    weft::detail::task_run<void> t(suspend(), l.loop());
    t->post_first_turn();
    l.loop().post([&] { l.loop().post([&] { t->request_stop(stop_reason::shutdown); }); });
    l.run();
    t.take();
    EXPECT_TRUE(ended_by(stop_reason::shutdown));
    l.loop().post([&] { EXPECT_TRUE(w.is_intact(l.loop())); });
    l.run();
}

TEST_P(every_wait_of_future, is_ended_by_the_deadline_of_a_scope) {
    weft::fiber f(
        [&] {
            const weft::timeout_scope scope(10ms);
            block([&] { return GetParam().blocks(w); });
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_TRUE(ended_by(stop_reason::deadline));
    EXPECT_EQ(l.now(), weft::time_point{} + 10ms);
    said = false, why = stop_reason::none;
    weft::detail::task_run<void> t(suspend_in_a_scope(), l.loop());
    t->post_first_turn();
    l.run();
    t.take();
    EXPECT_TRUE(ended_by(stop_reason::deadline));
    EXPECT_EQ(l.now(), weft::time_point{} + 20ms);
}

TEST_P(every_wait_of_future, is_ended_by_a_stop_of_a_thread) {
    weft::testing::loop_thread home;
    waited_for elsewhere(home.loop());
    std::atomic<weft::flow*> waits{nullptr};
    std::atomic<bool> over{false};
    std::thread thread([&] {
        waits = &weft::detail::this_thread_host().own_flow();
        block([&] { return GetParam().blocks(elsewhere); });
        while (!over) std::this_thread::yield();
    });
    while (waits == nullptr) std::this_thread::yield();
    waits.load()->request_stop(stop_reason::shutdown);
    over = true;
    thread.join();
    EXPECT_TRUE(ended_by(stop_reason::shutdown));
    EXPECT_TRUE(elsewhere.is_intact(home.loop()));
}

// The stop comes from another thread than the wait, and races with the outcome.
TEST_P(every_wait_of_future, ends_once_in_a_race_of_stop_and_outcome) {
    weft::testing::loop_thread home, other;
    for (int i = 0; i < 50; ++i) {
        auto it = std::make_unique<waited_for>(home.loop());
        weft::fiber f([&] { block([&] { return GetParam().blocks(*it); }); }, {.on = other});
        std::thread gives([&] { it->p.set_value(1), it->q.set_value(2); });
        f.request_stop(stop_reason::user);
        f.join();
        gives.join();
    }
}

TEST_P(every_wait_of_future, is_cancelled_when_its_stack_is_unwound) {
    bool returned = false;
    {
        weft::loop ends;
        weft::fiber f(
            [&] {
                const weft::shield s;
                GetParam().blocks(w);
                returned = true;
            },
            {.on = ends});
        f.detach();
        ends.run_until_idle();
    }
    EXPECT_FALSE(returned);
    l.loop().post([&] { EXPECT_TRUE(w.is_intact(l.loop())); });
    l.run();
}

TEST_P(every_wait_of_future, is_excluded_from_deadlock_reports) {
    EXPECT_TRUE(
        weft::testing::waits_for_outside([&] { block([&] { return GetParam().blocks(w); }); }));
}

INSTANTIATE_TEST_SUITE_P(future, every_wait_of_future, ::testing::ValuesIn(every_wait_for_a_future),
                         [](const auto& i) { return std::string(i.param.name); });

// Any agent fulfils, any agent waits, on one loop and on two.
class future_among : public weft::testing::among {};

TEST_P(future_among, passes_a_value_between_two_agents) {
    constexpr int rounds = 100;
    weft::testing::loop_thread home;
    std::vector<promise<int>> there, back;
    std::vector<future<int>> f, g;
    for (int i = 0; i < rounds; ++i) {
        there.emplace_back(home.loop()), back.emplace_back(home.loop());
        f.push_back(there.back().get_future().then([](int n) { return n + 1; }));
        g.push_back(back.back().get_future());
    }
    int sum = 0;
    run(
        [&](auto wait) -> weft::task<> {
            for (std::size_t i = 0; i < rounds; ++i) {
                there[i].set_value(1);
                sum += co_await wait(g[i].async_get());
            }
        },
        [&](auto wait) -> weft::task<> {
            for (std::size_t i = 0; i < rounds; ++i)
                back[i].set_value(co_await wait(f[i].async_get()));
        });
    EXPECT_EQ(sum, 2 * rounds);
}
WEFT_INSTANTIATE_AMONG(future_among);

}  // namespace
