#include "weft/run/run.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "weft/sync/channel.hpp"
#include "weft/task/shared_task.hpp"
#include "weft/task/sync_wait.hpp"  // its overload of await is not the one that run takes
#include "weft/task/when_all.hpp"
#include "weft/task/when_any.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;

TEST(run, returns_what_the_function_returns) {
    EXPECT_EQ(run([] { return 7; }), 7);
    EXPECT_EQ(*run([] { return std::make_unique<int>(8); }), 8);
    static int n = 9;
    EXPECT_EQ(&run([]() -> int& { return n; }), &n);
    static_assert(std::is_void_v<decltype(run([] {}))>);
    run([] {});
}

TEST(run, calls_a_function_that_can_be_called_only_once) {
    struct once {
        std::unique_ptr<int> p;
        int operator()() && { return *p; }
    };
    EXPECT_EQ(run(once{std::make_unique<int>(3)}), 3);
}

TEST(run, is_a_fiber_named_main_by_default) {
    EXPECT_EQ(run([] { return std::string(this_fiber::name()); }), "main");
    EXPECT_EQ(run([] { return std::string(this_fiber::name()); }, {.name = "other"}), "other");
}

TEST(run, starts_by_itself_with_every_launch_option) {
    for (const launch when : {launch::post, launch::dispatch, launch::deferred})
        EXPECT_EQ(run([] { return 1; }, {.launch = when}), 1);
}

TEST(run, rethrows_what_leaves_the_function) {
    EXPECT_THROW(run([]() -> int { throw std::out_of_range("far"); }), std::out_of_range);
    EXPECT_FALSE(this_fiber::exists());
    EXPECT_EQ(run([] { return 1; }), 1) << "the thread is as before";
}

TEST(run, throws_stopped_if_it_was_stopped) {
    const auto stopped_one = [] {
        run([] {
            current_flow()->request_stop(stop_reason::user);
            this_fiber::sleep_for(1h);
        });
    };
    try {
        stopped_one();
        ADD_FAILURE();
    } catch (const stopped& s) {
        EXPECT_EQ(s.reason, stop_reason::user);
    }
}

TEST(run, returns_when_all_that_it_started_is_done) {
    bool ended = false;
    run([&] {
        fiber([&] {
            this_fiber::sleep_for(2ms);
            ended = true;
        }).detach();
    });
    EXPECT_TRUE(ended);
}

task<int> number_after_a_while(int n) {
    co_await sleep_for(1ms);
    co_return n;
}

TEST(run, awaits_a_task_and_returns_its_value) {
    EXPECT_EQ(run(number_after_a_while(7)), 7);
    static int n = 9;
    const auto reference = []() -> task<int&> { co_return n; };
    EXPECT_EQ(&run(reference()), &n);
    const auto pointer = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(8); };
    EXPECT_EQ(*run(pointer()), 8);
    bool ended = false;
    const auto none = [&]() -> task<> {
        co_await sleep_for(1ms);
        ended = true;
    };
    static_assert(std::is_void_v<decltype(run(none()))>);
    run(none());
    EXPECT_TRUE(ended);
}

TEST(run, awaits_operations_and_other_awaitables) {
    channel<int> numbers(1);
    EXPECT_TRUE(numbers.try_send(3));
    EXPECT_EQ(run(numbers.async_recv()).value(), 3);
    run(sleep_for(1ms));
    EXPECT_EQ(run(when_all(number_after_a_while(1), number_after_a_while(2))), std::tuple(1, 2));
    shared_task<int> shared(number_after_a_while(4));
    EXPECT_EQ(run(shared), 4);
    EXPECT_EQ(run(shared), 4) << "an awaitable that is kept may be awaited again";
    struct ready_at_once {
        bool await_ready() const noexcept { return true; }
        void await_suspend(std::coroutine_handle<>) const noexcept {}
        std::string await_resume() const { return "there"; }
    };
    EXPECT_EQ(run(ready_at_once()), "there");
}

TEST(run, awaits_in_a_fiber_with_options) {
    const auto name = []() -> task<std::string> {
        co_await sleep_for(1ms);
        co_return std::string(this_fiber::name());
    };
    EXPECT_EQ(run(name()), "main");
    EXPECT_EQ(run(name(), {.name = "other"}), "other");
    EXPECT_EQ(run(name(), {.name = "late", .launch = launch::deferred}), "late");
}

TEST(run, rethrows_what_leaves_a_task) {
    const auto failing = []() -> task<int> {
        co_await sleep_for(1ms);
        throw std::out_of_range("far");
    };
    EXPECT_THROW(run(failing()), std::out_of_range);
    const auto stopped_one = []() -> task<> {
        current_flow()->request_stop(stop_reason::user);
        co_await sleep_for(1h);
    };
    EXPECT_THROW(run(stopped_one()), stopped);
    EXPECT_EQ(run(number_after_a_while(1)), 1) << "the thread is as before";
}

TEST(run, returns_when_all_that_a_task_started_is_done) {
    bool ended = false;
    const auto starts_another = [&]() -> task<> {
        fiber([&] {
            this_fiber::sleep_for(2ms);
            ended = true;
        }).detach();
        co_return;
    };
    run(starts_another());
    EXPECT_TRUE(ended);
}

// A run() of a user's, for a class of its own and for one of weft's.
namespace user {
struct engine {};
template <class T>
int run(T&&) {
    return 7;
}
int runs_a_channel(channel<int>& c) { return run(c); }
}  // namespace user

TEST(run, does_not_compete_with_a_run_of_the_users) {
    channel<int> c(1);
    EXPECT_EQ(user::runs_a_channel(c), 7);
    EXPECT_EQ(run(user::engine()), 7);
}

TEST(run, passes_its_callers_line_to_the_await) {
    EXPECT_DEATH(run(when_any(std::vector<task<int>>())),
                 "when_any of an empty range \\(.*run_test\\.cpp:");
}

TEST(run, can_be_called_repeatedly) {
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(run([i] {
                      this_fiber::yield();
                      return i;
                  }),
                  i);
}

}  // namespace
}  // namespace weft
