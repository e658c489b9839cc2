#include "weft/sync/shared_mutex.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "test/support/agents.hpp"
#include "weft/sched/virtual_loop.hpp"

using namespace std::chrono_literals;

namespace {

class shared_mutex_among : public weft::testing::among {};

TEST_P(shared_mutex_among, writers_are_exclusive_and_reads_are_not_torn) {
    weft::shared_mutex m;
    int a = 0, b = 0;
    run_many(4, [&](auto wait) -> weft::task<> {
        for (int i = 0; i < 150; ++i) {
            if (i % 3 == 0) {
                co_await wait(m.async_lock());
                const std::unique_lock held(m, std::adopt_lock);
                ++a;
                if (i % 10 == 0) co_await wait(weft::sleep_for(0s));
                ++b;
            } else {
                co_await wait(m.async_lock_shared());
                const std::shared_lock held(m, std::adopt_lock);
                EXPECT_EQ(a, b);
                if (i % 10 == 0) co_await wait(weft::sleep_for(0s));
                EXPECT_EQ(a, b);
            }
        }
    });
    EXPECT_EQ(a, 200);
    EXPECT_EQ(b, 200);
}

WEFT_INSTANTIATE_AMONG(shared_mutex_among);

TEST(shared_mutex, readers_share_and_writers_are_exclusive) {
    weft::shared_mutex m;
    EXPECT_FALSE(m.is_shared());
    ASSERT_TRUE(m.try_lock_shared());
    EXPECT_TRUE(m.is_shared());
    ASSERT_TRUE(m.try_lock_shared());
    EXPECT_FALSE(m.try_lock());
    EXPECT_FALSE(m.try_lock_for(0s));
    m.unlock_shared();
    m.unlock_shared();
    ASSERT_TRUE(m.try_lock());
    EXPECT_FALSE(m.try_lock());
    EXPECT_FALSE(m.try_lock_shared());
    EXPECT_FALSE(m.try_lock_shared_for(0s));
    m.unlock();
}

struct line_test : ::testing::Test {
    weft::loop l;
    weft::shared_mutex m;
    std::vector<char> inside;
    std::vector<weft::fiber> fibers;

    void add(char c) {
        fibers.emplace_back(
            [this, c] {
                c == 'W' ? m.lock() : m.lock_shared();
                inside.push_back(c);
                weft::this_fiber::yield();
                c == 'W' ? m.unlock() : m.unlock_shared();
            },
            weft::fiber_options{.on = l});
    }
};

TEST_F(line_test, later_readers_queue_behind_a_writer) {
    ASSERT_TRUE(m.try_lock_shared());
    for (char c : {'W', 'r', 'r', 'W', 'r'}) add(c);
    l.run_until_idle();
    EXPECT_TRUE(inside.empty()) << "though readers hold it";
    EXPECT_FALSE(m.try_lock_shared());
    m.unlock_shared();
    l.run();
    EXPECT_EQ(inside, (std::vector<char>{'W', 'r', 'r', 'W', 'r'}));
    for (auto& f : fibers) f.join();
}

TEST_F(line_test, readers_behind_a_stopped_writer_are_admitted) {
    ASSERT_TRUE(m.try_lock_shared());
    add('W');
    add('r');
    add('r');
    l.run_until_idle();
    EXPECT_TRUE(inside.empty());
    l.post([this] { fibers[0].request_stop(); });
    l.run();
    EXPECT_EQ(inside, (std::vector<char>{'r', 'r'}));
    for (auto& f : fibers) f.join();
    m.unlock_shared();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(shared_mutex, a_writer_is_exclusive_under_any_schedule) {
    EXPECT_TRUE(weft::testing::explore(50, [](std::uint64_t seed) {
        weft::testing::virtual_loop l(seed);
        weft::shared_mutex m;
        int readers = 0, writers = 0, gave_up = 0;
        bool well = true;
        std::vector<weft::fiber> fibers;
        for (int i = 0; i < 6; ++i)
            fibers.emplace_back(
                [&, i] {
                    for (int k = 0; k < 8; ++k) {
                        if ((i + k) % 3 == 0) {
                            if (!m.try_lock_for(2ms)) {
                                ++gave_up;
                                continue;
                            }
                            well = well && ++writers == 1 && readers == 0;
                            weft::this_fiber::sleep_for(1ms);
                            --writers;
                            m.unlock();
                        } else {
                            m.lock_shared();
                            ++readers;
                            well = well && writers == 0;
                            weft::this_fiber::sleep_for(1ms);
                            --readers;
                            m.unlock_shared();
                        }
                    }
                },
                weft::fiber_options{.on = l});
        l.run();
        for (auto& f : fibers) f.join();
        return well && m.try_lock() && (m.unlock(), true);
    }));
}

TEST(shared_mutex_death, unlock_in_a_mode_that_is_not_held) {
    EXPECT_DEATH(weft::shared_mutex().unlock(),
                 "unlock of a shared_mutex, which is written by no agent: thread [0-9]+ "
                 "\\(.*shared_mutex_test\\.cpp:");
    EXPECT_DEATH(weft::shared_mutex().unlock_shared(),
                 "unlock_shared of a shared_mutex that no reader holds");
}

TEST(shared_mutex_death, second_lock_by_the_writer) {
    EXPECT_DEATH(
        {
            weft::shared_mutex m;
            m.lock();
            m.lock();
        },
        "lock of a shared_mutex, which is written by thread [0-9]+: thread");
    EXPECT_DEATH(
        {
            weft::shared_mutex m;
            m.lock();
            m.lock_shared();
        },
        "lock of a shared_mutex, which is written by thread [0-9]+: thread");
}

TEST(shared_mutex_death, unlock_by_a_non_owner) {
    EXPECT_DEATH(
        {
            weft::shared_mutex m;
            m.lock();
            std::thread([&] { m.unlock(); }).join();
        },
        "unlock of a shared_mutex, which is written by thread [0-9]+: thread");
}

TEST(shared_mutex_death, a_fiber_that_ends_as_its_writer) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::shared_mutex m;
            weft::fiber a([&] { m.lock(); }, {.name = "alice", .on = l});
            l.run();
        },
        "weft: a fiber ended and holds a mutex: fiber [0-9]+ \"alice\"");
}

}  // namespace
