#include "weft/wait/detail/home_lock.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "weft/sched/loop.hpp"

namespace {

using weft::detail::home_lock;

// As the executor that runs here.
template <class F>
void on(weft::loop& l, F f) {
    l.post([&]() noexcept { f(); });
    l.run_until_idle();
}
void take(home_lock& lock, std::uint32_t times) {
    while (times-- != 0) const std::lock_guard held(lock);
}
bool may_be_owned() { return weft::detail::asymmetric_fence().is_free(); }

TEST(home_lock, is_owned_by_an_executor_that_takes_it_repeatedly) {
    weft::loop l;
    home_lock lock;
    on(l, [&] {
        take(lock, home_lock::first_streak);
        EXPECT_FALSE(lock.is_owned_here());
        take(lock, 1);
        EXPECT_EQ(lock.is_owned_here(), may_be_owned());
        take(lock, 10);
        EXPECT_EQ(lock.is_owned_here(), may_be_owned());
    });
}

TEST(home_lock, is_unowned_after_another_takes_it_until_a_longer_streak) {
    weft::loop l;
    home_lock lock;
    on(l, [&] { take(lock, 2 * home_lock::first_streak); });
    take(lock, 2 * home_lock::first_streak);  // on no executor
    on(l, [&] {
        EXPECT_FALSE(lock.is_owned_here());
        take(lock, 2 * home_lock::first_streak);
        EXPECT_FALSE(lock.is_owned_here());
        take(lock, home_lock::streak_growth * home_lock::first_streak);
        EXPECT_EQ(lock.is_owned_here(), may_be_owned());
    });
}

TEST(home_lock, is_owned_by_no_other_executor_after_the_first) {
    weft::loop first, second;
    home_lock lock;
    on(first, [&] { take(lock, 2 * home_lock::first_streak); });
    on(second, [&] {
        take(lock, 4 * home_lock::streak_growth * home_lock::first_streak);
        EXPECT_FALSE(lock.is_owned_here());
    });
}

TEST(home_lock, excludes_an_owner_and_others) {
    constexpr int rounds = 20'000;
    home_lock lock;
    long count = 0;
    const auto add = [&](int times) {
        for (int i = 0; i < times; ++i) {
            const std::lock_guard held(lock);
            ++count;
        }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&] {
            weft::loop l;
            on(l, [&] { add(50 * rounds); });
        });
    threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
            add(1);
            std::this_thread::yield();
        }
    });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(count, 100L * rounds + 200);
}

}  // namespace
