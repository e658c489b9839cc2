#include "weft/task/detail/transfer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "test/support/allocation_fails.hpp"
#include "test/task/agents.hpp"
#include "test/task/small_stack.hpp"
#include "test/task/tasks.hpp"
#include "weft/task/task.hpp"

namespace {

using weft::task;

// The laws hold in each build: this file is run without optimisation, with it, and under each
// sanitizer; with GCC and with Clang.

constexpr int many = 1'000'000;
constexpr int deep = 100'000;

using tasks::nothing;
using tasks::number;

task<long> loop(int count) {
    long sum = 0;
    for (int n = 0; n < count; ++n) {
        sum += co_await number(1);
        co_await nothing();
    }
    co_return sum;
}

TEST(transfer, a_million_awaits_that_complete_at_once_need_no_stack) {
    on_small_stack([] {
        task<long> t = loop(many);
        t.start();
        ASSERT_TRUE(t.done());
        EXPECT_EQ(t.get(), many);
    });
}

#if !WEFT_ASAN && !WEFT_TSAN
// User code starts each task below the one before, so that where a body has no tail calls the task
// needs a trampoline of its own: so many were never in use at once.
task<int> begin_below(int depth) {
    if (depth == 0) co_return 0;
    task<int> next = begin_below(depth - 1);
    task<int> awaited = number(1);
    {
        const weft::testing::allocation_fails no_memory(1);
        next.start();
    }
    co_return next.get() + co_await awaited;
}
TEST(transfer, continues_without_memory_for_a_trampoline) {
    task<int> t = begin_below(50);
    t.start();
    ASSERT_TRUE(t.done());
    EXPECT_EQ(t.get(), 50);
}
#endif

task<int> chain(int depth) {
    if (depth == 0) co_return 0;
    co_return co_await chain(depth - 1) + 1;
}

TEST(transfer, a_chain_of_a_hundred_thousand_tasks_needs_no_stack) {
    on_small_stack([] {
        task<int> t = chain(deep);
        t.start();
        ASSERT_TRUE(t.done());
        EXPECT_EQ(t.get(), deep);
    });
}

task<int> chain_to(event& e, int depth) {
    if (depth == 0)
        co_await e;
    else
        co_return co_await chain_to(e, depth - 1) + 1;
    co_return 0;
}

TEST(transfer, a_chain_that_an_event_resumes_at_its_end_needs_no_stack) {
    on_small_stack([] {
        event e;
        task<int> t = chain_to(e, deep);
        t.start();
        ASSERT_FALSE(t.done());
        e.fire();
        ASSERT_TRUE(t.done());
        EXPECT_EQ(t.get(), deep);
    });
}

task<int> chain_that_throws(int depth) {
    if (depth == 0) throw depth;
    co_return co_await chain_that_throws(depth - 1);
}

TEST(transfer, an_exception_through_a_deep_chain_needs_no_stack) {
    on_small_stack([] {
        task<int> t = chain_that_throws(deep / 10);
        t.start();
        ASSERT_TRUE(t.done());
        EXPECT_THROW(t.get(), int);
    });
}

TEST(transfer, a_loop_that_an_event_interrupts_needs_no_stack) {
    const auto body = [](event& e) -> task<long> {
        long sum = 0;
        for (int n = 0; n < 100; ++n) {
            co_await e;
            sum += co_await loop(many / 100);
        }
        co_return sum;
    };
    on_small_stack([&] {
        event e;
        task<long> t = body(e);
        t.start();
        while (!t.done()) e.fire();
        EXPECT_EQ(t.get(), many);
    });
}

TEST(transfer, a_loop_of_awaits_that_decline_to_suspend_needs_no_stack) {
    const auto body = []() -> task<long> {
        long sum = 0;
        for (int n = 0; n < many; ++n) sum += co_await declining{1} + co_await number(1);
        co_return sum;
    };
    on_small_stack([&] {
        task<long> t = body();
        t.start();
        EXPECT_EQ(t.get(), 2 * many);
    });
}

TEST(transfer, a_loop_of_awaits_of_started_tasks_needs_no_stack) {
    const auto body = []() -> task<long> {
        long sum = 0;
        for (int n = 0; n < many; ++n) {
            task<int> begun = number(1);
            begun.start();
            sum += co_await begun;
        }
        co_return sum;
    };
    on_small_stack([&] {
        task<long> t = body();
        t.start();
        EXPECT_EQ(t.get(), many);
    });
}

// Temporaries with destructors and with addresses that escape do not keep a compiler from its tail
// call.
task<std::size_t> with_temporaries(const std::string& s) { co_return s.size(); }

TEST(transfer, awaits_with_temporaries_need_no_stack) {
    const auto body = []() -> task<std::size_t> {
        std::size_t sum = 0;
        for (int n = 0; n < many / 4; ++n) {
            sum += std::string(40, 'x').size();
            sum += co_await with_temporaries(std::string(40, 'y'));
        }
        co_return sum;
    };
    on_small_stack([&] {
        task<std::size_t> t = body();
        t.start();
        EXPECT_EQ(t.get(), 80u * (many / 4));
    });
}

// Task within task, each started by user code: as many trampolines as there are levels, each freed
// again.
TEST(transfer, tasks_that_start_tasks_do_not_interfere) {
    static const auto nested = [](auto& self, int depth) -> task<int> {
        int sum = co_await number(1);
        if (depth != 0) {
            task<int> t = self(self, depth - 1);
            t.start();
            sum += t.get();
        }
        sum += co_await number(1);
        co_return sum;
    };
    for (int round = 0; round < 10; ++round) {
        task<int> t = nested(nested, 20);
        t.start();
        EXPECT_EQ(t.get(), 42);
    }
}

// An event that fires inside the await_suspend of a foreign awaiter resumes a task above the other
// one.
struct firing {
    event* e;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) const {
        e->fire();
        return false;
    }
    void await_resume() const noexcept {}
};

TEST(transfer, a_task_that_resumes_another_one_continues_after_it) {
    std::vector<int> log;
    const auto sleeper = [](event& e, std::vector<int>& l) -> task<> {
        for (int n = 0; n < 3; ++n) {
            co_await e;
            l.push_back(co_await number(n));
        }
    };
    const auto waker = [](event& e, std::vector<int>& l) -> task<> {
        for (int n = 0; n < 3; ++n) {
            co_await firing{&e};
            l.push_back(co_await number(10 + n));
        }
    };
    event e;
    task<> a = sleeper(e, log);
    task<> b = waker(e, log);
    a.start();
    b.start();
    EXPECT_TRUE(a.done());
    EXPECT_TRUE(b.done());
    EXPECT_EQ(log, (std::vector<int>{0, 10, 1, 11, 2, 12}));
}

}  // namespace
