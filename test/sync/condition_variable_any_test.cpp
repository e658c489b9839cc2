#include "weft/sync/condition_variable_any.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "test/support/agents.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/stop/stop_source.hpp"
#include "weft/sync/recursive_mutex.hpp"
#include "weft/sync/shared_mutex.hpp"
#include "weft/wait/shield.hpp"

using namespace std::chrono_literals;

namespace {

// Counts, and knows nothing of an owner: a BasicLockable and no more.
struct counting_lock {
    weft::mutex m;
    int locks = 0, unlocks = 0;
    bool throws_next = false;
    void lock() {
        if (std::exchange(throws_next, false)) throw 7;
        m.lock();
        ++locks;
    }
    void unlock() noexcept {
        ++unlocks;
        m.unlock();
    }
};

template <class Lock>
concept can_await_with = requires(weft::condition_variable_any& c, Lock& l) { c.async_wait(l); };
static_assert(can_await_with<std::unique_lock<weft::mutex>>);
static_assert(can_await_with<std::unique_lock<weft::recursive_mutex>>);
static_assert(can_await_with<std::unique_lock<weft::shared_mutex>>);
static_assert(can_await_with<std::shared_lock<weft::shared_mutex>>);
static_assert(!can_await_with<std::unique_lock<std::mutex>>);
static_assert(!can_await_with<counting_lock>);

class condition_variable_any_among : public weft::testing::among {};

TEST_P(condition_variable_any_among, a_bounded_queue_loses_nothing) {
    weft::mutex m;
    weft::condition_variable_any changed;
    std::deque<int> queue;
    std::vector<int> got;
    constexpr int count = 200;
    run(
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < count; ++i) {
                std::unique_lock lock = co_await wait(m.async_scoped_lock());
                while (queue.size() == 3) co_await wait(changed.async_wait(lock));
                queue.push_back(i);
                changed.notify_one();
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < count; ++i) {
                std::unique_lock lock = co_await wait(m.async_scoped_lock());
                while (queue.empty()) co_await wait(changed.async_wait(lock));
                got.push_back(queue.front());
                queue.pop_front();
                changed.notify_one();
            }
        });
    ASSERT_EQ(got.size(), std::size_t{count});
    for (int i = 0; i < count; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
}

TEST_P(condition_variable_any_among, readers_wait_for_a_writer) {
    weft::shared_mutex m;
    weft::condition_variable_any changed;
    int version = 0, seen = 0;
    constexpr int count = 50;
    run(
        [&](auto wait) -> weft::task<> {
            std::shared_lock reads = co_await wait(m.async_scoped_lock_shared());
            while (seen != count) {
                while (version == seen) co_await wait(changed.async_wait(reads));
                EXPECT_TRUE(reads.owns_lock() && m.is_shared());
                seen = version;
                changed.notify_all();
            }
        },
        [&](auto wait) -> weft::task<> {
            for (int i = 0; i < count; ++i) {
                std::unique_lock writes = co_await wait(m.async_scoped_lock());
                while (version != seen) co_await wait(changed.async_wait(writes));
                EXPECT_TRUE(writes.owns_lock() && !m.is_shared());
                ++version;
                changed.notify_all();
            }
        });
    EXPECT_EQ(seen, count);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST_P(condition_variable_any_among, a_deadline_ends_a_wait_with_the_lock_held) {
    weft::shared_mutex m;
    weft::condition_variable_any never_notified;
    int inside = 0;
    run_many(3, [&](auto wait) -> weft::task<> {
        std::unique_lock lock = co_await wait(m.async_scoped_lock());
        const auto until = weft::after(weft::now(), 2ms);
        const auto how = co_await wait(never_notified.async_wait(lock, until));
        EXPECT_EQ(how, std::cv_status::timeout);
        EXPECT_GE(weft::now(), until);
        EXPECT_TRUE(lock.owns_lock());
        EXPECT_EQ(inside++, 0);
        co_await wait(weft::sleep_for(0s));
        EXPECT_EQ(--inside, 0);
    });
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

WEFT_INSTANTIATE_AMONG(condition_variable_any_among);

class condition_variable_any_of_tasks : public weft::testing::among {};

// Only an agent of its own may await a recursive_mutex.
TEST_P(condition_variable_any_of_tasks, waits_with_a_recursive_mutex) {
    weft::recursive_mutex m;
    weft::condition_variable_any changed;
    int turn = 0;
    const auto takes_turns = [&](int mine) {
        return [&, mine](auto wait) -> weft::task<> {
            for (int i = 0; i < 50; ++i) {
                std::unique_lock lock = co_await wait(m.async_scoped_lock());
                while (turn % 2 != mine) co_await wait(changed.async_wait(lock));
                EXPECT_TRUE(m.is_owned_by_caller());
                ++turn;
                changed.notify_all();
            }
        };
    };
    run(takes_turns(0), takes_turns(1));
    EXPECT_EQ(turn, 100);
}

WEFT_INSTANTIATE_AMONG_KINDS(condition_variable_any_of_tasks, weft::testing::kind::task);

TEST(condition_variable_any, a_fiber_and_a_thread_wait_with_a_recursive_mutex) {
    weft::recursive_mutex m;
    weft::condition_variable_any changed;
    int turn = 0;
    const auto take_turns = [&](int mine) {
        for (int i = 0; i < 50; ++i) {
            std::unique_lock lock(m);
            changed.wait(lock, [&] { return turn % 2 == mine; });
            EXPECT_TRUE(m.is_owned_by_caller());
            ++turn;
            changed.notify_all();
        }
    };
    std::thread other([&] { take_turns(1); });
    weft::loop l;
    weft::fiber f([&] { take_turns(0); }, {.on = l});
    l.run();
    f.join();
    other.join();
    EXPECT_EQ(turn, 100);
}

TEST(condition_variable_any, waits_with_a_lock_that_has_only_lock_and_unlock) {
    weft::testing::virtual_loop l;
    counting_lock m;
    weft::condition_variable_any c;
    bool ready = false;
    weft::fiber waits(
        [&] {
            m.lock();
            EXPECT_FALSE(c.wait_for(m, 10ms, [&] { return ready; }));
            c.wait(m, [&] { return ready; });
            EXPECT_TRUE(m.m.is_owned_by_caller());
            m.unlock();
        },
        {.on = l});
    weft::fiber notifies(
        [&] {
            weft::this_fiber::sleep_for(20ms);
            const std::lock_guard held(m);
            ready = true;
            c.notify_one();
        },
        {.on = l});
    l.run();
    waits.join();
    notifies.join();
    EXPECT_EQ(m.locks, 4);
    EXPECT_EQ(m.unlocks, 4);
}

TEST(condition_variable_any, waits_with_std_mutexes_on_threads) {
    std::mutex m;
    std::shared_mutex s;
    weft::condition_variable_any c;
    bool ready = false, shared_ready = false;
    {
        std::unique_lock lock(m);
        EXPECT_EQ(c.wait_for(lock, 1ms), std::cv_status::timeout);
        EXPECT_TRUE(lock.owns_lock());
    }
    std::thread waits([&] {
        {
            std::unique_lock lock(m);
            c.wait(lock, [&] { return ready; });
            EXPECT_TRUE(lock.owns_lock());
        }
        std::shared_lock reads(s);
        c.wait(reads, [&] { return shared_ready; });
        EXPECT_TRUE(reads.owns_lock());
    });
    {
        const std::lock_guard held(m);
        ready = true;
    }
    c.notify_all();
    {
        const std::lock_guard held(s);
        shared_ready = true;
    }
    c.notify_all();
    waits.join();
    EXPECT_TRUE(m.try_lock() && s.try_lock());
    m.unlock();
    s.unlock();
}

TEST(condition_variable_any, notify_one_wakes_the_first_whatever_its_lock) {
    weft::loop l;
    weft::mutex m;
    weft::shared_mutex s;
    weft::condition_variable_any c;
    std::vector<int> order;
    weft::fiber first(
        [&] {
            std::unique_lock lock(m);
            c.wait(lock);
            order.push_back(1);
        },
        {.on = l});
    l.run_until_idle();
    weft::fiber second(
        [&] {
            std::shared_lock lock(s);
            c.wait(lock);
            order.push_back(2);
        },
        {.on = l});
    l.run_until_idle();
    c.notify_one();
    l.run_until_idle();
    EXPECT_EQ(order, (std::vector{1}));
    c.notify_one();
    l.run();
    EXPECT_EQ(order, (std::vector{1, 2}));
    first.join();
    second.join();
}

// A stop comes while another agent holds the lock: the waiter throws only when it has it.
TEST(condition_variable_any, relocks_even_when_stopped) {
    weft::testing::virtual_loop l;
    weft::shared_mutex m;
    weft::condition_variable_any c;
    bool held_by_other = false;
    weft::fiber waits(
        [&] {
            std::shared_lock lock(m);
            try {
                c.wait(lock);
                ADD_FAILURE() << "was not stopped";
            } catch (const weft::stopped& s) {
                EXPECT_EQ(s.reason, weft::stop_reason::user);
                EXPECT_TRUE(lock.owns_lock());
                EXPECT_FALSE(held_by_other);
                throw;
            }
        },
        {.on = l});
    weft::fiber stops(
        [&] {
            weft::this_fiber::sleep_for(1ms);
            const std::lock_guard held(m);
            held_by_other = true;
            waits.request_stop();
            weft::this_fiber::sleep_for(5ms);
            held_by_other = false;
        },
        {.on = l});
    l.run();
    EXPECT_TRUE(waits.join().is_stopped());
    stops.join();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(condition_variable_any, a_wait_with_a_token_ends_when_it_is_stopped) {
    weft::testing::virtual_loop l;
    weft::shared_mutex m;
    weft::condition_variable_any c;
    weft::stop_source source;
    bool ready = false;
    std::vector<bool> said;
    weft::fiber waits(
        [&] {
            std::shared_lock lock(m);
            const auto is_ready = [&] { return ready; };
            said.push_back(c.wait_for(lock, source.get_token(), 1ms, is_ready));
            said.push_back(c.wait(lock, source.get_token(), is_ready));  // stopped at 5 ms
            EXPECT_TRUE(lock.owns_lock());
            ready = true;
            said.push_back(c.wait(lock, source.get_token(), is_ready));
        },
        {.on = l});
    weft::fiber stops([&] { weft::this_fiber::sleep_for(5ms), source.request_stop(); }, {.on = l});
    l.run();
    waits.join();
    stops.join();
    EXPECT_EQ(said, (std::vector{false, false, true}));
}

TEST(condition_variable_any, a_killed_waiter_does_not_unlock_what_it_does_not_own) {
    weft::shared_mutex m;
    counting_lock own;
    weft::condition_variable_any c;
    {
        weft::loop l;
        weft::fiber(
            [&] {
                std::shared_lock lock(m);
                const weft::shield s;
                c.wait(lock);
            },
            {.on = l})
            .detach();
        weft::fiber(
            [&] {
                std::unique_lock lock(own);
                const weft::shield s;
                c.wait(lock);
            },
            {.on = l})
            .detach();
        l.run_until_idle();
    }  // ends them
    EXPECT_TRUE(m.try_lock());
    m.unlock();
    EXPECT_EQ(own.locks, own.unlocks);
}

// The waiter that was woken is destroyed before it runs, or while it waits for the lock.
TEST(condition_variable_any, a_destroyed_waiter_forwards_its_notification) {
    for (const bool before_it_runs : {true, false}) {
        weft::loop l;
        weft::shared_mutex m;
        weft::condition_variable_any c;
        bool passed = false;
        const auto body = [&]() -> weft::task<> {
            std::shared_lock lock = co_await m.async_scoped_lock_shared();
            co_await c.async_wait(lock);
            ADD_FAILURE() << "it was destroyed";
        };
        auto first = std::make_unique<weft::task<>>(body());
        l.post([&] { first->start(); });
        l.run_until_idle();
        weft::fiber second(
            [&] {
                std::shared_lock lock(m);
                c.wait(lock);
                passed = true;
            },
            {.on = l});
        l.run_until_idle();
        l.post([&] {
            ASSERT_TRUE(m.try_lock());
            c.notify_one();
            if (before_it_runs) first.reset();
        });
        l.run_until_idle();
        EXPECT_FALSE(passed) << "the lock is held";
        l.post([&] {
            first.reset();
            m.unlock();
        });
        l.run();
        EXPECT_TRUE(passed);
        second.join();
        EXPECT_TRUE(m.try_lock());
        m.unlock();
    }
}

TEST(condition_variable_any, ends_with_what_its_lock_throws_and_forwards_the_notification) {
    weft::loop l;
    counting_lock m;
    weft::condition_variable_any c;
    bool threw = false, passed = false;
    weft::fiber first(
        [&] {
            std::unique_lock lock(m);
            try {
                c.wait(lock);
            } catch (int n) {
                threw = n == 7;
                EXPECT_FALSE(lock.owns_lock());
            }
        },
        {.on = l});
    weft::fiber second(
        [&] {
            std::unique_lock lock(m);
            c.wait(lock);
            passed = true;
        },
        {.on = l});
    l.run_until_idle();
    m.throws_next = true;
    c.notify_one();
    l.run();
    EXPECT_TRUE(threw && passed);
    first.join();
    second.join();
}

TEST(condition_variable_any_death, a_wait_without_the_lock) {
    EXPECT_DEATH(
        {
            weft::shared_mutex m;
            weft::condition_variable_any c;
            std::shared_lock lock(m, std::defer_lock);
            c.wait(lock);
        },
        "a wait for a condition without its mutex \\(.*condition_variable_any_test\\.cpp:");
}

TEST(condition_variable_any_death, an_awaited_wait_without_the_lock) {
    EXPECT_DEATH(
        {
            weft::shared_mutex m;
            weft::condition_variable_any c;
            std::shared_lock lock(m, std::defer_lock);
            weft::await(c.async_wait(lock));
        },
        "a wait for a condition without its mutex \\(.*condition_variable_any_test\\.cpp:");
}

TEST(condition_variable_any_death, a_mutex_that_another_agent_owns) {
    EXPECT_DEATH(
        {
            weft::mutex m;
            weft::condition_variable_any c;
            std::thread([&] { m.lock(); }).join();
            c.wait(m);
        },
        "unlock of a mutex, which is held by");
}

}  // namespace
