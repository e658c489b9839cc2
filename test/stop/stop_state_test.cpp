#include "weft/stop/detail/stop_state.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace weft::detail {
namespace {

TEST(stop_state, starts_without_a_reason_and_unlocked) {
    stop_state s;
    EXPECT_EQ(s.reason(), stop_reason::none);
    EXPECT_TRUE(s.lock_unless_requested());
    s.unlock();
}

TEST(stop_state, is_requested_once_and_keeps_its_first_reason) {
    stop_state s;
    EXPECT_TRUE(s.lock_and_request(stop_reason::deadline));
    EXPECT_EQ(s.reason(), stop_reason::deadline) << "seen while it is locked";
    s.unlock();
    EXPECT_FALSE(s.lock_and_request(stop_reason::user));
    EXPECT_FALSE(s.lock_unless_requested());
    EXPECT_EQ(s.reason(), stop_reason::deadline);
    s.lock();
    s.unlock();
    EXPECT_EQ(s.reason(), stop_reason::deadline);
}

TEST(stop_state, refuses_without_waiting_for_the_lock) {
    stop_state s;
    EXPECT_TRUE(s.lock_and_request(stop_reason::user));
    EXPECT_FALSE(s.lock_and_request(stop_reason::user));
    EXPECT_FALSE(s.lock_unless_requested());
    s.unlock();
}

TEST(stop_state, lock_is_exclusive) {
    constexpr int count = 50'000;
    stop_state s;
    int both = 0;
    auto add = [&] {
        for (int i = 0; i < count; ++i) {
            s.lock();
            ++both;
            s.unlock();
        }
    };
    std::thread other(add);
    add();
    other.join();
    EXPECT_EQ(both, 2 * count);
}

TEST(stop_state, request_publishes_earlier_writes) {
    for (int round = 0; round < 200; ++round) {
        stop_state s;
        int before = 0;
        std::thread other([&] {
            before = round + 1;
            EXPECT_TRUE(s.lock_and_request(stop_reason::user));
            s.unlock();
        });
        while (s.reason() == stop_reason::none) std::this_thread::yield();
        EXPECT_EQ(before, round + 1);
        other.join();
    }
}

}  // namespace
}  // namespace weft::detail
