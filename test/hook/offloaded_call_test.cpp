#include "weft/hook/detail/offloaded_call.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace weft;
using namespace std::chrono_literals;

std::atomic<int> calls_alive{0};

struct slow_call final : hook::offloaded_call {
    std::atomic<bool>& go;
    std::atomic<bool>& hurried;
    bool ran = false;
    slow_call(std::atomic<bool>& g, std::atomic<bool>& h) noexcept : go(g), hurried(h) {
        ++calls_alive;
    }
    ~slow_call() override { --calls_alive; }
    void run() noexcept override {
        while (!go) std::this_thread::yield();
        ran = true;
    }
    void hurry() noexcept override { hurried = true; }
};

TEST(offloaded_call, runs_on_another_thread_while_other_fibers_run) {
    std::atomic<bool> go{false};
    std::atomic<bool> hurried{false};
    run([&] {
        fiber other([&] { go = true; });
        const hook::offloaded_ptr e(new slow_call(go, hurried));
        EXPECT_EQ(hook::run_offloaded(*e, "a test"), 0);
        EXPECT_TRUE(e->ran);
    });
    while (calls_alive != 0) std::this_thread::yield();
    EXPECT_FALSE(hurried);
}

TEST(offloaded_call, is_abandoned_by_a_stopped_fiber) {
    std::atomic<bool> go{false};
    std::atomic<bool> hurried{false};
    run([&] {
        int answer = 0;
        fiber f([&] {
            const hook::offloaded_ptr e(new slow_call(go, hurried));
            answer = hook::run_offloaded(*e, "a test");
            EXPECT_EQ(hook::run_offloaded(*e, "again"), ECANCELED);
        });
        this_fiber::sleep_for(2ms);
        f.request_stop();
        f.join();
        EXPECT_EQ(answer, ECANCELED);
        EXPECT_EQ(calls_alive, 1);
        EXPECT_TRUE(hurried);
    });
    go = true;
    while (calls_alive != 0) std::this_thread::yield();
}

// Whether it was hurried; the caller has left it.
struct stopped_call final : hook::offloaded_call {
    std::atomic<bool> hurried{false};
    std::atomic<int>& missed;
    explicit stopped_call(std::atomic<int>& m) noexcept : missed(m) { ++calls_alive; }
    ~stopped_call() override { --calls_alive; }
    void run() noexcept override {
        for (int i = 0; i < 200 && !hurried; ++i) std::this_thread::sleep_for(1ms);
        if (!hurried) ++missed;
    }
    void hurry() noexcept override { hurried = true; }
};

// A stop that another thread requests may come after the check for one, and before the wait.
TEST(offloaded_call, is_hurried_whenever_the_stop_arrives) {
    std::atomic<int> missed{0};
    for (int i = 0; i < 60; ++i) {
        blocking_pool begins_a_thread;
        run([&] {
            std::atomic<bool> begins{false};
            fiber f([&] {
                const timeout_scope seen_at_once(1h);
                const hook::offloaded_ptr e(new stopped_call(missed));
                begins = true;
                EXPECT_EQ(hook::run_offloaded(*e, "a test", begins_a_thread), ECANCELED);
            });
            std::thread stops([&] {
                while (!begins) std::this_thread::yield();
                const auto some = std::chrono::steady_clock::now() + i % 20 * 1us;
                while (std::chrono::steady_clock::now() < some) {
                }
                f.request_stop();
            });
            stops.join();
            f.join();
        });
        while (calls_alive != 0) std::this_thread::yield();
    }
    EXPECT_EQ(missed, 0);
}

}  // namespace
