#include "weft/hook/errand.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"

namespace {

using namespace weft;
using namespace std::chrono_literals;

std::atomic<int> errands_alive{0};

struct slow_errand final : hook::errand {
    std::atomic<bool>& go;
    std::atomic<bool>& hurried;
    bool ran = false;
    slow_errand(std::atomic<bool>& g, std::atomic<bool>& h) noexcept : go(g), hurried(h) {
        ++errands_alive;
    }
    ~slow_errand() override { --errands_alive; }
    void run() noexcept override {
        while (!go) std::this_thread::yield();
        ran = true;
    }
    void hurry() noexcept override { hurried = true; }
};

TEST(errand, is_run_by_another_thread_while_others_run) {
    std::atomic<bool> go{false};
    std::atomic<bool> hurried{false};
    run([&] {
        fiber other([&] { go = true; });
        const hook::errand_ptr e(new slow_errand(go, hurried));
        EXPECT_EQ(hook::run_errand(*e, "a test"), 0);
        EXPECT_TRUE(e->ran);
    });
    while (errands_alive != 0) std::this_thread::yield();
    EXPECT_FALSE(hurried);
}

TEST(errand, is_left_behind_by_who_is_stopped) {
    std::atomic<bool> go{false};
    std::atomic<bool> hurried{false};
    run([&] {
        int answer = 0;
        fiber f([&] {
            const hook::errand_ptr e(new slow_errand(go, hurried));
            answer = hook::run_errand(*e, "a test");
            EXPECT_EQ(hook::run_errand(*e, "again"), ECANCELED);
        });
        this_fiber::sleep_for(2ms);
        f.request_stop();
        f.join();
        EXPECT_EQ(answer, ECANCELED);
        EXPECT_EQ(errands_alive, 1);
        EXPECT_TRUE(hurried);
    });
    go = true;
    while (errands_alive != 0) std::this_thread::yield();
}

}  // namespace
