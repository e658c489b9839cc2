#include "weft/sync/recursive_mutex.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "test/support/agents.hpp"

using namespace std::chrono_literals;

namespace {

TEST(recursive_mutex, its_owner_may_lock_it_again) {
    weft::recursive_mutex m;
    const std::lock_guard outer(m);
    EXPECT_TRUE(m.try_lock());
    EXPECT_TRUE(m.try_lock_for(1h));
    m.lock();
    for (int i = 0; i < 3; ++i) m.unlock();
    EXPECT_TRUE(m.is_owned_by_caller());
    std::thread([&] {
        EXPECT_FALSE(m.try_lock());
        EXPECT_FALSE(m.try_lock_for(1ms));
    }).join();
}

TEST(recursive_mutex, passes_ownership_after_as_many_unlocks_as_locks) {
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
            weft::fiber_options{.on = l});
    l.run();
    for (auto& f : fibers) f.join();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

class recursive_mutex_among : public weft::testing::among {};

TEST_P(recursive_mutex_among, has_one_owner_at_any_lock_depth) {
    weft::recursive_mutex m;
    int inside = 0;
    run_many(4, [&](auto wait) -> weft::task<> {
        for (int i = 0; i < 50; ++i) {
            co_await wait(m.async_lock());
            EXPECT_EQ(inside++, 0);
            const bool again = co_await wait(m.async_lock(weft::never));
            EXPECT_TRUE(again && m.is_owned_by_caller() && m.try_lock());
            if (i % 8 == 0) co_await wait(weft::sleep_for(0s));
            m.unlock();
            m.unlock();
            EXPECT_EQ(--inside, 0);
            m.unlock();
        }
    });
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

WEFT_INSTANTIATE_AMONG_KINDS(recursive_mutex_among, weft::testing::kind::fiber,
                             weft::testing::kind::task, weft::testing::kind::thread);

TEST(recursive_mutex_death, unlock_by_a_non_owner) {
    EXPECT_DEATH(
        {
            weft::recursive_mutex m;
            m.lock();
            std::thread([&] { m.unlock(); }).join();
        },
        "unlock of a mutex, which is held by thread");
}

TEST(recursive_mutex_death, lock_outside_any_flow) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::recursive_mutex m;
            l.post([&] { m.lock(); });
            l.run();
        },
        "a recursive_mutex is used by a coroutine outside any flow .*recursive_mutex_test.cpp");
}

// Two of these side by side would be let in at once.
TEST(recursive_mutex_death, lock_by_a_coroutine_started_by_user_code) {
    weft::recursive_mutex m;
    const auto body = [&]() -> weft::task<> { co_await m.async_lock(); };
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::fiber f(
                [&] {
                    weft::task<> t = body();
                    t.start();
                },
                {.name = "alice", .on = l});
            l.run();
        },
        "async_lock of a recursive_mutex in a coroutine that is no task of its own: "
        "fiber [0-9]+ \"alice\"");
    EXPECT_DEATH(body().start(), "async_lock of a recursive_mutex in a coroutine that is no task");
}

}  // namespace
