#include "weft/future/async.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/loop_thread.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sync/channel.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/wait/sleep.hpp"

namespace {

using namespace future_tests;

TEST(async, delivers_the_result_of_its_function) {
    virtual_loop l(1);
    int target = 0;
    run(l, [&] {
        future<int> f = weft::async([] { return 7; });
        future<> none = weft::async([] {});
        future<int&> reference = weft::async([&]() -> int& { return target; });
        f.then([&](int n) { target = n; }).detach();
        none.then(plain, [] {}).detach();
        reference.then([&](int& r) { EXPECT_EQ(&r, &target); }).detach();
    });
    EXPECT_EQ(target, 7);
}

TEST(async, passes_copies_of_its_arguments_and_references_by_name) {
    virtual_loop l(1);
    tracked::living = tracked::copies = 0;
    int sum = 0, moved_in = 0;
    run(l, [&] {
        const tracked ends_before_the_function_runs(1);
        weft::async([](tracked&& a, const tracked& b, int& n) { n = a.value + b.value; },
                    ends_before_the_function_runs, tracked(2), std::ref(sum))
            .detach();
        weft::async([&](moving m) { moved_in = *m.n; }, moving(4)).detach();
    });
    EXPECT_EQ(sum, 3);
    EXPECT_EQ(moved_in, 4);
    EXPECT_EQ(tracked::copies, 1);
    EXPECT_EQ(tracked::living, 0);
}

TEST(async, calls_members_and_functions_that_can_be_called_once) {
    struct once {
        moving m;
        int operator()(int n) && { return *m.n + n; }
    };
    virtual_loop l(1);
    int got = 0;
    run(l, [&] {
        weft::async(once{moving(3)}, 4).then([&](int n) { got += n; }).detach();
        weft::async(&std::string::size, std::string("abc"))
            .then([&](std::size_t n) { got += static_cast<int>(n) * 100; })
            .detach();
    });
    EXPECT_EQ(got, 307);
}

TEST(async, runs_its_function_in_a_later_turn_and_in_order) {
    weft::loop l;
    std::string order;
    l.post([&] {
        for (const char c : {'a', 'b', 'c'}) weft::async([&, c] { order += c; }).detach();
        order += '.';
    });
    l.run();
    EXPECT_EQ(order, ".abc");
}

TEST(async, lets_its_function_wait_beside_others) {
    virtual_loop l(1);
    const weft::time_point before = l.now();
    int sum = 0;
    run(l, [&] {
        for (int i = 0; i < 100; ++i)
            weft::async([&] {
                weft::this_fiber::sleep_for(5ms);
                ++sum;
            }).detach();
    });
    EXPECT_EQ(sum, 100);
    EXPECT_EQ(l.now() - before, 5ms);
}

TEST(async, is_awaited_by_a_fiber_and_by_a_task) {
    virtual_loop l(1);
    const auto slow = [](int n) {
        weft::this_fiber::sleep_for(1ms);
        return n;
    };
    const auto body = [&]() -> weft::task<int> {
        auto f = weft::async(slow, 20);
        co_return co_await f;
    };
    int got = 0;
    weft::fiber([&] { got += weft::async(slow, 1).get(); }, {.on = l.loop()}).detach();
    weft::detail::task_run<int> t(body(), l.loop());
    t->post_first_turn();
    l.run();
    EXPECT_EQ(got + t.take(), 21);
}

TEST(async, runs_on_a_plain_thread_when_the_thread_waits) {
    int n = 0;
    future<std::thread::id> f = weft::async([&] {
        weft::await(weft::sleep_for(1ms));
        n = 1;
        return std::this_thread::get_id();
    });
    EXPECT_EQ(n, 0);
    EXPECT_EQ(f.get(), std::this_thread::get_id());
    EXPECT_EQ(n, 1);
}

TEST(async, runs_on_the_named_executor) {
    weft::pool p(2);
    future<bool> f =
        weft::async(p.worker(1), [&] { return weft::current_executor() == &p.worker(1); });
    EXPECT_EQ(&f.home(), &p.worker(1));
    EXPECT_TRUE(f.get());
    EXPECT_EQ(weft::async(p.worker(0), std::plus<>(), 1, 2).get(), 3);
}

TEST(async, gives_the_outcome_of_a_returned_future) {
    virtual_loop l(1);
    int got = 0;
    run(l, [&] {
        future<int> f = weft::async([] { return weft::async([] { return 8; }); });
        f.then([&](int n) { got = n; }).detach();
    });
    EXPECT_EQ(got, 8);
}

TEST(async, stores_what_its_function_throws) {
    virtual_loop l(1);
    std::string caught;
    run(l, [&] {
        weft::async([]() -> int { throw std::out_of_range("far"); })
            .then([&](future<int> f) {
                try {
                    f.get();
                } catch (const std::out_of_range& e) {
                    caught = e.what();
                }
            })
            .detach();
    });
    EXPECT_EQ(caught, "far");
}

TEST(async, throws_at_once_what_the_copy_of_an_argument_throws) {
    struct throwing {
        throwing() = default;
        throwing(const throwing&) { throw 3; }
    } const t;
    EXPECT_THROW(static_cast<void>(weft::async([](const throwing&) {}, t)), int);
}

TEST(async, is_stopped_before_its_function_begins) {
    virtual_loop l(1);
    bool began = false, stopped = false;
    tracked::living = 0;
    run(l, [&] {
        future<> f = weft::async([&](const tracked&) { began = true; }, tracked(1));
        EXPECT_TRUE(f.request_stop());
        f.then([&](future<> g) {
             try {
                 g.get();
             } catch (const weft::stopped& s) {
                 stopped = s.reason == stop_reason::user;
             }
         }).detach();
    });
    EXPECT_TRUE(stopped);
    EXPECT_FALSE(began);
    EXPECT_EQ(tracked::living, 0);
}

TEST(async, is_stopped_where_its_function_waits) {
    virtual_loop l(1);
    tracked::living = 0;
    bool began = false, stopped = false;
    weft::fiber(
        [&] {
            future<> f = weft::async([&] {
                const tracked held(1);
                began = true;
                weft::this_fiber::sleep_for(1h);
            });
            weft::this_fiber::sleep_for(1ms);
            EXPECT_TRUE(f.request_stop());
            try {
                f.get();
            } catch (const weft::stopped&) {
                stopped = true;
            }
        },
        {.on = l.loop()})
        .detach();
    l.run();
    EXPECT_TRUE(began && stopped);
    EXPECT_EQ(tracked::living, 0);
}

TEST(async, has_the_deadlines_of_a_future) {
    virtual_loop l(1);
    std::error_code how;
    weft::fiber(
        [&] {
            how = weft::async([] {
                      weft::this_fiber::sleep_for(1h);
                      return 1;
                  })
                      .with_timeout(2ms)
                      .get_result()
                      .error();
        },
        {.on = l.loop()})
        .detach();
    const weft::time_point before = l.now();
    l.run();
    EXPECT_EQ(how, std::errc::timed_out);
    EXPECT_EQ(l.now() - before, 2ms);
}

TEST(async, runs_to_its_end_when_its_future_is_dropped) {
    virtual_loop l(1);
    bool ended = false;
    run(l, [&] {
        static_cast<void>(weft::async([&] {
            weft::this_fiber::sleep_for(1ms);
            ended = true;
        }));
    });
    EXPECT_TRUE(ended);
}

TEST(async, may_be_called_by_any_thread) {
    weft::testing::loop_thread l;
    weft::channel<int> numbers(1);
    std::thread t(
        [&] { weft::async(l.loop(), [&] { return numbers.send(4).has_value(); }).detach(); });
    EXPECT_EQ(numbers.recv().value(), 4);
    t.join();
}

TEST(async, ends_with_its_loop) {
    tracked::living = 0;
    future<> f;
    {
        weft::loop l;
        l.post([&] {
            f = weft::async([held = tracked(1)] { weft::this_fiber::sleep_for(1h); });
            weft::async([&] { l.stop(); }).detach();
        });
        l.run();
    }
    EXPECT_TRUE(f.is_ready());
    EXPECT_THROW(f.get(), weft::stopped);
    EXPECT_EQ(tracked::living, 0);
}

}  // namespace
