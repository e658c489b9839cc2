#include "weft/base/detail/system_mutex.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace weft;
using namespace std::chrono_literals;

TEST(system_mutex, admits_one_thread_at_a_time_and_loses_none) {
    constexpr int rounds = 20'000;
    detail::system_mutex lock;
    int count = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                const std::lock_guard held(lock);
                ++count;
                if (i % 64 == 0) std::this_thread::yield();
            }
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(count, 4 * rounds);
    EXPECT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
}

TEST(system_mutex, blocks_while_another_thread_owns_it) {
    detail::system_mutex lock;
    std::unique_lock held(lock);
    std::thread other([&] { const std::lock_guard too(lock); });
    std::this_thread::sleep_for(20ms);
    held.unlock();
    other.join();
}

TEST(system_condition, misses_no_change_made_under_the_lock) {
    constexpr int items = 20'000;
    detail::system_mutex lock;
    detail::system_condition changed;
    std::deque<int> queue;
    long sum = 0;
    std::vector<std::thread> takers;
    for (int t = 0; t < 3; ++t)
        takers.emplace_back([&] {
            for (;;) {
                std::unique_lock held(lock);
                while (queue.empty()) changed.wait(held);
                const int x = queue.front();
                if (x < 0) return;
                queue.pop_front();
                sum += x;
            }
        });
    for (int i = 0; i < items; ++i) {
        const std::lock_guard held(lock);
        queue.push_back(1);
        changed.notify_one();
    }
    {
        const std::lock_guard held(lock);
        queue.push_back(-1);
    }
    changed.notify_all();
    for (auto& t : takers) t.join();
    EXPECT_EQ(sum, items);
}

TEST(system_condition, wait_ends_at_its_deadline) {
    detail::system_mutex lock;
    detail::system_condition changed;
    std::unique_lock held(lock);
    const time_point end = after(steady_now(), 5ms);
    while (changed.wait_until(held, end)) {
    }
    EXPECT_GE(steady_now(), end);
    EXPECT_FALSE(changed.wait_until(held, time_point::min()));
}

}  // namespace
