#include "weft/task/with_nursery.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "test/task/on_loop.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/task/sync_wait.hpp"

namespace {

using namespace on_loop;
using weft::nursery;
using weft::with_nursery;

TEST(with_nursery, returns_the_result_of_its_block) {
    const auto body = []() -> task<int> {
        co_return co_await with_nursery([](nursery& n) -> task<int> {
            auto x = n.spawn(number_in(2ms, 1));
            auto y = n.spawn(number_in(1ms, 20));
            co_return co_await x.async_get() + co_await y.async_get();
        });
    };
    EXPECT_EQ(run(body()), 21);
}

TEST(with_nursery, stops_and_joins_remaining_children_at_the_end_of_its_block) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    int live_count = 0;
    const auto body = [&]() -> task<> {
        co_await with_nursery([&](nursery& n) -> task<> {
            for (int i = 0; i < 5; ++i) n.spawn(hold_for_an_hour(live_count));
            co_await weft::sleep_for(1ms);
            EXPECT_EQ(live_count, 5);
        });
        EXPECT_EQ(live_count, 0);
    };
    run(l, body());
    EXPECT_EQ(l.now() - before, 1ms);
}

TEST(with_nursery, stops_children_not_yet_started) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    const auto body = []() -> task<> {
        co_await with_nursery([](nursery& n) -> task<> {
            n.spawn(number_in(7ms, 1));
            n.spawn(number_in(3ms, 1));
            EXPECT_EQ(n.living_count(), 2u);
            co_return;
        });
    };
    run(l, body());
    EXPECT_EQ(l.now() - before, 0ms);
}

TEST(with_nursery, stops_all_and_throws_the_error_when_a_child_fails) {
    weft::testing::virtual_loop l(1);
    const weft::time_point before = l.now();
    int live_count = 0;
    const auto body = [&]() -> task<> {
        co_await with_nursery([&](nursery& n) -> task<> {
            n.spawn(hold_for_an_hour(live_count));
            n.spawn(failing_in(2ms, 9));
            const held h(live_count);
            co_await weft::sleep_for(1h);
        });
    };
    int caught = 0;
    try {
        run(l, body());
    } catch (int n) {
        caught = n;
    }
    EXPECT_EQ(caught, 9);
    EXPECT_EQ(live_count, 0);
    EXPECT_EQ(l.now() - before, 2ms);
}

TEST(with_nursery, a_block_that_joins_waits_for_its_children) {
    weft::testing::virtual_loop l(1);
    int ended = 0;
    const auto child = [&](int i) -> task<> {
        co_await weft::sleep_for(std::chrono::milliseconds(i));
        ++ended;
    };
    const auto body = [&]() -> task<> {
        co_await with_nursery([&](nursery& n) -> task<> {
            for (int i = 1; i <= 3; ++i) n.spawn(child(i));
            co_await n.async_join();
            EXPECT_EQ(ended, 3);
            n.spawn(child(4));
            co_await n.async_join();
        });
    };
    run(l, body());
    EXPECT_EQ(ended, 4);
    EXPECT_EQ(l.now(), weft::time_point(7ms));
}

TEST(with_nursery, throws_the_first_error_of_its_block_and_children) {
    const auto fails_on_its_way_out = []() -> task<> {
        try {
            co_await weft::sleep_for(1h);
        } catch (const weft::stopped& s) {
            EXPECT_EQ(s.reason, weft::stop_reason::sibling_failed);
            throw 'c';
        }
    };
    const auto block_first = [&]() -> task<> {
        co_await with_nursery([&](nursery& n) -> task<> {
            n.spawn(fails_on_its_way_out());
            co_await weft::sleep_for(1ms);
            throw 7;
        });
    };
    EXPECT_THROW(run(block_first()), int);
    const auto child_first = [&]() -> task<> {
        co_await with_nursery([&](nursery& n) -> task<> {
            n.spawn(failing_in(1ms, 7));
            try {
                co_await weft::sleep_for(1h);
            } catch (int) {
            }
            throw 'c';
        });
    };
    EXPECT_THROW(run(child_first()), int);
}

TEST(with_nursery, a_block_that_fails_stops_its_children) {
    int live_count = 0;
    const auto body = [&]() -> task<> {
        co_await with_nursery([&](nursery& n) -> task<> {
            n.spawn(hold_for_an_hour(live_count));
            co_await weft::sleep_for(1ms);
            throw 3;
        });
    };
    EXPECT_THROW(run(body()), int);
    EXPECT_EQ(live_count, 0);
}

TEST(with_nursery, a_child_stopped_for_a_sibling_rethrows_the_siblings_error) {
    const auto body = []() -> task<> {
        co_await with_nursery([](nursery& n) -> task<> {
            auto x = n.spawn(number_in(1h, 1));
            n.spawn(failing_in(2ms, 9));
            const weft::shield s;  // the block sees the failure nevertheless
            int caught = 0;
            try {
                co_await x.async_get();
            } catch (int e) {
                caught = e;
            }
            EXPECT_EQ(caught, 9);
        });
    };
    EXPECT_THROW(run(body()), int);
}

TEST(with_nursery, is_stopped_with_its_awaiter) {
    weft::testing::virtual_loop l(1);
    int live_count = 0;
    const auto body = [](int& n) -> task<> {
        co_await with_nursery([&](nursery& all) -> task<> {
            all.spawn(hold_for_an_hour(n));
            co_await hold_for_an_hour(n);
        });
    };
    weft::detail::task_run<void> r(body(live_count), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 2);
    r->request_stop(weft::stop_reason::user);
    l.run();
    EXPECT_EQ(live_count, 0);
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(with_nursery, destroyed_while_it_waits_ends_its_children) {
    int live_count = 0;
    weft::testing::virtual_loop l(1);
    const auto body = [](int& n) -> task<> {
        co_await with_nursery([&](nursery& all) -> task<> {
            all.spawn(hold_for_an_hour(n));
            co_await hold_for_an_hour(n);
        });
    };
    task<> t = body(live_count);
    l.loop().post([&] { t.start(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 2);
    l.loop().post([&] { t = task<>(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 0);
    EXPECT_EQ(l.loop().flow_count(), 0u);
}

TEST(with_nursery, destroyed_after_a_child_has_failed_throws_nothing) {
    int live_count = 0;
    weft::testing::virtual_loop l(1);
    const auto fails_at_once = []() -> task<> {
        throw 9;
        co_return;
    };
    const auto body = [&](int& n) -> task<> {
        co_await with_nursery([&](nursery& all) -> task<> {
            all.spawn(fails_at_once());
            const weft::shield s;
            co_await hold_for_an_hour(n);
        });
    };
    task<> t = body(live_count);
    l.loop().post([&] { t.start(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 1);
    l.loop().post([&] { t = task<>(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 0);
    EXPECT_EQ(l.loop().flow_count(), 0u);
}

TEST(with_nursery, destroyed_ends_a_fiber_that_awaits_a_task) {
    int live_count = 0;
    weft::testing::virtual_loop l(1);
    const auto body = [](int& n) -> task<> {
        co_await with_nursery([&](nursery& all) -> task<> {
            all.spawn([&n] { weft::await(hold_for_an_hour(n)); });
            co_await hold_for_an_hour(n);
        });
    };
    task<> t = body(live_count);
    l.loop().post([&] { t.start(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 2);
    l.loop().post([&] { t = task<>(); });
    l.loop().run_until_idle();
    EXPECT_EQ(live_count, 0);
    EXPECT_EQ(l.loop().flow_count(), 0u);
}

TEST(task_handle, of_a_done_task_stops_nothing) {
    const auto body = []() -> task<> {
        co_await with_nursery([](nursery& n) -> task<> {
            auto x = n.spawn(number_in(1ms, 1));
            EXPECT_EQ(co_await x.async_get(), 1);
            EXPECT_FALSE(x.request_stop());
        });
    };
    run(body());
}

TEST(task_handle_death, a_second_get_is_refused) {
    const auto body = []() -> task<> {
        co_await with_nursery([](nursery& n) -> task<> {
            auto x = n.spawn(number_in(1ms, 1));
            EXPECT_EQ(co_await x.async_get(), 1);
            co_await x.async_get();
        });
    };
    EXPECT_DEATH(
        run(body()),
        "weft: the result of a task_handle is asked for twice: task [0-9]+.*with_nursery_test.cpp");
}

TEST(task_handle, reports_id_and_status_and_stops_only_its_task) {
    const auto body = []() -> task<> {
        co_await with_nursery([](nursery& n) -> task<> {
            auto x = n.spawn(number_in(1h, 1));
            auto y = n.spawn(number_in(2ms, 2));
            EXPECT_NE(x.id(), y.id());
            EXPECT_EQ(x.status(), weft::task_status::scheduled);
            co_await weft::sleep_for(1ms);
            EXPECT_EQ(x.status(), weft::task_status::running);
            EXPECT_TRUE(x.request_stop());
            EXPECT_EQ(co_await y.async_get(), 2);
            EXPECT_TRUE(x.done());
            bool was_stopped = false;
            try {
                co_await x.async_get();
            } catch (const weft::stopped&) {
                was_stopped = true;
            }
            EXPECT_TRUE(was_stopped);
        });
    };
    run(body());
}

}  // namespace
