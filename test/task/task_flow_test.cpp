#include "weft/task/detail/task_flow.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "test/task/on_loop.hpp"

namespace {

using namespace on_loop;
using weft::stop_reason;
using weft::task_status;

TEST(task_flow, is_scheduled_until_its_first_turn_runs) {
    weft::testing::virtual_loop l(1);
    weft::detail::task_run<int> r(number_in(1ms, 5), l.loop());
    r->post_first_turn();
    EXPECT_EQ(r->status(), task_status::scheduled);
    EXPECT_EQ(l.loop().flow_count(), 0u);
    l.loop().run_until_idle();
    EXPECT_EQ(r->status(), task_status::running);
    EXPECT_EQ(l.loop().flow_count(), 1u);
    l.run();
    EXPECT_EQ(r->status(), task_status::ended);
    EXPECT_EQ(l.loop().flow_count(), 0u);
    EXPECT_EQ(r.take(), 5);
}

TEST(task_flow, a_stop_ends_the_wait_it_is_in) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    weft::detail::task_run<int> r(hold_for_an_hour(live_count), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 1);
    EXPECT_TRUE(r->request_stop(stop_reason::user));
    EXPECT_FALSE(r->request_stop(stop_reason::shutdown));
    const weft::time_point before = l.now();
    l.run();
    EXPECT_EQ(live_count, 0);
    EXPECT_EQ(l.now(), before);
    try {
        r.take();
        FAIL();
    } catch (const weft::stopped& s) {
        EXPECT_EQ(s.reason, stop_reason::user);
    }
    EXPECT_FALSE(r->request_stop(stop_reason::user));  // of one that has ended: nothing
}

TEST(task_flow, a_stop_before_its_first_turn_fires_at_its_first_wait) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    weft::detail::task_run<int> r(hold_for_an_hour(live_count), l.loop());
    r->request_stop(stop_reason::user);
    r->post_first_turn();
    l.run();
    EXPECT_THROW(r.take(), weft::stopped);
    EXPECT_EQ(live_count, 0);
}

TEST(task_flow, ends_with_its_executor) {
    int live_count = 0;
    weft::detail::task_run<int> stops, ends;
    const auto stubborn = [](int& n) -> task<int> {
        const held h(n);
        for (;;) {
            try {
                co_await weft::sleep_for(1h);
            } catch (const weft::stopped&) {
            }
            co_await std::suspend_always();  // never resumed
        }
    };
    {
        weft::testing::virtual_loop l(1);
        stops = weft::detail::task_run<int>(hold_for_an_hour(live_count), l.loop());
        ends = weft::detail::task_run<int>(stubborn(live_count), l.loop());
        stops->post_first_turn();
        ends->post_first_turn();
        l.loop().run_until_idle();
        EXPECT_EQ(live_count, 2);
    }
    EXPECT_EQ(live_count, 0);
    EXPECT_THROW(stops.take(), weft::stopped);
    EXPECT_THROW(ends.take(), weft::stopped);
}

TEST(task_flow, frees_the_body_of_a_task_without_a_handle_at_its_end) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    const auto body = [](std::shared_ptr<held>) -> task<> { co_return; };
    {
        weft::detail::task_run<void> r(body(std::make_shared<held>(live_count)), l.loop());
        r->post_first_turn();
    }
    EXPECT_EQ(live_count, 1);
    l.run();
    EXPECT_EQ(live_count, 0);
}

TEST(task_flow, frees_the_error_with_its_handle_while_a_message_is_pending) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    const auto body = [](int& n) -> task<> {
        throw std::make_shared<held>(n);
        co_return;
    };
    weft::detail::task_run<void> r(body(live_count), l.loop());
    weft::flow& f = *r;
    f.kind->retain(f);  // a message's
    r->post_first_turn();
    l.run();
    EXPECT_EQ(live_count, 1);
    r = {};
    EXPECT_EQ(live_count, 0);
    f.kind->release(f);
}

TEST(task_flow, frees_the_frame_of_an_unstarted_task) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    {
        const weft::detail::task_run<int> r(hold_for_an_hour(live_count), l.loop());
    }
    EXPECT_EQ(live_count, 0);
}

TEST(task_flow, frees_its_memory_with_its_last_reference) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    weft::testing::virtual_loop l(1);
    const auto used_after = [&](int count) {
        for (int n = 0; n != count; ++n) EXPECT_EQ(run(l, number_in(0ms, n)), n);
        return weft::detail::block_cache::stats().used_bytes;
    };
    const std::size_t before = used_after(1);
    EXPECT_EQ(used_after(100), before);
}

using task_flow_death = ::testing::Test;

TEST_F(task_flow_death, of_no_task_or_a_started_task_is_refused) {
    weft::testing::virtual_loop l(1);
    const auto runs = [&](task<int> t) { weft::detail::task_run<int>(std::move(t), l.loop()); };
    EXPECT_DEATH(runs({}), "a task that is empty or has begun is to be run.*task_flow_test.cpp");
    task<int> begun = number_in(1ms, 1);
    EXPECT_DEATH((begun.start(), runs(std::move(begun))),
                 "a task that is empty or has begun is to be run.*task_flow_test.cpp");
}

TEST(this_task, reports_id_status_and_stop_token) {
    weft::testing::virtual_loop l(1);
    EXPECT_EQ(weft::this_task::id(), 0u);
    EXPECT_EQ(weft::this_task::status(), task_status::none);
    EXPECT_FALSE(weft::this_task::get_stop_token().stop_possible());
    const auto body = []() -> task<std::uint64_t> {
        EXPECT_EQ(weft::this_task::status(), task_status::running);
        EXPECT_TRUE(weft::this_task::get_stop_token().stop_possible());
        weft::current_flow()->request_stop(stop_reason::user);
        EXPECT_TRUE(weft::this_task::get_stop_token().stop_requested());
        EXPECT_EQ(weft::this_task::status(), task_status::stopping);
        co_return weft::this_task::id();
    };
    const std::uint64_t first = run(l, body());
    const std::uint64_t second = run(l, body());
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, second);
}

TEST(task_flow, ids_are_unique_across_threads) {
    constexpr int thread_count = 8, each = 2000;
    std::vector<std::vector<std::uint64_t>> ids(thread_count);
    std::vector<std::thread> threads;
    for (auto& mine : ids)
        threads.emplace_back([&mine] {
            weft::loop l;
            const auto nothing = []() -> task<> { co_return; };
            for (int i = 0; i < each; ++i)
                mine.push_back(weft::detail::task_run<void>(nothing(), l)->id);
        });
    for (std::thread& t : threads) t.join();
    std::set<std::uint64_t> all;
    for (const auto& mine : ids) all.insert(mine.begin(), mine.end());
    EXPECT_EQ(all.size(), std::size_t{thread_count} * each);
    EXPECT_FALSE(all.contains(0));
}

}  // namespace
