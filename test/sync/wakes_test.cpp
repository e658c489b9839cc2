// The cost of a wake: no allocation, for any waiter and any waker.

#include <gtest/gtest.h>

#include <mutex>

#include "test/support/allocations.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/channel.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/select.hpp"
#include "weft/task/task.hpp"

namespace {

// A million wakes; a tenth where nothing is optimised.
constexpr int wakes = WEFT_DEBUG ? 100'000 : 1'000'000;

// How many allocations two fibers of one loop make between their first rounds and their last.
template <class A, class B>
std::size_t allocations_of(A a, B b) {
    weft::loop l;
    std::size_t before = 0, after = 0;
    weft::fiber one(
        [&] {
            for (int i = 0; i < 100; ++i) a();
            before = weft::testing::allocations();
            for (int i = 0; i < wakes / 2; ++i) a();
            after = weft::testing::allocations();
        },
        {.on = l});
    weft::fiber two(
        [&] {
            for (int i = 0; i < wakes / 2 + 100; ++i) b();
        },
        {.on = l});
    l.run();
    one.join();
    two.join();
    return after - before;
}

TEST(wakes, of_an_event_allocate_nothing) {
    weft::auto_reset_event there, back;
    EXPECT_EQ(allocations_of([&] { there.set(), back.wait(); }, [&] { there.wait(), back.set(); }),
              0u);
}

TEST(wakes, of_a_mutex_allocate_nothing) {
    weft::mutex m;
    auto body = [&] {
        m.lock();
        weft::this_fiber::yield();
        m.unlock();
    };
    EXPECT_EQ(allocations_of(body, body), 0u);
}

TEST(wakes, of_a_channel_allocate_nothing) {
    weft::channel<int> there, back(1);
    EXPECT_EQ(
        allocations_of([&] { static_cast<void>(there.send(1)), static_cast<void>(back.recv()); },
                       [&] { static_cast<void>(there.recv()), static_cast<void>(back.send(1)); }),
        0u);
}

TEST(wakes, of_a_select_allocate_nothing) {
    weft::channel<int> there, back(1), never_used;
    auto ignore = [](int) {};
    EXPECT_EQ(allocations_of(
                  [&] {
                      weft::select(weft::on_send(there, 1), weft::on_recv(never_used, ignore));
                      weft::select(weft::on_recv(back, ignore), weft::on_recv(never_used, ignore));
                  },
                  [&] {
                      weft::select(weft::on_recv(there, ignore), weft::on_recv(never_used, ignore));
                      weft::select(weft::on_send(back, 1), weft::on_recv(never_used, ignore));
                  }),
              0u);
}

TEST(wakes, of_a_condition_allocate_nothing) {
    weft::mutex m;
    weft::condition_variable changed;
    int turn = 0;
    auto passes = [&](int mine) {
        std::unique_lock lock(m);
        changed.wait(lock, [&] { return turn == mine; });
        turn = 1 - mine;
        changed.notify_one();
    };
    EXPECT_EQ(allocations_of([&] { passes(0); }, [&] { passes(1); }), 0u);
}

// Deadlines that are armed for each wait and do not come.
TEST(wakes, before_a_deadline_allocate_nothing) {
    weft::auto_reset_event there, back;
    const auto later = weft::after(weft::steady_now(), std::chrono::hours(1));
    auto waits = [&](weft::auto_reset_event& e) { EXPECT_TRUE(e.wait(later)); };
    EXPECT_EQ(allocations_of([&] { there.set(), waits(back); }, [&] { waits(there), back.set(); }),
              0u);
}

}  // namespace
