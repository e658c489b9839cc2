#include "weft/task/event_source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/task/on_loop.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/task/sync_wait.hpp"

namespace {

using namespace on_loop;
using weft::event_source;

TEST(event_source, gives_each_who_waits_a_copy) {
    weft::testing::virtual_loop l(1);
    event_source<std::string> e;
    const auto reads = [](event_source<std::string>& s) -> task<std::string> {
        co_return co_await s.next();
    };
    weft::detail::task_run<std::string> a(reads(e), l.loop());
    a->post_first_turn();
    std::string in_fiber;
    weft::fiber f([&] { in_fiber = weft::await(e.next()); }, {.on = l});
    l.loop().run_until_idle();
    EXPECT_EQ(e.set("text"), 2u);
    l.run();
    f.join();
    EXPECT_EQ(a.take(), "text");
    EXPECT_EQ(in_fiber, "text");
}

TEST(event_source, has_no_memory_but_of_the_latest) {
    event_source<int> e;
    EXPECT_EQ(e.set(1), 0u);
    EXPECT_EQ(e.set(2), 0u);
    const auto body = [&]() -> task<int> { co_return co_await e.latest(); };
    EXPECT_EQ(run(body()), 2);
    weft::testing::virtual_loop l(1);
    const auto waits = [](event_source<int>& s) -> task<int> {
        co_return co_await s.next() * 10 + co_await s.latest();
    };
    e.set(9);
    weft::detail::task_run<int> r(waits(e), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    EXPECT_EQ(e.set(3), 1u);
    l.run();
    EXPECT_EQ(r.take(), 39);
}

TEST(event_source, is_awaited_any_number_of_times_and_by_a_name) {
    weft::testing::virtual_loop l(1);
    event_source<> e;
    int seen = 0;
    const auto body = [&]() -> task<> {
        for (; seen < 3; ++seen) {
            auto next = e.next();
            co_await next;
        }
    };
    weft::detail::task_run<void> r(body(), l.loop());
    r->post_first_turn();
    for (int i = 0; i < 3; ++i) {
        l.loop().run_until_idle();
        EXPECT_EQ(e.set(), 1u);
    }
    l.run();
    EXPECT_EQ(seen, 3);
    EXPECT_EQ(e.set(), 0u);
}

TEST(event_source, forgets_who_was_stopped) {
    weft::testing::virtual_loop l(1);
    event_source<> e;
    const auto body = [](event_source<>& s) -> task<> { co_await s.next(); };
    weft::detail::task_run<void> r(body(e), l.loop());
    r->post_first_turn();
    l.loop().run_until_idle();
    r->request_stop(weft::stop_reason::user);
    l.loop().run_until_idle();
    EXPECT_EQ(e.set(), 0u);
    l.run();
    EXPECT_THROW(r.take(), weft::stopped);
}

TEST(event_source, is_set_by_any_thread) {
    event_source<int> e;
    std::atomic<bool> over{false};
    std::thread setter([&] {
        for (int n = 1; !over; ++n) {
            e.set(n);
            std::this_thread::yield();
        }
    });
    const auto body = [](event_source<int>& s) -> task<> {
        int last = 0;
        for (int i = 0; i < 300; ++i) {
            const int n = co_await s.next();
            EXPECT_GT(n, last);
            last = n;
        }
    };
    weft::sync_wait(body(e));
    over = true;
    setter.join();
}

}  // namespace
