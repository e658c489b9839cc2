#include "weft/base/detail/futex.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace {

using namespace weft;
using namespace std::chrono_literals;

TEST(futex, blocks_a_thread_until_another_changes_the_word) {
    atomic<std::uint32_t> word{0};
    std::thread sleeper([&] {
        while (word.load(std::memory_order_acquire) == 0) weft::detail::futex_wait(word, 0);
    });
    // Windows does not say how many it has woken: there the sleeper need not have come.
    while (weft::detail::futex_wake(&word) == 0 && !WEFT_WINDOWS) std::this_thread::yield();
    word.store(1, std::memory_order_release);
    weft::detail::futex_wake(&word);
    sleeper.join();
}

TEST(futex, does_not_block_when_the_word_differs) {
    atomic<std::uint32_t> word{1};
    EXPECT_TRUE(weft::detail::futex_wait(word, 0));
}

TEST(futex, blocks_until_its_deadline_and_preserves_errno) {
    atomic<std::uint32_t> word{0};
    errno = EDOM;
    for (const time_point end : {after(steady_now(), 5ms), time_point{}, time_point::min()}) {
        while (weft::detail::futex_wait(word, 0, end)) {
        }
        EXPECT_GE(steady_now(), end);
    }
    EXPECT_EQ(weft::detail::futex_wake(&word), 0);
    EXPECT_EQ(errno, EDOM);
}

}  // namespace
