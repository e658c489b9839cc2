#include "weft/task/when_all_ready.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "test/task/on_loop.hpp"
#include "weft/task/with_timeout.hpp"

namespace {

using namespace on_loop;
using weft::stop_reason;
using weft::when_all_ready;
using weft::when_all_ready_result;

task<int> stopped_by_itself() {
    throw weft::stopped{stop_reason::deadline};
    co_return 0;
}
task<std::unique_ptr<int>> pointer(int n) { co_return std::make_unique<int>(n); }
task<> none() { co_return; }
task<int&> reference_to(int& n) { co_return n; }

TEST(when_all_ready, returns_each_outcome_in_argument_order) {
    int n = 5;
    auto [late, failed, ended_by_stop, p, v, r] = run(weft::detail::as_task(
        when_all_ready(number_in(3ms, 1), failing_in(1ms, 2), stopped_by_itself(), pointer(4),
                       none(), reference_to(n))));
    EXPECT_TRUE(late);
    EXPECT_EQ(late.value(), 1);
    EXPECT_EQ(late.exception(), nullptr);
    EXPECT_EQ(late.reason(), stop_reason::none);

    EXPECT_FALSE(failed.has_value() || failed.is_stopped());
    EXPECT_THROW(failed.value(), int);
    EXPECT_THROW(std::rethrow_exception(failed.exception()), int);

    EXPECT_TRUE(ended_by_stop.is_stopped());
    EXPECT_FALSE(ended_by_stop.has_value());
    EXPECT_EQ(ended_by_stop.reason(), stop_reason::deadline);
    EXPECT_EQ(ended_by_stop.exception(), nullptr);
    EXPECT_THROW(ended_by_stop.value(), weft::stopped);

    EXPECT_EQ(*std::move(p).value(), 4);
    EXPECT_NO_THROW(v.value());
    EXPECT_EQ(&r.value(), &n);
    EXPECT_EQ(&std::move(r).value(), &n);
}

TEST(when_all_ready, of_nothing_is_an_empty_tuple_at_once) {
    static_assert(std::is_same_v<weft::await_result_t<decltype(when_all_ready())>, std::tuple<>>);
    EXPECT_TRUE(when_all_ready().ready());
    const auto body = []() -> task<std::tuple<>> { co_return co_await when_all_ready(); };
    EXPECT_EQ(run(body()), std::tuple<>());
    EXPECT_EQ(weft::sync_wait(when_all_ready()), std::tuple<>()) << "on a thread";
}

TEST(when_all_ready, of_a_range_returns_a_vector) {
    std::vector<task<int>> tasks;
    tasks.push_back(number_in(2ms, 1));
    tasks.push_back(failing_in(1ms, 2));
    tasks.push_back(number_in(0ms, 3));
    const auto all = run(weft::detail::as_task(when_all_ready(std::move(tasks))));
    ASSERT_EQ(all.size(), 3u);
    EXPECT_TRUE(all[0].has_value() && all[2].has_value());
    EXPECT_NE(all[1].exception(), nullptr);
    EXPECT_TRUE(run(weft::detail::as_task(when_all_ready(std::vector<task<int>>()))).empty());
}

TEST(when_all_ready, waits_when_stopped_and_keeps_the_completed_values) {
    static int living = 0;
    struct parent {
        // The limit is set within the loop: its clock is not the thread's.
        static task<weft::result<std::vector<when_all_ready_result<int>>>> all() {
            std::vector<task<int>> tasks;
            tasks.push_back(number_in(1ms, 1));
            tasks.push_back(hold_for_an_hour(living));
            co_return co_await weft::with_timeout(when_all_ready(std::move(tasks)), 5ms);
        }
    };
    const auto r = run(parent::all());
    EXPECT_EQ(living, 0);
    ASSERT_TRUE(r.has_value());
    EXPECT_TRUE((*r)[0].has_value());
    EXPECT_TRUE((*r)[1].is_stopped());
}

}  // namespace
