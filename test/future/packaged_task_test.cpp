#include "weft/future/packaged_task.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "test/future/values.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace future_tests;
using weft::packaged_task;

TEST(packaged_task, delivers_the_returned_value_to_its_future) {
    weft::loop l;
    packaged_task<int(int, std::string)> t(
        [](int n, const std::string& s) { return n + static_cast<int>(s.size()); }, l);
    auto f = t.get_future().then(plain, [](int n) { return n * 10; });
    EXPECT_TRUE(t.valid());
    t(1, "ab");
    EXPECT_FALSE(t.valid());
    l.run();
    EXPECT_EQ(f.get(), 30);

    packaged_task<moving()> m([owned = moving(4)]() mutable { return std::move(owned); });
    auto g = m.get_future();
    m();
    EXPECT_EQ(*g.get().n, 4);
}

TEST(packaged_task, delivers_exceptions_and_breaks_its_promise_when_destroyed) {
    packaged_task<void()> throws([] { throw 3; }), dropped([] {});
    auto f = throws.get_future();
    auto g = dropped.get_future();
    throws();
    dropped = packaged_task<void()>();
    EXPECT_THROW(f.get(), int);
    EXPECT_EQ(g.error(), weft::errc::broken_promise);
}

TEST(packaged_task, does_nothing_when_its_future_was_stopped) {
    tracked::living = 0;
    packaged_task<void()> t([x = tracked(1)] { FAIL(); });
    auto f = t.get_future();
    EXPECT_TRUE(f.request_stop());
    t();
    EXPECT_EQ(tracked::living, 0);
    EXPECT_THROW(f.get(), weft::stopped);
}

TEST(packaged_task, releases_all_memory_of_its_function) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    weft::loop l;
    const auto used = weft::detail::block_cache::stats().used_bytes;
    {
        packaged_task<int(int)> t([room = std::array<int, 100>{7}](int n) { return room[0] + n; },
                                  l);
        EXPECT_GT(weft::detail::block_cache::stats().used_bytes, used + sizeof(int) * 100);
        auto f = t.get_future();
        t(1);
        EXPECT_EQ(f.get(), 8);
    }
    EXPECT_EQ(weft::detail::block_cache::stats().used_bytes, used);
}

TEST(packaged_task, runs_on_any_thread) {
    packaged_task<int(int)> t([](int n) { return n * n; });
    auto f = t.get_future();
    std::thread other(std::move(t), 7);
    EXPECT_EQ(f.get(), 49);
    other.join();
}

TEST(packaged_task, is_stopped_when_its_fiber_is_killed) {
    future<int> f;
    {
        weft::loop l;
        packaged_task<int()> t([] { return weft::this_fiber::sleep_for(1h), 1; }, l);
        f = t.get_future();
        weft::fiber waits(
            [&] {
                const weft::shield s;
                t();
            },
            {.on = l});
        waits.detach();
        l.run_until_idle();
        EXPECT_FALSE(f.is_ready());
    }
    EXPECT_EQ(f.error(), std::errc::operation_canceled);
}

TEST(packaged_task_misuse, second_call_aborts) {
    EXPECT_DEATH(
        {
            packaged_task<void()> t([] {});
            t();
            t();
        },
        "call of a packaged_task.*packaged_task_test.cpp");
}

}  // namespace
