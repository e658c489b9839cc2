#include "weft/hook/detail/blocked.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"

extern "C" int lock_in_library(pthread_mutex_t*);

namespace {

using namespace std::chrono_literals;
using namespace weft;

std::vector<hook::blocked_call> told;

class blocked : public ::testing::Test {
protected:
    void SetUp() override {
        told.clear();
        before_ = hook::on_blocked([](const hook::blocked_call& c) { told.push_back(c); });
    }
    void TearDown() override { hook::on_blocked(before_); }

    // A call from the source location of this number, which blocks for so long.
    static void block(int place, std::chrono::milliseconds d,
                      hook::blocks_thread::length l = hook::blocks_thread::any) {
        const hook::blocks_thread tells("a_call", &places[place], l);
        errno = place;
        const timespec t = {0, std::chrono::nanoseconds(d).count()};
        hook::real::nanosleep(&t, nullptr);
    }
    static inline char places[8];

private:
    hook::blocked_handler before_;
};

TEST_F(blocked, is_reported_once_per_caller_at_start_and_end) {
    const auto count = hook::blocked_count();
    run([] {
        for (int i = 0; i < 3; ++i) block(0, 3ms);
        block(1, 0ms);
    });
    ASSERT_EQ(told.size(), 4u);
    EXPECT_EQ(hook::blocked_count() - count, 2u);
    EXPECT_FALSE(told[0].is_over);
    EXPECT_TRUE(told[1].is_over);
    EXPECT_GE(told[1].lasted, 3ms);
    EXPECT_STREQ(told[1].call, "a_call");
    EXPECT_EQ(told[1].caller, &places[0]);
    EXPECT_EQ(told[2].caller, &places[1]);
}

TEST_F(blocked, names_the_fiber) {
    run([] {
        block(2, 0ms);
        EXPECT_EQ(told.at(0).fiber->id(), this_fiber::get_id());
    });
}

TEST_F(blocked, is_not_reported_on_a_thread_or_without_hooks) {
    block(3, 0ms);
    run([] {
        const hook::disabled_scope off;
        block(3, 0ms);
    });
    EXPECT_TRUE(told.empty());
}

TEST_F(blocked, is_reported_for_a_brief_wait_only_if_it_was_long) {
    run([] {
        block(4, 0ms, hook::blocks_thread::brief);
        EXPECT_TRUE(told.empty());
        block(4, 12ms, hook::blocks_thread::brief);
    });
    ASSERT_EQ(told.size(), 1u);
    EXPECT_TRUE(told[0].is_over);
    EXPECT_GE(told[0].lasted, 12ms);
}

TEST_F(blocked, preserves_errno) {
    hook::on_blocked([](const hook::blocked_call&) { errno = ENOTTY; });
    run([] {
        block(5, 0ms);
        EXPECT_EQ(errno, 5);
    });
}

TEST_F(blocked, is_one_stderr_line_with_the_caller) {
    hook::on_blocked(nullptr);
    ::testing::internal::CaptureStderr();
    run(
        [] {
            const hook::blocks_thread tells("sem_wait",
                                            reinterpret_cast<const void*>(&lock_in_library));
        },
        {.name = "waits"});
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("weft: blocked: fiber"), std::string::npos) << said;
    EXPECT_NE(said.find("\"waits\" blocks its thread in sem_wait, called by lock_in_library"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("\"waits\" has blocked its thread for 0 ms in sem_wait"), std::string::npos)
        << said;
}

}  // namespace
