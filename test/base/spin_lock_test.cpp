#include "weft/base/detail/spin_lock.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "test/support/slow.hpp"

namespace weft {
namespace {

using testing::slow;

static_assert(sizeof(detail::spin_lock) == 1);
static_assert(!std::is_copy_constructible_v<detail::spin_lock> &&
              !std::is_move_assignable_v<detail::spin_lock>);
constinit detail::spin_lock needs_no_start;

TEST(spin_lock, can_be_locked_only_once_until_unlocked) {
    detail::spin_lock lock;
    EXPECT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
    const std::lock_guard held(needs_no_start);
    EXPECT_FALSE(needs_no_start.try_lock());
}

// ThreadSanitizer checks the plain counter.
TEST(spin_lock, excludes_real_threads_and_publishes_their_writes) {
    constexpr int threads = 4;
    const int rounds = slow ? 5'000 : 50'000;
    detail::spin_lock lock;
    long count = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            for (int i = 0; i < rounds; ++i) {
                if (t % 2 == 0) {
                    lock.lock();
                } else {
                    while (!lock.try_lock()) std::this_thread::yield();
                }
                ++count;
                lock.unlock();
            }
        });
    for (std::thread& t : all) t.join();
    EXPECT_EQ(count, long{threads} * rounds);
}

// More threads want the lock than there are processors, and the owner yields its processor. A
// waiter yields the processor back, so that this comes to an end.
TEST(spin_lock, yields_to_a_preempted_owner) {
    detail::spin_lock lock;
    int entered = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < 8; ++t)
        all.emplace_back([&] {
            for (int i = 0; i < 50; ++i) {
                const std::lock_guard held(lock);
                std::this_thread::yield();
                ++entered;
            }
        });
    for (std::thread& t : all) t.join();
    EXPECT_EQ(entered, 8 * 50);
}

}  // namespace
}  // namespace weft
