#include "weft/sync/recursive_mutex.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "test/support/parties.hpp"

using namespace std::chrono_literals;

namespace {

TEST(recursive_mutex, its_holder_may_lock_it_again) {
    weft::recursive_mutex m;
    const std::lock_guard outer(m);
    EXPECT_TRUE(m.try_lock());
    EXPECT_TRUE(m.try_lock_for(1h));
    m.lock();
    for (int i = 0; i < 3; ++i) m.unlock();
    EXPECT_TRUE(m.is_mine());
    std::thread([&] {
        EXPECT_FALSE(m.try_lock());
        EXPECT_FALSE(m.try_lock_for(1ms));
    }).join();
}

TEST(recursive_mutex, is_handed_on_when_it_was_unlocked_as_often_as_locked) {
    weft::loop l;
    weft::recursive_mutex m;
    int inside = 0;
    std::vector<weft::fiber> fibers;
    for (int i = 0; i < 3; ++i)
        fibers.emplace_back(
            [&] {
                for (int k = 0; k < 10; ++k) {
                    const std::lock_guard outer(m);
                    EXPECT_EQ(inside++, 0);
                    weft::this_fiber::yield();
                    {
                        const std::lock_guard inner(m);
                        weft::this_fiber::yield();
                    }
                    EXPECT_EQ(inside--, 1);
                }
            },
            weft::fiber_options{.on = &l});
    l.run();
    for (auto& f : fibers) f.join();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(recursive_mutex, a_task_in_a_fiber_is_the_fiber) {
    weft::loop l;
    weft::recursive_mutex m;
    weft::fiber f(
        [&] {
            const std::lock_guard outer(m);
            auto inner = [&]() -> weft::task<bool> {
                co_await m.async_lock();
                m.unlock();
                const bool again = co_await m.async_lock_until(weft::never);
                m.unlock();
                co_return again;
            };
            EXPECT_TRUE(weft::await(inner()));
        },
        {.on = &l});
    l.run();
    f.join();
}

TEST(recursive_mutex_death, an_unlock_by_a_stranger) {
    EXPECT_DEATH(
        {
            weft::recursive_mutex m;
            m.lock();
            std::thread([&] { m.unlock(); }).join();
        },
        "unlock of a mutex, which is held by thread");
}

TEST(recursive_mutex_death, a_coroutine_in_no_flow) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::recursive_mutex m;
            l.post([&] { m.lock(); });
            l.run();
        },
        "a recursive_mutex is used by a coroutine in no flow");
}

}  // namespace
