#include "weft/base/detail/atomic.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <type_traits>

namespace {

TEST(atomic, is_std_atomic_outside_the_checker) {
    static_assert(std::is_same_v<weft::atomic<int>, std::atomic<int>>);
    static_assert(WEFT_MODEL == 0);
    static constinit weft::atomic<unsigned> word{1};
    EXPECT_EQ(word.fetch_or(2u), 1u);
    EXPECT_EQ(word.load(), 3u);
}

TEST(atomic, store_is_seen_by_a_spinning_thread) {
    weft::atomic<int> turn{0};
    std::thread other([&] {
        while (turn.load(std::memory_order_acquire) == 0) weft::detail::spin_pause();
        turn.store(2, std::memory_order_release);
    });
    turn.store(1, std::memory_order_release);
    while (turn.load(std::memory_order_acquire) == 1) weft::detail::spin_pause();
    other.join();
    EXPECT_EQ(turn.load(), 2);
}

}  // namespace
