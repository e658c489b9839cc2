#include "weft/sched/blocking.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/support/allocation_fails.hpp"
#include "test/support/allocations.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/detail/thread_executor.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/stopped.hpp"

namespace {

using namespace std::chrono_literals;
using weft::blocking_pool;
using weft::fiber;
using weft::run_blocking;

// A door at which a call waits until it is opened.
class door {
public:
    void open() { open_.store(true), open_.notify_all(); }
    void pass() {
        passing_.store(true), passing_.notify_all();
        open_.wait(false);
    }
    void wait_until_somebody_stands_here() { passing_.wait(false); }

private:
    std::atomic<bool> open_{false};
    std::atomic<bool> passing_{false};
};

template <class F>
void on_a_loop(F f) {
    weft::loop l;
    fiber main(std::move(f), {.on = l});
    l.run();
}

TEST(blocking, runs_on_the_caller_without_memory_for_a_thread) {
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "a sanitizer has operators of its own";
    blocking_pool p;
    static_cast<void>(weft::detail::this_thread_host());  // made before
    const auto here = std::this_thread::get_id();
    const auto call = [&] {
        const weft::testing::allocation_fails no_memory(1);
        return run_blocking([] { return std::this_thread::get_id(); }, p);
    };
    EXPECT_EQ(call(), here);
    EXPECT_EQ(p.thread_count(), 0u);
    EXPECT_NE(run_blocking([] { return std::this_thread::get_id(); }, p), here);
}

TEST(blocking, keeps_an_idle_thread_for_its_idle_timeout) {
    blocking_pool p({.idle_timeout = weft::duration::max()});
    run_blocking([] {}, p);
    for (int n = 0; n != 2000; ++n) {
        ASSERT_EQ(p.thread_count(), 1u);
        std::this_thread::yield();
    }
}

TEST(blocking, runs_on_another_thread_and_returns_the_result) {
    on_a_loop([] {
        const auto here = std::this_thread::get_id();
        EXPECT_NE(run_blocking([] { return std::this_thread::get_id(); }), here);
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_EQ(*run_blocking([] { return std::make_unique<int>(7); }), 7);
        int changed = 0;
        run_blocking([&] { changed = 1; });
        EXPECT_EQ(changed, 1);
        EXPECT_EQ(&run_blocking([&]() -> int& { return changed; }), &changed);
    });
}

TEST(blocking, lets_the_loop_run_meanwhile) {
    on_a_loop([] {
        door d;
        fiber other([&] {
            d.wait_until_somebody_stands_here();
            d.open();
        });
        run_blocking([&] { d.pass(); });
        other.join();
    });
}

TEST(blocking, serves_a_task_and_a_plain_thread) {
    auto t = []() -> weft::task<int> {
        co_return co_await weft::async_run_blocking([] { return 1; }) +
            co_await weft::async_run_blocking([] { return 2; });
    };
    EXPECT_EQ(weft::sync_wait(t()), 3);
    EXPECT_EQ(run_blocking([] { return 4; }), 4);
}

TEST(blocking, rethrows_the_exception_of_the_call) {
    on_a_loop([] {
        EXPECT_THROW(run_blocking([] { throw std::runtime_error("x"); }), std::runtime_error);
        EXPECT_THROW(run_blocking([]() -> int { throw 7; }), int);
    });
}

TEST(blocking, runs_no_more_threads_than_its_limit) {
    blocking_pool pool({.max_thread_count = 3});
    std::atomic<int> now{0};
    std::atomic<int> most{0};
    on_a_loop([&] {
        std::vector<fiber> all;
        for (int i = 0; i < 50; ++i)
            all.emplace_back([&] {
                run_blocking(
                    [&] {
                        const int n = ++now;
                        for (int m = most; m < n && !most.compare_exchange_weak(m, n);) {
                        }
                        std::this_thread::yield();
                        --now;
                    },
                    pool);
            });
        for (fiber& f : all) f.join();
    });
    EXPECT_LE(most.load(), 3);
    EXPECT_LE(pool.thread_count(), 3u);
    EXPECT_EQ(pool.waiting_count(), 0u);
}

TEST(blocking, threads_end_when_they_are_idle) {
    blocking_pool pool({.max_thread_count = 4, .idle_timeout = 1ms});
    run_blocking([] {}, pool);
    for (int i = 0; pool.thread_count() != 0 && i < 5000; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(pool.thread_count(), 0u);
    EXPECT_EQ(run_blocking([] { return 1; }, pool), 1);
}

TEST(blocking, a_stop_ends_the_wait_for_a_call_not_yet_started) {
    blocking_pool pool({.max_thread_count = 1});
    on_a_loop([&] {
        door d;
        fiber first([&] { run_blocking([&] { d.pass(); }, pool); });
        bool ran = false;
        bool stopped = false;
        fiber second([&] {
            try {
                run_blocking([&] { ran = true; }, pool);
            } catch (const weft::stopped&) {
                stopped = true;
            }
        });
        while (pool.waiting_count() != 1) weft::this_fiber::yield();
        second.request_stop();
        second.join();
        EXPECT_TRUE(stopped);
        EXPECT_FALSE(ran);
        d.open();
        first.join();
    });
}

TEST(blocking, a_stop_does_not_end_a_call_already_started) {
    on_a_loop([] {
        door d;
        int got = 0;
        fiber f([&] {
            got = run_blocking([&] {
                d.pass();
                return 5;
            });
        });
        weft::this_fiber::yield();
        d.wait_until_somebody_stands_here();
        f.request_stop();
        weft::this_fiber::yield();
        EXPECT_FALSE(f.done());
        d.open();
        f.join();
        EXPECT_EQ(got, 5);
    });
}

// The call uses memory of the frame, so the frame stays until the call is done.
TEST(blocking, a_destroyed_frame_waits_for_its_call) {
    door d;
    std::atomic<bool> over{false};
    std::thread opener;
    {
        weft::loop l;
        fiber f(
            [&] {
                const weft::shield held;
                std::string mine(1000, 'x');
                run_blocking([&] {
                    d.pass();
                    mine.assign(1000, 'y');
                    over = true;
                });
            },
            {.on = l});
        l.run_once(weft::steady_now());
        d.wait_until_somebody_stands_here();
        opener = std::thread([&] {
            std::this_thread::sleep_for(5ms);
            d.open();
        });
        f.detach();
    }
    EXPECT_TRUE(over.load());
    opener.join();
}

TEST(blocking, runs_a_posted_call_that_has_no_waiter) {
    door d;
    blocking_pool pool;  // destroyed first, when its call is done
    EXPECT_TRUE(pool.post([&, own = std::make_unique<int>(1)] { d.pass(); }));
    d.wait_until_somebody_stands_here();
    d.open();
}

TEST(blocking, refuses_a_posted_call_when_there_is_no_memory) {
    if (WEFT_TEST_ASAN || WEFT_TEST_TSAN) GTEST_SKIP() << "a sanitizer has operators of its own";
    blocking_pool pool;
    for (const long n : {1, 2}) {  // for the call, and for a thread
        const weft::testing::allocation_fails no_memory(n);
        EXPECT_FALSE(pool.post([] { ADD_FAILURE(); }));
    }
    EXPECT_EQ(pool.thread_count(), 0u);
    EXPECT_EQ(pool.waiting_count(), 0u);
}

TEST(blocking, loses_none_of_a_thousand_calls_from_two_loops) {
    blocking_pool pool({.max_thread_count = 4});
    std::atomic<int> sum{0};
    auto half = [&] {
        weft::loop l;
        std::vector<fiber> all;
        for (int i = 0; i < 500; ++i)
            all.emplace_back([&] { sum += run_blocking([] { return 1; }, pool); },
                             weft::fiber_options{.on = l});
        l.run();
    };
    std::thread other(half);
    half();
    other.join();
    EXPECT_EQ(sum.load(), 1000);
}

}  // namespace
