#include "weft/parallel/fork_join.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/gate.hpp"
#include "test/support/slow.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/task/eager_task.hpp"
#include "weft/task/schedule_on.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/with_timeout.hpp"
#include "weft/wait/context_local.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

task<int> number(int n) { co_return n; }

task<long> fib(int n) {
    if (n < 2) co_return n;
    auto [a, b] = co_await fork_join(fib(n - 1), fib(n - 2));
    co_return a + b;
}

// Runs it in a pool, or on a plain thread, where there is no pool: both are laws for all.
class fork_join_in : public ::testing::TestWithParam<unsigned> {
protected:
    fork_join_in() {
        if (GetParam() != 0) pool_ = std::make_unique<pool>(GetParam());
    }
    template <class T>
    T run(task<T> t) {
        return pool_ != nullptr ? sync_wait(schedule_on(*pool_, std::move(t)))
                                : sync_wait(std::move(t));
    }
    std::unique_ptr<pool> pool_;
};

INSTANTIATE_TEST_SUITE_P(workers, fork_join_in, ::testing::Values(0u, 1u, 2u, 3u));

struct throws_when_moved {
    throws_when_moved() = default;
    throws_when_moved(throws_when_moved&&) { throw 3; }
    bool await_ready() const { return true; }
    void await_suspend(std::coroutine_handle<>) {}
    void await_resume() {}
};
TEST(fork_join, destroys_each_task_when_moving_one_throws) {
    const auto held = std::make_shared<int>(1);
    const auto holds = [](std::shared_ptr<int> p) -> task<int> { co_return *p; };
    const auto body = [&]() -> task<> {
        co_await fork_join(holds(held), throws_when_moved(), holds(held));
    };
    EXPECT_THROW(sync_wait(body()), int);
    EXPECT_EQ(held.use_count(), 1);
}

TEST_P(fork_join_in, returns_the_results_in_order) {
    const auto body = []() -> task<std::string> {
        auto [a, b, c] = co_await fork_join(
            number(1), []() -> task<std::string> { co_return "two"; }(),
            []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); }());
        co_return std::to_string(a) + b + std::to_string(*c);
    };
    EXPECT_EQ(run(body()), "1two3");
}

TEST_P(fork_join_in, accepts_a_single_task_and_void_tasks) {
    std::atomic<int> ran = 0;
    const auto body = [&]() -> task<> {
        const auto counts = [&]() -> task<> {
            ++ran;
            co_return;
        };
        co_await fork_join(counts());
        co_await fork_join(counts(), counts());
    };
    run(body());
    EXPECT_EQ(ran, 3);
}

TEST_P(fork_join_in, takes_a_range) {
    const auto body = []() -> task<int> {
        std::vector<task<int>> all;
        for (int i = 0; i != 100; ++i) all.push_back(number(i));
        int sum = 0;
        int place = 0;
        for (const int n : co_await fork_join(std::move(all))) {
            EXPECT_EQ(n, place++);
            sum += n;
        }
        EXPECT_TRUE((co_await fork_join(std::vector<task<int>>())).empty());
        co_return sum;
    };
    EXPECT_EQ(run(body()), 99 * 100 / 2);
}

TEST_P(fork_join_in, recurses) {
    for (int i = 0; i != (testing::slow ? 2 : 10); ++i) EXPECT_EQ(run(fib(18)), 2584);
}

// A million one after the other take no stack.
TEST_P(fork_join_in, repeats_without_stack_growth) {
    const auto body = []() -> task<int> {
        int sum = 0;
        for (int i = 0; i != (testing::slow ? 20'000 : 200'000); ++i) {
            auto [a, b] = co_await fork_join(number(1), number(-1));
            sum += a + b;
        }
        co_return sum;
    };
    EXPECT_EQ(run(body()), 0);
}

TEST_P(fork_join_in, throws_the_first_error_when_all_are_done) {
    std::atomic<int> living = 0;
    const auto fails = [&](const char* what) -> task<int> {
        ++living;
        co_await sleep_for(1ms);
        --living;
        throw std::runtime_error(what);
    };
    const auto body = [&]() -> task<std::string> {
        try {
            co_await fork_join(number(1), fails("a"), number(2));
        } catch (const std::runtime_error& e) {
            EXPECT_EQ(living, 0);
            co_return e.what();
        }
        co_return "none";
    };
    EXPECT_EQ(run(body()), "a");
}

TEST_P(fork_join_in, throws_the_error_of_the_last_task) {
    const auto fails = []() -> task<int> {
        throw std::runtime_error("last");
        co_return 0;
    };
    const auto body = [&]() -> task<bool> {
        try {
            co_await fork_join(number(1), fails());
        } catch (const std::runtime_error&) {
            co_return true;
        }
        co_return false;
    };
    EXPECT_TRUE(run(body()));
}

TEST_P(fork_join_in, runs_the_next_child_while_one_waits) {
    if (GetParam() == 0) return;  // there they run one after the other
    manual_reset_event second_ran;
    const auto waits = [&]() -> task<int> {
        co_await second_ran.async_wait();
        co_return 1;
    };
    const auto sets = [&]() -> task<int> {
        second_ran.set();
        co_return 2;
    };
    const auto body = [&]() -> task<int> {
        auto [a, b, c] = co_await fork_join(waits(), sets(), number(3));
        co_return a + b + c;
    };
    EXPECT_EQ(run(body()), 6);
}

TEST_P(fork_join_in, stops_its_children_when_its_awaiter_is_stopped) {
    std::atomic<int> stopped_count = 0;
    const auto sleeps = [&]() -> task<> {
        try {
            co_await sleep_for(1h);
        } catch (const stopped&) {
            ++stopped_count;
            throw;
        }
    };
    const auto body = [&]() -> task<> { co_await fork_join(sleeps(), sleeps(), sleeps()); };
    const auto bounded = [&]() -> task<bool> {
        auto outcome = co_await with_timeout(body(), 20ms);
        co_return outcome.has_value();
    };
    EXPECT_FALSE(run(bounded()));
    EXPECT_EQ(stopped_count, GetParam() == 0 ? 1 : 3);
}

TEST_P(fork_join_in, runs_children_with_the_bindings_of_its_awaiter) {
    static context_local<int> depth(0);
    const auto reads = []() -> task<int> { co_return depth.get(); };
    const auto body = [&]() -> task<int> {
        const auto bound = depth.bind(7);
        auto [a, b, c] = co_await fork_join(reads(), reads(), reads());
        co_return a + b + c;
    };
    EXPECT_EQ(run(body()), 21);
}

TEST_P(fork_join_in, leaves_alone_a_child_that_migrates_to_another_worker) {
    if (GetParam() < 2) return;
    const auto goes = [&](unsigned to) -> task<int> {
        co_await resume_on(pool_->worker(to));
        co_return 1;
    };
    const auto body = [&]() -> task<int> {
        int sum = 0;
        for (unsigned i = 0; i != 200; ++i) {
            auto [a, b, c] = co_await fork_join(goes(i % 2), number(1), goes((i + 1) % 2));
            sum += a + b + c;
        }
        co_return sum;
    };
    EXPECT_EQ(run(body()), 600);
}

TEST(fork_join, runs_children_concurrently) {
    pool p(2);
    std::latch both(2);  // opens only if two threads come to it at the same time
    const auto meets = [&]() -> task<> {
        both.arrive_and_wait();
        co_return;
    };
    const auto body = [&]() -> task<> { co_await fork_join(meets(), meets()); };
    sync_wait(schedule_on(p, body()));
    EXPECT_GE(p.stats().steal_count, 1u);
}

TEST(fork_join, drops_unstarted_children_when_one_fails) {
    pool p(1);
    bool begun = false;
    const auto fails = []() -> task<> {
        throw std::runtime_error("first");
        co_return;
    };
    const auto begins = [&]() -> task<> {
        begun = true;
        co_return;
    };
    const auto body = [&]() -> task<> { co_await fork_join(fails(), begins(), begins()); };
    EXPECT_THROW(sync_wait(schedule_on(p, body())), std::runtime_error);
    EXPECT_FALSE(begun);
}

TEST(fork_join, stops_children_on_other_workers_when_one_fails) {
    pool p(2);
    std::latch begun(2);
    std::atomic<bool> was_stopped = false;
    const auto fails = [&]() -> task<> {
        begun.arrive_and_wait();
        throw std::runtime_error("one");
        co_return;
    };
    const auto sleeps = [&]() -> task<> {
        begun.arrive_and_wait();
        try {
            co_await sleep_for(1h);
        } catch (const stopped& s) {
            was_stopped = s.reason == stop_reason::sibling_failed;
            throw;
        }
    };
    const auto body = [&]() -> task<> { co_await fork_join(fails(), sleeps()); };
    EXPECT_THROW(sync_wait(schedule_on(p, body())), std::runtime_error);
    EXPECT_TRUE(was_stopped);
}

TEST(fork_join, gives_the_same_result_on_many_workers_every_time) {
    pool p(4);
    for (int i = 0; i != (testing::slow ? 5 : 50); ++i)
        ASSERT_EQ(sync_wait(schedule_on(p, fib(16))), 987);
}

// Counts the live instances.
struct living {
    explicit living(int& n) : count(&n) { ++n; }
    living(living&& other) : count(std::exchange(other.count, nullptr)) {}
    ~living() {
        if (count != nullptr) --*count;
    }
    int* count;
};

TEST(fork_join, destroyed_at_once_cancels_unstarted_children) {
    pool p(1);
    int living_count = 0;
    bool begun = false;
    const auto sleeps = [](living) -> task<> { co_await sleep_for(1h); };
    const auto begins = [&](living) -> task<> {
        begun = true;
        co_return;
    };
    const auto forks = [&]() -> eager_task<> {
        co_await fork_join(sleeps(living(living_count)), begins(living(living_count)),
                           begins(living(living_count)));
    };
    const auto body = [&]() -> task<> {
        {
            const eager_task<> t = forks();
            EXPECT_EQ(living_count, 3);
        }
        EXPECT_EQ(living_count, 0);
        co_await sleep_for(1ms);
    };
    sync_wait(schedule_on(p, body()));
    EXPECT_FALSE(begun);
}

TEST(fork_join, destroyed_ends_children_that_have_started) {
    pool p(1);
    int living_count = 0;
    int begun_count = 0;
    const auto sleeps = [&](living) -> task<> {
        ++begun_count;
        co_await sleep_for(1h);
    };
    const auto forks = [&]() -> eager_task<> {
        co_await fork_join(sleeps(living(living_count)), sleeps(living(living_count)),
                           sleeps(living(living_count)));
    };
    const auto body = [&]() -> task<> {
        {
            const eager_task<> t = forks();
            while (begun_count != 3) co_await sleep_for(1ms);
            EXPECT_EQ(living_count, 3);
        }
        EXPECT_EQ(living_count, 0);
    };
    sync_wait(schedule_on(p, body()));
}

TEST(fork_join, frees_concurrent_children_when_it_is_done) {
    pool p(1);
    int living_count = 0;
    testing::gate others_begun;
    const auto waits = [&](living) -> task<> { co_await others_begun.async_pass(); };
    const auto opens = [&](living) -> task<> {
        others_begun.open();
        co_return;
    };
    const auto body = [&]() -> task<> {
        co_await fork_join(waits(living(living_count)), opens(living(living_count)));
        EXPECT_EQ(living_count, 0);
    };
    sync_wait(schedule_on(p, body()));
}

TEST(fork_join, frees_sequential_children_when_it_is_done) {
    int living_count = 0;
    const auto ends = [](living) -> task<> { co_return; };
    const auto body = [&]() -> task<> {
        co_await fork_join(ends(living(living_count)), ends(living(living_count)));
        EXPECT_EQ(living_count, 0);
        std::vector<task<>> range;
        for (int i = 0; i != 3; ++i) range.push_back(ends(living(living_count)));
        co_await fork_join(std::move(range));
        EXPECT_EQ(living_count, 0);
    };
    sync_wait(body());
}

TEST(fork_join, starts_a_child_beside_a_waiting_one_with_parent_bindings) {
    static context_local<int> depth(0);
    pool p(1);
    testing::gate other_ran;
    const auto waits = [&]() -> task<int> {
        co_await other_ran.async_pass();
        co_return depth.get();
    };
    const auto opens = [&]() -> task<int> {
        other_ran.open();
        co_return depth.get();
    };
    const auto body = [&]() -> task<int> {
        const auto bound = depth.bind(7);
        auto [a, b] = co_await fork_join(waits(), opens());
        co_return a * 10 + b;
    };
    EXPECT_EQ(sync_wait(schedule_on(p, body())), 77);
}

TEST(fork_join, throws_the_first_of_two_errors_while_another_child_waits) {
    pool p(1);
    testing::gate others_failed;
    const auto waits = [&]() -> task<> { co_await others_failed.async_pass(); };
    const auto fails = [&](const char* what, bool is_last) -> task<> {
        if (is_last) others_failed.open();
        throw std::runtime_error(what);
        co_return;
    };
    const auto body = [&]() -> task<std::string> {
        try {
            co_await fork_join(waits(), fails("a", false), fails("b", true));
        } catch (const std::runtime_error& e) {
            co_return e.what();
        }
        co_return "none";
    };
    EXPECT_EQ(sync_wait(schedule_on(p, body())), "a");
}

// A stop makes one of them fail, and ends another.
template <class Fork>
void fails_when_stopped(Fork fork) {
    pool p(1);
    testing::gate last_begun;
    flow* parent = nullptr;
    const auto waits = [&]() -> task<> { co_await last_begun.async_pass(); };
    const auto is_stopped = []() -> task<> { co_await sleep_for(1h); };
    const auto fails = [&]() -> task<> {
        last_begun.open();
        parent->request_stop(stop_reason::user);
        try {
            co_await sleep_for(1h);
        } catch (const stopped&) {
            throw std::runtime_error("cannot stop");
        }
    };
    const auto body = [&]() -> task<> {
        parent = current_flow();
        co_await fork(waits(), is_stopped(), fails());
    };
    EXPECT_THROW(sync_wait(schedule_on(p, body())), std::runtime_error);
}
TEST(fork_join, reports_a_failure_rather_than_the_stop_that_caused_it) {
    fails_when_stopped([](auto... tasks) { return fork_join(std::move(tasks)...); });
    fails_when_stopped([](auto... tasks) {
        std::vector<task<>> all;
        (all.push_back(std::move(tasks)), ...);
        return fork_join(std::move(all));
    });
}

TEST(fork_join, takes_its_stop_reason_from_the_first_stopped_child) {
    pool p(1);
    testing::gate last_begun;
    const auto waits = [&]() -> task<> { co_await last_begun.async_pass(); };
    const auto is_stopped = [&](stop_reason why, bool is_last) -> task<> {
        if (is_last) last_begun.open();
        throw stopped(why);
        co_return;
    };
    const auto body = [&]() -> task<stop_reason> {
        try {
            co_await fork_join(waits(), is_stopped(stop_reason::user, false),
                               is_stopped(stop_reason::deadline, true));
        } catch (const stopped& s) {
            co_return s.reason;
        }
        co_return stop_reason::none;
    };
    EXPECT_EQ(sync_wait(schedule_on(p, body())), stop_reason::user);
}

TEST(fork_join, is_stopped_when_a_child_ends_with_the_loop_it_migrated_to) {
    pool p(1);
    std::optional<loop> other(std::in_place);
    std::atomic<bool> arrived = false;
    testing::gate has_ended;
    const auto waits = [&]() -> task<int> {
        co_await has_ended.async_pass();
        co_return 1;
    };
    const auto goes = [&]() -> task<int> {
        co_await resume_on(*other);
        arrived = true;
        co_await std::suspend_always();  // nothing will resume it
        co_return 2;
    };
    const auto body = [&]() -> task<stop_reason> {
        try {
            co_await fork_join(waits(), goes());
        } catch (const stopped& s) {
            co_return s.reason;
        }
        co_return stop_reason::none;
    };
    detail::task_run<stop_reason> run(body(), nullptr);
    run->post_first_turn(p);
    while (!arrived) other->run_until_idle();
    other.reset();
    has_ended.open();
    p.wait_until_idle();
    EXPECT_EQ(run.take(), stop_reason::shutdown);
}

// A driver with a clock that jumps. When no deadline is left to wait for, `help` lets other threads
// run.
class helped_driver final : public driver {
public:
    explicit helped_driver(std::function<void()> help) : help_(std::move(help)) {}

    bool wait(time_point until) noexcept override {
        if (until == never) {
            help_();
            woken_.acquire();
        } else if (!woken_.try_acquire()) {
            now_ = std::max(now_, until);
        }
        return true;
    }
    void wake() noexcept override { woken_.release(); }
    time_point now() const noexcept override { return now_; }
    bool keeps_real_time() const noexcept override { return false; }
    int native_handle() noexcept override { return -1; }

private:
    std::function<void()> help_;
    time_point now_{};
    std::counting_semaphore<> woken_{0};
};

TEST(fork_join, migrated_to_a_loop_waits_there_without_a_deadlock_report) {
    static int reports;
    reports = 0;
    pool p(1);
    testing::gate far_may_end;
    loop other(std::make_unique<helped_driver>([&] { far_may_end.open(); }));
    other.on_deadlock([](loop&) { ++reports; });
    std::atomic<bool> far_began = false;
    const auto goes = [&]() -> task<int> {
        co_await resume_on(other);
        co_return 1;
    };
    const auto far = [&]() -> task<int> {
        far_began = true;
        co_await far_may_end.async_pass();
        co_return 2;
    };
    const auto body = [&]() -> task<int> {
        auto [a, b] = co_await fork_join(goes(), far());
        EXPECT_EQ(current_executor(), &other);
        co_return a + b;
    };
    detail::task_run<int> run(body(), nullptr);
    run->post_first_turn(p);
    while (!far_began) std::this_thread::yield();  // the parent has left by then
    other.run();
    EXPECT_EQ(run.take(), 3);
    EXPECT_EQ(reports, 0);
}

TEST(fork_join, ends_when_its_pool_is_destroyed) {
    std::atomic<int> destroyed = 0;
    struct at_end {
        std::atomic<int>& n;
        explicit at_end(std::atomic<int>& count) : n(count) {}
        ~at_end() { ++n; }
    };
    const auto sleeps = [&]() -> task<> {
        const at_end count(destroyed);
        co_await sleep_for(1h);
    };
    const auto body = [&]() -> task<> {
        const at_end count(destroyed);
        co_await fork_join(sleeps(), sleeps(), sleeps());
    };
    {
        pool p(2);
        detail::task_run<void> run(body(), nullptr);
        run->post_first_turn(p);
        std::this_thread::sleep_for(20ms);
    }
    EXPECT_EQ(destroyed, 4);
}

}  // namespace
}  // namespace weft
