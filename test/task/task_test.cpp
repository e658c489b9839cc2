#include "weft/task/task.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "test/task/agents.hpp"
#include "test/task/tasks.hpp"
#include "weft/base/detail/block_cache.hpp"

namespace {

using weft::task;

static_assert(!std::is_copy_constructible_v<task<int>>);
static_assert(std::is_nothrow_move_constructible_v<task<int>>);
static_assert(sizeof(task<int>) == sizeof(void*));

using tasks::number;
using tasks::run_to_end;

[[gnu::noinline]] task<> sleep_on(event& e) { co_await e; }
task<int> number_after(event& e, int n) {
    co_await e;
    co_return n;
}
task<> failing() {
    throw std::runtime_error("failing");
    co_return;
}
task<int> failing_after(event& e) {
    co_await e;
    throw std::runtime_error("failing after");
}

TEST(task, runs_nothing_before_it_is_started) {
    bool ran = false;
    const auto body = [](bool& r) -> task<> {
        r = true;
        co_return;
    };
    task<> t = body(ran);
    EXPECT_FALSE(ran);
    EXPECT_FALSE(t.done());
    t.start();
    EXPECT_TRUE(ran);
    EXPECT_TRUE(t.done());
}

TEST(task, returns_its_value_to_its_awaiter) {
    const auto sum = []() -> task<int> { co_return co_await number(1) + co_await number(2); };
    EXPECT_EQ(run_to_end(sum()), 3);
}

TEST(task, is_suspended_until_the_event_resumes_it) {
    event e;
    task<int> t = number_after(e, 7);
    t.start();
    EXPECT_FALSE(t.done());
    e.fire();
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.get(), 7);
    EXPECT_EQ(t.get(), 7);  // it stays
}

TEST(task, resumes_the_awaiter_when_an_event_ends_the_innermost) {
    event e;
    const auto middle = [](event& ev) -> task<int> { co_return co_await number_after(ev, 5) + 1; };
    const auto outer = [&](event& ev) -> task<int> {
        int sum = 0;
        for (int n = 0; n < 10; ++n) sum += co_await middle(ev);
        co_return sum;
    };
    task<int> t = outer(e);
    t.start();
    for (int n = 0; n < 10; ++n) {
        EXPECT_FALSE(t.done());
        e.fire();
    }
    EXPECT_EQ(std::move(t).get(), 60);
}

TEST(task, an_exception_reaches_the_awaiter) {
    const auto catching = []() -> task<std::string> {
        try {
            co_await failing();
        } catch (const std::runtime_error& e) {
            co_return e.what();
        }
        co_return "";
    };
    EXPECT_EQ(run_to_end(catching()), "failing");
}

TEST(task, an_exception_passes_through_a_task_that_does_not_catch_it) {
    event e;
    const auto passing = [](event& ev) -> task<int> { co_return co_await failing_after(ev); };
    task<int> t = passing(e);
    t.start();
    e.fire();
    EXPECT_TRUE(t.done());
    EXPECT_THROW(t.get(), std::runtime_error);
    EXPECT_THROW(t.get(), std::runtime_error);
    EXPECT_THROW(std::move(t).get(), std::runtime_error);
}

TEST(task, start_does_not_throw_what_the_body_throws) {
    task<> t = failing();
    EXPECT_NO_THROW(t.start());
    EXPECT_TRUE(t.done());
    EXPECT_THROW(t.get(), std::runtime_error);
}

// What T may be.

struct move_only {
    std::unique_ptr<int> p;
};
struct no_default {
    explicit no_default(int n) : value(n) {}
    int value;
};
struct throwing_move {
    explicit throwing_move(int n) : value(n) {}
    throwing_move(throwing_move&& o) noexcept(false) : value(o.value) {
        if (value < 0) throw std::runtime_error("move");
    }
    int value;
};
template <std::size_t Alignment>
struct alignas(Alignment) aligned {
    aligned(int n) : value(n) { EXPECT_EQ(reinterpret_cast<std::uintptr_t>(this) % Alignment, 0u); }
    aligned(aligned&& o) noexcept : aligned(o.value) {}
    int value;
};

TEST(task, carries_move_only_values) {
    const auto make = []() -> task<move_only> { co_return move_only{std::make_unique<int>(4)}; };
    const auto pass = [&]() -> task<move_only> { co_return co_await make(); };
    EXPECT_EQ(*run_to_end(pass()).p, 4);
}

TEST(task, carries_values_without_a_default_constructor) {
    const auto make = []() -> task<no_default> { co_return no_default(4); };
    EXPECT_EQ(run_to_end(make()).value, 4);
    const auto convert = []() -> task<std::string> { co_return "text"; };
    EXPECT_EQ(run_to_end(convert()), "text");
    const auto braces = []() -> task<std::vector<int>> { co_return {1, 2, 3}; };
    EXPECT_EQ(run_to_end(braces()).size(), 3u);
    const auto constant = []() -> task<const int> { co_return 3; };
    EXPECT_EQ(run_to_end(constant()), 3);
}

TEST(task, carries_references) {
    int x = 1;
    const auto lvalue = [](int& r) -> task<int&> { co_return r; };
    const auto constant = [](const int& r) -> task<const int&> { co_return r; };
    const auto rvalue = [](int& r) -> task<int&&> { co_return std::move(r); };
    EXPECT_EQ(&run_to_end(lvalue(x)), &x);
    EXPECT_EQ(&run_to_end(constant(x)), &x);
    const auto all = [&]() -> task<bool> {
        int& a = co_await lvalue(x);
        const int& b = co_await constant(x);
        int&& c = co_await rvalue(x);
        co_return &a == &x && &b == &x && &c == &x;
    };
    EXPECT_TRUE(run_to_end(all()));
}

TEST(task, keeps_the_alignment_of_its_value) {
    const auto make16 = []() -> task<aligned<16>> { co_return 1; };
    const auto make32 = []() -> task<aligned<32>> { co_return 2; };
    const auto make64 = []() -> task<aligned<64>> { co_return 4; };
    const auto make256 = []() -> task<aligned<256>> { co_return 8; };
    const auto all = [&]() -> task<int> {
        int sum = 0;
        sum += (co_await make16()).value;
        sum += (co_await make32()).value;
        sum += (co_await make64()).value;  // more than this no compiler gives a local in a frame
        co_return sum;
    };
    EXPECT_EQ(run_to_end(all()), 7);
    EXPECT_EQ(run_to_end(make256()).value, 8);
}

TEST(task, an_exception_of_moving_the_value_reaches_the_awaiter) {
    const auto good = []() -> task<throwing_move> { co_return throwing_move(1); };
    EXPECT_EQ(run_to_end(good()).value, 1);
    const auto bad = []() -> task<throwing_move> { co_return throwing_move(-1); };
    const auto catching = [&]() -> task<bool> {
        try {
            co_await bad();
        } catch (const std::runtime_error&) {
            co_return true;
        }
        co_return false;
    };
    EXPECT_TRUE(run_to_end(catching()));
}

TEST(task, destroys_its_value_once) {
    {
        const auto make = []() -> task<counted> { co_return counted(); };
        const auto twice = [&]() -> task<> {
            co_await make();
            counted c = co_await make();
            EXPECT_EQ(counted::living, 1);
        };
        run_to_end(twice());
        EXPECT_EQ(counted::living, 0);
        task<counted> t = make();
        t.start();
        EXPECT_EQ(counted::living, 1);
    }
    EXPECT_EQ(counted::living, 0);
}

// What may be awaited, and by which coroutines.

TEST(task, awaits_anything_that_can_be_awaited) {
    event e;
    const auto body = [](event& ev) -> task<int> {
        co_await ev;
        co_await member_event{&ev};
        co_await free_event{&ev};
        co_await std::suspend_never{};
        co_await bouncing{};
        co_return co_await declining{9};
    };
    task<int> t = body(e);
    t.start();
    for (int n = 0; n < 3; ++n) {
        EXPECT_FALSE(t.done());
        e.fire();
    }
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.get(), 9);
}

TEST(task, can_be_awaited_by_a_foreign_coroutine) {
    event e;
    int got = 0;
    const auto body = [](event& ev, int& out) -> foreign_coroutine {
        out = co_await number(1);
        out += co_await number_after(ev, 10);
        task<int> begun = number_after(ev, 100);
        begun.start();
        out += co_await begun;
        task<int> ended = number(1000);
        ended.start();
        out += co_await std::move(ended);
    };
    body(e, got);
    EXPECT_EQ(got, 1);
    e.fire();
    EXPECT_EQ(got, 11);
    e.fire();
    EXPECT_EQ(got, 1111);
}

// Awaited as a temporary that holds a resource. With a constructor: GCC 12 destroys the parts of an
// aggregate that is built inside a co_await twice, in any awaiting coroutine.
struct holding_awaiter {
    explicit holding_awaiter(event& ev) : e(&ev) {}
    counted resource;
    event* e;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { e->waiting = h; }
    int await_resume() const noexcept { return counted::living; }
};
struct holding_awaitable {
    explicit holding_awaitable(event& ev) : e(&ev) {}
    counted resource;
    event* e;
    holding_awaiter operator co_await() && { return holding_awaiter(*e); }
};

TEST(task, keeps_temporaries_of_an_await_exactly_until_it_is_done) {
    event e;
    const auto body = [](event& ev) -> task<> {
        const int with_one = co_await holding_awaiter(ev);
        EXPECT_EQ(with_one, 1);
        EXPECT_EQ(counted::living, 0);
        const int with_two = co_await holding_awaitable(ev);
        EXPECT_EQ(with_two, 2);
        EXPECT_EQ(counted::living, 0);
    };
    task<> t = body(e);
    t.start();
    EXPECT_EQ(counted::living, 1);
    e.fire();
    EXPECT_EQ(counted::living, 2);
    e.fire();
    EXPECT_EQ(counted::living, 0);
    EXPECT_TRUE(t.done());
}

task<int> length_of(std::string s, const counted&, event& e) {
    co_await e;
    co_return static_cast<int>(s.size());
}

TEST(task, arguments_of_an_awaited_temporary_live_as_long_as_it_does) {
    event e;
    const auto body = [](event& ev) -> task<int> {
        const int first = co_await length_of(std::string(100, 'x'), counted(), ev);
        EXPECT_EQ(counted::living, 0);
        co_return first + co_await length_of("yy", counted(), ev);
    };
    task<int> t = body(e);
    t.start();
    EXPECT_EQ(counted::living, 1);
    e.fire();
    EXPECT_EQ(counted::living, 1);
    e.fire();
    EXPECT_EQ(counted::living, 0);
    EXPECT_EQ(t.get(), 102);
}

TEST(task, can_be_awaited_after_it_was_started) {
    event e;
    const auto outer = [](task<int> inner) -> task<int> { co_return co_await inner + 1; };
    task<int> inner = number_after(e, 1);
    inner.start();
    task<int> t = outer(std::move(inner));
    t.start();
    EXPECT_FALSE(t.done());
    e.fire();
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.get(), 2);

    task<int> ended = number(4);
    ended.start();
    EXPECT_EQ(run_to_end(outer(std::move(ended))), 5);
}

TEST(task, starts_other_tasks_inside_its_body) {
    event e;
    const auto outer = [](event& ev) -> task<int> {
        task<int> a = number_after(ev, 1);
        a.start();
        task<int> b = number(2);
        b.start();
        co_return co_await number(4) + co_await b + co_await a;
    };
    task<int> t = outer(e);
    t.start();
    EXPECT_FALSE(t.done());
    e.fire();
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.get(), 7);
}

TEST(task, migrates_between_threads_with_its_events) {
    event e;
    const auto body = [](event& ev) -> task<int> {
        int sum = 0;
        for (int n = 0; n < 100; ++n) sum += co_await number_after(ev, n) + co_await number(1);
        co_return sum;
    };
    task<int> t = body(e);
    t.start();
    while (!t.done()) std::thread([&e] { e.fire(); }).join();
    EXPECT_EQ(t.get(), 5050);
}

// Resumed by another thread while the one that suspended is still on its way out.
struct threads {
    std::mutex mutex;
    std::vector<std::thread> all;

    // Each starts before its predecessor has ended.
    void join() {
        for (std::size_t n = 0;; ++n) {
            std::thread next;
            {
                const std::lock_guard hold(mutex);
                if (n == all.size()) return;
                next = std::move(all[n]);
            }
            next.join();
        }
    }
};
struct hop {
    threads* pool;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const {
        const std::lock_guard hold(pool->mutex);
        pool->all.emplace_back([h] { h.resume(); });
    }
    void await_resume() const noexcept {}
};

TEST(task, may_be_resumed_elsewhere_before_await_suspend_returns) {
    threads pool;
    const auto hops = [](threads& p) -> task<int> {
        co_await hop{&p};
        const int one = co_await number(1);
        co_await hop{&p};
        co_return one + co_await number(1);
    };
    const auto body = [&](threads& p) -> task<int> {
        int sum = 0;
        for (int n = 0; n < 50; ++n) sum += co_await hops(p);
        co_return sum;
    };
    task<int> t = body(pool);
    t.start();
    pool.join();
    EXPECT_TRUE(t.done());
    EXPECT_EQ(t.get(), 100);
}

// Life and death.

TEST(task, is_empty_by_default_and_after_a_move) {
    task<int> a;
    EXPECT_FALSE(a);
    EXPECT_TRUE(a.done());
    task<int> b = number(1);
    EXPECT_TRUE(b);
    a = std::move(b);
    EXPECT_TRUE(a);
    EXPECT_FALSE(b);
    EXPECT_EQ(run_to_end(std::move(a)), 1);
}

task<> holding(counted, event& e) {
    counted local;
    co_await e;
}

TEST(task, a_move_assignment_destroys_the_old_frame_once) {
    event e;
    task<> a = holding({}, e);
    task<> b = holding({}, e);
    EXPECT_EQ(counted::living, 2);
    a.start();
    EXPECT_EQ(counted::living, 3);
    a = std::move(b);
    EXPECT_EQ(counted::living, 1);
    task<>& self = a;
    a = std::move(self);
    EXPECT_TRUE(a);
    EXPECT_EQ(counted::living, 1);
    a = {};
    EXPECT_EQ(counted::living, 0);
}

TEST(task, destroying_a_suspended_task_destroys_inner_frames_first) {
    std::string log;
    event e;
    const auto inner = [](std::string& l, event& ev) -> task<> {
        logging a{&l, '1'};
        logging b{&l, '2'};
        co_await ev;
    };
    const auto outer = [&](std::string& l, event& ev) -> task<> {
        logging a{&l, '3'};
        co_await inner(l, ev);
    };
    {
        task<> t = outer(log, e);
        t.start();
        EXPECT_EQ(log, "");
    }
    EXPECT_EQ(log, "213");
}

TEST(task, destroying_an_unstarted_task_destroys_its_parameters) {
    event e;
    {
        task<> t = holding({}, e);
    }
    EXPECT_EQ(counted::living, 0);
}

TEST(task, frames_are_taken_from_the_cache_and_returned) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    event e;
    const std::size_t before = weft::detail::block_cache::stats().used_bytes;
    {
        task<> t = sleep_on(e);
        EXPECT_GT(weft::detail::block_cache::stats().used_bytes, before);
        t.start();
    }
    EXPECT_EQ(weft::detail::block_cache::stats().used_bytes, before);
}

// Rules that are checked.

using task_death = ::testing::Test;

TEST(task_death, second_await_of_a_task_is_refused) {
    const auto twice = []() -> task<> {
        task<int> t = number(1);
        co_await t;
        co_await t;
    };
    EXPECT_DEATH(run_to_end(twice()), "second await of a task.*task_test.cpp");
    event e;
    const auto by_two = [](event& ev) -> task<> {
        task<int> t = number_after(ev, 1);
        const auto other = [](task<int>& shared) -> task<> { co_await shared; };
        task<> first = other(t);
        first.start();
        co_await t;
    };
    EXPECT_DEATH(run_to_end(by_two(e)), "second await of a task.*task_test.cpp");
}

TEST(task_death, second_start_of_a_task_is_refused) {
    event e;
    EXPECT_DEATH(
        {
            task<> t = sleep_on(e);
            t.start();
            t.start();
        },
        "second start of a task.*task_test.cpp");
}

TEST(task_death, an_empty_task_is_refused) {
    EXPECT_DEATH(task<>{}.start(), "start of an empty task.*task_test.cpp");
    EXPECT_DEATH(task<>{}.get(), "result of an empty task.*task_test.cpp");
    const auto await_empty = []() -> task<> { co_await task<>{}; };
    EXPECT_DEATH(run_to_end(await_empty()), "await of an empty task.*task_test.cpp");
}

TEST(task_death, the_result_of_an_unfinished_task_is_refused) {
    EXPECT_DEATH(number(1).get(), "result of a task that has not ended.*task_test.cpp");
}

}  // namespace
