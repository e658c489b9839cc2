#include "weft/wait/from_callback.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

#include "test/task/on_loop.hpp"
#include "weft/fiber/fiber.hpp"

namespace {

using namespace on_loop;
using weft::completion;
using weft::from_callback;

TEST(from_callback, returns_the_callbacks_argument) {
    const auto body = []() -> task<> {
        auto r = co_await from_callback<int>([](auto done) { EXPECT_TRUE(done(4)); });
        EXPECT_EQ(r.value(), 4);
        auto m = co_await from_callback<std::unique_ptr<int>>(
            [](auto done) { done(std::make_unique<int>(5)); });
        EXPECT_EQ(**m, 5);
        auto v = co_await from_callback<void>([](auto done) { done(); });
        EXPECT_TRUE(v.has_value());
    };
    run(body());
}

// What a C interface does with a function and a pointer.
extern "C" {
using c_callback = void (*)(void* user, int answer);
}

TEST(from_callback, works_through_a_c_pointer_and_another_thread) {
    const c_callback on_done = [](void* user, int answer) {
        EXPECT_TRUE(completion<int>::adopt(user)(answer));
    };
    for (int i = 0; i < 200; ++i) {
        std::thread sdk;
        weft::result<int> r = weft::await_callback<int>([&](auto done) {
            sdk = std::thread([on_done, user = done.release(), i] { on_done(user, i); });
        });
        EXPECT_EQ(r.value(), i);
        sdk.join();
    }
}

TEST(from_callback, a_second_call_is_ignored_and_returns_false) {
    const auto body = []() -> task<> {
        auto r = co_await from_callback<int>([](auto done) {
            auto other = done;
            EXPECT_TRUE(done(1));
            EXPECT_FALSE(other(2));
        });
        EXPECT_EQ(r.value(), 1);
    };
    run(body());
}

TEST(from_callback, a_dropped_callback_ends_the_wait_with_an_error) {
    weft::testing::virtual_loop l(1);
    std::optional<completion<int>> kept;
    const auto body = [&]() -> task<> {
        auto r = co_await from_callback<int>([](auto) {});
        EXPECT_EQ(r.error(), weft::errc::broken_promise);
        r = co_await from_callback<int>([&](auto done) { kept = done; });
        EXPECT_EQ(r.error(), weft::errc::broken_promise);
    };
    weft::detail::task_run<void> t(body(), l.loop());
    t->post_first_turn();
    l.loop().run_until_idle();
    EXPECT_FALSE(t->has_ended());
    kept.reset();
    l.run();
    t.take();
}

TEST(from_callback, a_call_after_a_stop_returns_false) {
    weft::testing::virtual_loop l(1);
    std::optional<completion<int>> kept;
    weft::fiber f(
        [&] {
            auto r = weft::await_callback<int>([&](auto done) { kept = done; });
            EXPECT_EQ(r.error(), std::errc::operation_canceled);
        },
        {.on = l});
    l.loop().run_until_idle();
    f.request_stop();
    l.run();
    f.join();
    EXPECT_FALSE((*kept)(3));
}

TEST(from_callback, an_exception_of_the_start_function_leaves_the_wait) {
    const auto body = []() -> task<> {
        static_cast<void>(co_await from_callback<int>([](auto) { throw 6; }));
    };
    EXPECT_THROW(run(body()), int);
}

TEST(from_callback, outlives_a_frame_that_is_destroyed) {
    weft::testing::virtual_loop l(1);
    std::optional<completion<int>> kept;
    const auto body = [](std::optional<completion<int>>& k) -> task<> {
        static_cast<void>(co_await from_callback<int>([&](auto done) { k = done; }));
    };
    task<> t = body(kept);
    l.loop().post([&] { t.start(); });
    l.loop().run_until_idle();
    l.loop().post([&] { t = task<>(); });
    l.loop().run_until_idle();
    EXPECT_FALSE((*kept)(3));
}

TEST(from_callback, a_stop_by_the_start_function_ends_the_wait) {
    weft::testing::virtual_loop l(1);
    std::optional<completion<int>> kept;
    weft::fiber f(
        [&] {
            auto r = weft::await_callback<int>([&](auto done) {
                kept = done;
                weft::current_flow()->request_stop(weft::stop_reason::user);
            });
            EXPECT_EQ(r.error(), std::errc::operation_canceled);
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_FALSE((*kept)(3));
}

// The start function itself waits, under a shield, and the stop comes then.
TEST(from_callback, a_stop_during_the_start_function_ends_the_wait) {
    weft::testing::virtual_loop l(1);
    std::optional<completion<int>> kept;
    weft::fiber f(
        [&] {
            auto r = weft::await_callback<int>([&](auto done) {
                kept = done;
                const weft::shield s;
                weft::this_fiber::sleep_for(2ms);
            });
            EXPECT_EQ(r.error(), std::errc::operation_canceled);
        },
        {.on = l});
    weft::fiber stops(
        [&] {
            weft::this_fiber::sleep_for(1ms);
            f.request_stop();
        },
        {.on = l});
    l.run();
    f.join();
    stops.join();
    EXPECT_FALSE((*kept)(3));
}

struct cannot_be_made {
    explicit cannot_be_made(int n) {
        if (n != 0) throw n;
    }
};

TEST(from_callback, a_throwing_value_ends_the_wait_and_reaches_the_caller) {
    weft::testing::virtual_loop l(1);
    std::optional<completion<cannot_be_made>> kept;
    weft::fiber f(
        [&] {
            auto r = weft::await_callback<cannot_be_made>([&](auto done) { kept = done; });
            EXPECT_EQ(r.error(), weft::errc::broken_promise);
        },
        {.on = l});
    l.loop().run_until_idle();
    EXPECT_THROW((*kept)(4), int);
    EXPECT_FALSE((*kept)(0)) << "it was the call that counts";
    l.loop().run_until_idle();
    EXPECT_EQ(l.loop().flow_count(), 0u);
    kept.reset();
    l.run();
    f.join();
}

}  // namespace
