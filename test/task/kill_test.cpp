// A kill unwinds the body of a coroutine that runs on the stack that is killed: its objects are
// destroyed, it has no result, and what is above it on that stack is unwound too. The same of a
// thread that is cancelled.
#include <gtest/gtest.h>

#include <string>

#include "test/support/cancelled_thread.hpp"
#include "test/task/on_loop.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/task/async_generator.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/generator.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/await.hpp"

namespace {

using on_loop::held;
using weft::async_generator;
using weft::generator;
using weft::task;

using stops = void (*)();  // a call that does not come back

task<int> inner(stops here, int& n) {
    const held h(n);
    here();
    co_return 1;
}
task<> outer(stops here, int& n) {
    const held h(n);
    co_await inner(here, n);
    ADD_FAILURE() << "it went on";
}
task<> in_a_handler(stops here, int& n) {
    const held h(n);
    try {
        throw 1;
    } catch (int) {
        here();
    }
    ADD_FAILURE() << "it went on";
    co_return;
}
generator<int> numbers(stops here, int& n) {
    const held h(n);
    co_yield 1;
    here();
}
generator<int> nest(stops here, int& n) {
    const held h(n);
    co_yield weft::elements_of(numbers(here, n));
    co_yield 3;
}
async_generator<int> numbers_awaited(stops here, int& n) {
    const held h(n);
    co_yield 1;
    co_await inner(here, n);
}
task<> all_of(async_generator<int> g) {
    while (const int* next = co_await g.next()) static_cast<void>(next);
    ADD_FAILURE() << "it went on";
}

// An awaiter that is not weft's, awaited by a coroutine of weft's in between.
struct foreign_awaiter {
    stops here;
    int& n;
    bool await_ready() const {
        const held h(n);
        here();
        ADD_FAILURE() << "it went on";
        return true;
    }
    void await_suspend(std::coroutine_handle<>) const {}
    void await_resume() const {}
};

struct stack_with_coroutines {
    const char* name;
    void (*run)(stops here, int& live_count);
};

void to_its_end(task<> t) {
    t.start();
    t.get();
}

const stack_with_coroutines every_stack[] = {
    {"task",
     [](stops here, int& n) {
         task<int> t = inner(here, n);
         t.start();
         EXPECT_EQ(t.get(), 1) << "it has no result";
     }},
    {"task_in_a_task", [](stops here, int& n) { to_its_end(outer(here, n)); }},
    {"task_that_is_awaited", [](stops here, int& n) { weft::await(outer(here, n)); }},
    {"task_in_a_handler", [](stops here, int& n) { to_its_end(in_a_handler(here, n)); }},
    {"generator",
     [](stops here, int& n) {
         int sum = 0;
         for (int i : numbers(here, n)) sum += i;
         ADD_FAILURE() << "it went on, " << sum;
     }},
    {"generator_in_a_generator",
     [](stops here, int& n) {
         int sum = 0;
         for (int i : nest(here, n)) sum += i;
         ADD_FAILURE() << "it went on, " << sum;
     }},
    {"bridge", [](stops here, int& n) { weft::await(foreign_awaiter{here, n}); }},
    {"async_generator", [](stops here, int& n) { to_its_end(all_of(numbers_awaited(here, n))); }},
};

class kill_through : public testing::TestWithParam<stack_with_coroutines> {};

TEST_P(kill_through, unwinds_the_whole_stack) {
    int live_count = 0;
    weft::coroutine<void()> c([&] {
        const held h(live_count);
        GetParam().run([] { weft::this_coroutine::yield(); }, live_count);
        ADD_FAILURE() << "the body went on";
    });
    c.resume();
    EXPECT_GT(live_count, 1);
    c.kill();
    EXPECT_EQ(live_count, 0);
    EXPECT_TRUE(c.done());
}

TEST_P(kill_through, unwinds_a_cancelled_thread_as_well) {
    int live_count = 0;
    EXPECT_TRUE(weft::testing::is_cancelled_in([&] {
        const held h(live_count);
        GetParam().run([] { ::pthread_testcancel(); }, live_count);
        ADD_FAILURE() << "the body went on";
    }));
    EXPECT_EQ(live_count, 0);
}

INSTANTIATE_TEST_SUITE_P(of, kill_through, testing::ValuesIn(every_stack),
                         [](const auto& i) { return std::string(i.param.name); });

// What is left of a body that was killed, where its consumer swallows the kill.
TEST(kill_of_coroutines, leaves_a_generator_at_its_end) {
    int live_count = 0;
    int rest = 0;
    weft::coroutine<void()> c([&] {
        generator<int> g = nest([] { weft::this_coroutine::yield(); }, live_count);
        auto at = g.begin();
        try {
            ++at;
        } catch (...) {
        }
        for (++at; at != g.end(); ++at) rest += *at;
    });
    c.resume();
    c.kill();
    EXPECT_EQ(live_count, 0);
    EXPECT_EQ(rest, 3) << "the outer one goes on as behind any inner one that ended";
}

TEST(kill_of_coroutines_death, leaves_a_task_without_a_result) {
    bool is_asked = true;
    weft::coroutine<void()> c([&] {
        int live_count = 0;
        task<int> t = inner([] { weft::this_coroutine::yield(); }, live_count);
        try {
            t.start();
        } catch (...) {
        }
        if (is_asked && t.done()) t.get();
    });
    c.resume();
    EXPECT_DEATH(c.kill(), "result of a task that was killed");
    is_asked = false;
    c.kill();
}

TEST(kill_of_coroutines_death, is_refused_by_the_first_turn_of_an_eager_task) {
    weft::coroutine<void()> c([] {
        const auto begins = []() -> weft::eager_task<> {
            weft::this_coroutine::yield();
            co_return;
        };
        auto begun = begins();
    });
    c.resume();
    EXPECT_DEATH(c.kill(), "a noexcept function is in the way");
    c.resume();
}

TEST(kill_of_coroutines, leaves_an_async_generator_at_its_end) {
    int live_count = 0;
    bool ended = false;
    weft::coroutine<void()> c([&] {
        const auto consume = [&]() -> task<> {
            auto numbers = [](int& n) -> async_generator<int> {
                const held h(n);
                co_yield 1;
                weft::this_coroutine::yield();
            };
            async_generator<int> g = numbers(live_count);
            co_await g.next();
            auto next = [&]() -> task<> { co_await g.next(); };
            task<> second = next();
            try {
                second.start();
            } catch (...) {
            }
            ended = co_await g.next() == nullptr;
        };
        to_its_end(consume());
    });
    c.resume();
    c.kill();
    EXPECT_EQ(live_count, 0);
    EXPECT_TRUE(ended);
}

}  // namespace
