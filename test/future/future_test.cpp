#include "weft/future/future.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "test/future/values.hpp"
#include "test/support/loop_thread.hpp"
#include "test/support/nothing_spare.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/future/promise.hpp"
#include "weft/future/when.hpp"
#include "weft/sched/timer.hpp"
#include "weft/task/detail/task_run.hpp"

namespace {

using namespace future_tests;

TEST(future, passes_its_value_in_every_form_a_function_accepts) {
    virtual_loop l(1);
    std::string said;
    run(l, [&] {
        make_ready_future(1).then([&](int n) { said += std::to_string(n); }).detach();
        make_ready_future(2).then([&](int& n) { said += std::to_string(n); }).detach();
        make_ready_future(3).then([&](int&& n) { said += std::to_string(n); }).detach();
        make_ready_future(4).then([&](const int& n) { said += std::to_string(n); }).detach();
        make_ready_future(5).then([&](auto n) { said += std::to_string(n); }).detach();
        make_ready_future(6).then([&] { said += '6'; }).detach();
        make_ready_future().then([&] { said += '7'; }).detach();
        make_ready_future(moving(8)).then([&](moving m) { said += std::to_string(*m.n); }).detach();
        make_ready_future(9).then([&](future<int> f) { said += std::to_string(f.get()); }).detach();
    });
    std::sort(said.begin(), said.end());  // the loop chooses its order at random
    EXPECT_EQ(said, "123456789");
}

TEST(future, continues_with_the_result_of_a_function) {
    weft::loop l;
    std::vector<std::string> ends;
    int target = 0;
    l.post([&] {
        make_ready_future(2)
            .then([](int n) { return n * 2.5; })
            .then(plain, [](double d) { return std::to_string(static_cast<int>(d)); })
            .then([&](std::string s) { ends.push_back(std::move(s)); })
            .then([&]() -> int& { return target; })
            .then([](int& r) { r = 9; })
            .detach();
    });
    l.run();
    EXPECT_EQ(ends, std::vector<std::string>{"5"});
    EXPECT_EQ(target, 9);
}

TEST(future, runs_continuations_in_order_and_never_inline) {
    weft::loop l;
    std::string order;
    l.post([&] {
        promise<> a, b;
        auto f = a.get_future().then([&] { order += 'a'; });
        auto g = b.get_future().then(plain, [&] { order += 'b'; });
        b.set_value();
        a.set_value();
        auto h = make_ready_future().then([&] { order += 'c'; });
        auto i = make_ready_future().then(plain, [&] { order += 'd'; });
        order += '.';
        f.detach(), g.detach(), h.detach(), i.detach();
    });
    l.run();
    EXPECT_EQ(order, ".bacd");
}

TEST(future, unwraps_a_returned_future) {
    weft::loop l;
    promise<int> later(l);
    future<int> inner = later.get_future();
    int got = 0;
    l.post([&] {
        make_ready_future()
            .then([&] { return std::move(inner); })
            .then([&](int n) { got = n; })
            .detach();
        make_ready_future()
            .then([] { return make_ready_future(7); })
            .then([&](int n) { got += n; })
            .detach();
        make_ready_future()
            .then([] { return future<int>(); })
            .then([&](future<int> f) { got += f.error() == weft::errc::broken_promise ? 100 : 0; })
            .detach();
    });
    l.run();
    EXPECT_EQ(got, 107);
    later.set_value(1000);
    l.run();
    EXPECT_EQ(got, 1000);
}

TEST(future, failure_completes_all_dependents_without_running_them) {
    weft::loop l;
    int ran = 0;
    const auto chain = [&](future<int> f) {
        return f.then([&](int) { ++ran; }).then(plain, [&] { ++ran; });
    };
    promise<int> a(l), b(l), c(l), d(l);
    auto thrown = chain(a.get_future()), coded = chain(b.get_future()),
         stopped = chain(c.get_future()), broken = chain(d.get_future());
    a.set_exception(std::make_exception_ptr(std::runtime_error("no")));
    b.set_error(std::make_error_code(std::errc::timed_out));
    c.set_stopped(stop_reason::shutdown);
    {
        const promise<int> gone = std::move(d);
    }
    l.run();
    EXPECT_EQ(ran, 0);
    EXPECT_THROW(thrown.get(), std::runtime_error);
    EXPECT_EQ(coded.get_result().error(), std::errc::timed_out);
    EXPECT_EQ(stopped.get_result().error(), std::errc::operation_canceled);
    EXPECT_EQ(broken.get_result().error(), weft::errc::broken_promise);
}

TEST(future, carries_an_exception_to_a_function_taking_the_future) {
    weft::loop l;
    std::string said;
    l.post([&] {
        const auto tell = [&](future<int> f) {
            try {
                f.get();
            } catch (const std::runtime_error& e) {
                said += e.what();
            } catch (const weft::stopped& s) {
                said += s.reason == stop_reason::deadline ? "late" : "?";
            }
            return 1;
        };
        make_ready_future(1)
            .then([](int) -> int { throw std::runtime_error("a"); })
            .then(tell)
            .detach();
        make_ready_future(1)
            .then(plain, [](int) -> int { throw std::runtime_error("b"); })
            .then([](int n) { return n; })
            .then(plain, tell)
            .detach();
        make_ready_future(1)
            .then([](int) -> int { throw weft::stopped{stop_reason::deadline}; })
            .then(tell)
            .detach();
    });
    l.run();
    std::sort(said.begin(), said.end());
    EXPECT_EQ(said, "aabelt");
}

TEST(future, moves_its_value_without_copies) {
    tracked::copies = 0;
    {
        weft::loop l;
        promise<tracked> p(l);
        int seen = 0;
        auto f = p.get_future()
                     .then([](tracked t) { return t; })
                     .then(plain, [](tracked& t) { return tracked(t.value + 1); })
                     .then([&](const tracked& t) { seen = t.value; });
        p.set_value(3);
        l.run();
        EXPECT_EQ(seen, 4);
    }
    EXPECT_EQ(tracked::copies, 0);
    EXPECT_EQ(tracked::living, 0);
}

TEST(future, destroys_a_function_that_never_runs) {
    tracked::living = 0;
    {
        weft::loop l;
        auto on_failure =
            weft::make_failed_future<int>(std::make_error_code(std::errc::io_error), l)
                .then([t = tracked(1)](int) {});
        promise<int> p(l);
        auto on_stop = p.get_future().then([t = tracked(2)](int) {});
        on_stop.request_stop();
        l.run();
        EXPECT_EQ(tracked::living, 0);
        // Its loop ends before its turn.
        l.post([&] { make_ready_future(1).then([t = tracked(3)](int) {}).detach(), l.stop(); });
        l.run();
    }
    EXPECT_EQ(tracked::living, 0);
}

TEST(future, of_an_ended_loop_has_an_outcome) {
    future<> ready, plain_one, waiting;
    {
        weft::loop l;
        l.post([&] {
            waiting = make_ready_future().then([] { weft::this_fiber::sleep_for(1h); });
            l.post([&] {
                ready = make_ready_future().then([] {});
                plain_one = make_ready_future().then(plain, [] {});
                l.stop();
            });
        });
        l.run();
    }
    EXPECT_TRUE(ready.is_ready());
    EXPECT_TRUE(plain_one.is_ready());
    EXPECT_EQ(waiting.error(), std::errc::operation_canceled);
}

TEST(future, chain_of_a_million_needs_little_stack) {
    constexpr int length = 1'000'000;
    weft::loop l;
    promise<int> p(l);
    future<int> f = p.get_future();
    for (int i = 0; i < length; ++i) f = f.then(plain, [](int n) { return n + 1; });
    p.set_value(0);
    l.run();
    EXPECT_EQ(f.get(), length);

    promise<int> q(l);  // stopped at its end, and dropped
    f = q.get_future();
    for (int i = 0; i < length; ++i) f = f.then(plain, [](int n) { return n + 1; });
    EXPECT_TRUE(f.request_stop());
    EXPECT_TRUE(q.stop_requested());
    f = {};
    l.run();
}

future<int> count_down(int n) {
    return make_ready_future(n).then(
        plain, [](int k) { return k == 0 ? make_ready_future(42) : count_down(k - 1); });
}
TEST(future, recursive_chain_needs_little_stack) {
    weft::loop l;
    future<int> f;
    l.post([&] { f = count_down(100'000); });
    l.run();
    EXPECT_EQ(f.get(), 42);
}

TEST(future, runs_continuations_on_its_executor_or_the_one_of_via) {
    weft::testing::loop_thread a, b;
    promise<> p(a.loop());
    weft::executor *first = nullptr, *second = nullptr;
    auto f = p.get_future()
                 .then(plain, [&] { first = weft::current_executor(); })
                 .via(b.loop())
                 .then([&] { second = weft::current_executor(); });
    p.set_value();
    f.get();
    EXPECT_EQ(first, &a.loop());
    EXPECT_EQ(second, &b.loop());
}

TEST(future, is_unchanged_when_a_wait_times_out) {
    virtual_loop l(1);
    promise<int> p(l.loop());
    future<int> f = p.get_future();
    weft::fiber waits(
        [&] {
            EXPECT_FALSE(f.wait_for(10ms));
            EXPECT_FALSE(f.is_ready());
            p.set_value(4);
            EXPECT_TRUE(f.wait_for(0ms));
            EXPECT_TRUE(f.wait_until(std::chrono::system_clock::now()));
            f.wait();
            EXPECT_EQ(f.get(), 4);
            EXPECT_FALSE(f.valid());
        },
        {.on = l});
    l.run();
    waits.join();
    EXPECT_EQ(l.now(), weft::time_point{} + 10ms);
}

TEST(future, can_be_awaited_directly_or_as_an_operation) {
    virtual_loop l(1);
    promise<int> p(l.loop()), q(l.loop());
    promise<moving> r(l.loop());
    const auto body = [&]() -> weft::task<int> {
        auto f = p.get_future();
        auto n = co_await f;
        auto m = co_await q.get_future().async_get_result();
        auto v = co_await r.get_future();
        co_return n + m.value() + *v.n;
    };
    weft::detail::task_run<int> t(body(), l.loop());
    t->post_first_turn();
    weft::timer later(l.loop(), 1ms,
                      [&] { p.set_value(1), q.set_value(2), r.set_value(moving(3)); });
    l.run();
    EXPECT_EQ(t.take(), 6);
}

TEST(future, stop_if_stops_when_its_function_returns_true) {
    weft::loop l;
    future<int> yes, no;
    l.post([&] {
        yes = make_ready_future(1).stop_if([](int n) { return n == 1; });
        no = make_ready_future(2).stop_if(plain, [](const int& n) { return n == 1; });
    });
    l.run();
    EXPECT_THROW(yes.get(), weft::stopped);
    EXPECT_EQ(no.get(), 2);
}

double cpu_seconds() {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

TEST(future, costs_no_cpu_time_while_pending) {
    constexpr std::size_t count = 100'000;
    weft::loop l;
    std::vector<promise<int>> promises;
    std::vector<future<int>> futures;
    std::size_t ran = 0;
    for (std::size_t i = 0; i < count; ++i) {
        promises.emplace_back(l);
        futures.push_back(
            promises.back().get_future().then(plain, [&](int n) { return ++ran, n; }));
    }
    auto all = weft::when_all(std::move(futures));
    l.run_until_idle();
    weft::testing::nothing_spare();
    const double before = cpu_seconds();
    EXPECT_FALSE(l.run_once(weft::after(l.now(), 500ms)));
    EXPECT_LE(cpu_seconds() - before, 0.05);
    for (auto& p : promises) p.set_value(1);
    l.run();
    EXPECT_EQ(ran, count);
    EXPECT_EQ(all.get().size(), count);
}

TEST(future_misuse, of_an_empty_future_is_reported) {
    EXPECT_DEATH(future<int>().get(), "use of a future that is empty .*future_test.cpp");
    EXPECT_DEATH(
        {
            weft::loop l;
            auto f = make_ready_future(l, 1);
            auto g = f.then([](int) {});
            auto h = f.then([](int) {});
        },
        "use of a future that is empty .*future_test.cpp");
    EXPECT_DEATH(static_cast<void>(future<int>().with_timeout(1ms)),
                 "use of a future that is empty .*future_test.cpp");
}

// A second waiter for a future is refused.
void let_two_wait_for_one() {
    weft::loop l;
    promise<int> p(l);
    auto f = p.get_future();
    const auto wait = [&] { f.wait(); };
    weft::fiber a(wait, {.on = l}), b(wait, {.on = l});
    l.run_until_idle();
}
TEST(future_misuse, by_a_second_waiter_is_reported) {
    EXPECT_DEATH(let_two_wait_for_one(), "two wait for one future");
}

void let_a_plain_function_wait() {
    weft::loop l;
    l.post([] {
        make_ready_future().then(plain, [] { weft::await(weft::sleep_for(1ms)); }).detach();
    });
    l.run();
}
TEST(future_misuse, by_a_nonblocking_function_that_waits_is_reported) {
    EXPECT_DEATH(let_a_plain_function_wait(), "cannot|wait|block");
}

}  // namespace
