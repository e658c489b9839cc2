// An idle loop has unused memory released, a little each turn, and sleeps in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "test/sched/manual_driver.hpp"
#include "test/support/nothing_spare.hpp"
#include "weft/base/detail/release_unused.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::manual_driver;

// The keeper of memory in these tests, which has none outside them, because a keeper stays for
// ever.
std::function<time_point(time_point)> spare;
std::atomic<bool> spares{false};
constinit detail::memory_keeper keeper([](time_point now) noexcept {
    return spares.load() ? spare(now) : never;
});

struct with_a_keeper {
    explicit with_a_keeper(std::function<time_point(time_point)> f) {
        spare = std::move(f);
        spares = true;
        keeper.enter();
    }
    with_a_keeper(const with_a_keeper&) = delete;
    ~with_a_keeper() { spares = false; }
};

struct on_manual_time {
    manual_driver::record time;
    loop l;
    on_manual_time() : l(std::make_unique<manual_driver>(time)) {
        time.real = true;
        time.now = testing::nothing_spare();
    }
};

TEST(idle_memory, is_requested_before_a_sleep_and_when_its_callback_asks) {
    on_manual_time on;
    std::vector<time_point> asked;
    const with_a_keeper k([&](time_point now) {
        asked.push_back(now);
        return asked.size() < 4 ? now + 1s : never;
    });
    const time_point begin = on.time.now;
    EXPECT_FALSE(on.l.run_once(begin + 1h));
    EXPECT_EQ(asked, (std::vector{begin, begin + 1s, begin + 2s, begin + 3s}));
    EXPECT_EQ(on.time.waits,
              (std::vector{begin + 1s, begin + 2s, begin + 3s, begin + 1h}));  // and no more wakes
}

TEST(idle_memory, causes_no_wakeup_when_there_is_none) {
    on_manual_time on;
    const with_a_keeper k([](time_point) { return never; });
    const time_point begin = on.time.now;
    EXPECT_FALSE(on.l.run_once(begin + 1h));
    EXPECT_EQ(on.time.waits, (std::vector{begin + 1h}));
    EXPECT_EQ(on.l.next_deadline(), never);
}

TEST(idle_memory, is_released_in_parts_and_ready_work_runs_between_them) {
    on_manual_time on;
    std::vector<int> order;
    int parts = 0;
    const with_a_keeper k([&](time_point now) {
        if (parts == 3) return never;
        order.push_back(++parts);
        on.l.post([&, n = parts] { order.push_back(-n); });
        return now;
    });
    while (on.l.run_once(on.time.now)) {
    }
    EXPECT_EQ(order, (std::vector{1, -1, 2, -2, 3, -3}));
}

TEST(idle_memory, sets_the_next_deadline_seen_by_a_foreign_loop) {
    on_manual_time on;
    bool more = true;
    const with_a_keeper k([&](time_point now) { return more ? now + 1s : never; });
    EXPECT_EQ(on.l.next_deadline(), never);
    EXPECT_FALSE(on.l.run_once(on.time.now));
    EXPECT_EQ(on.l.next_deadline(), on.time.now + 1s);
    on.time.now += 1s;
    more = false;
    EXPECT_FALSE(on.l.run_once(on.time.now));
    EXPECT_EQ(on.l.next_deadline(), never);
}

TEST(idle_memory, does_not_keep_an_empty_loop_from_returning) {
    loop l;
    const with_a_keeper k([&](time_point now) { return now + 1s; });
    fiber f([] { this_fiber::sleep_for(1ms); }, {.on = l});
    l.run();
    EXPECT_TRUE(f.done());
}

TEST(idle_memory, is_not_requested_in_virtual_time) {
    int asked = 0;
    const with_a_keeper k([&](time_point now) { return ++asked, now + 1s; });
    testing::virtual_loop l(1);
    fiber f([] { this_fiber::sleep_for(1h); }, {.on = l});
    l.run();
    EXPECT_EQ(l.now(), time_point{} + 1h);
    EXPECT_EQ(asked, 0);
}

TEST(idle_memory, is_requested_by_every_worker_of_an_idle_pool) {
    std::atomic<int> asked{0};
    std::atomic<int> threads{0};
    const with_a_keeper k([&](time_point now) {
        thread_local bool seen = false;
        if (!std::exchange(seen, true)) ++threads;
        ++asked;
        asked.notify_all();
        return threads.load() < 3 ? now + 1ms : never;
    });
    pool p(3);
    for (int n; (n = asked.load()), threads != 3;) asked.wait(n);
}

// A queue that was long once has pages of its own.
TEST(idle_memory, of_a_once_long_queue_is_released_after_a_period) {
    on_manual_time on;
    for (int n = 0; n != 5000; ++n) on.l.post([] {});
    std::thread([&] {
        for (int n = 0; n != 5000; ++n) on.l.post([] {});
    }).join();
    static_cast<void>(on.l.run_until_idle());
    EXPECT_EQ(on.l.next_deadline(), on.time.now + detail::unused_period);
    on.time.now = std::max(on.time.now + detail::unused_period, testing::nothing_spare());
    EXPECT_FALSE(on.l.run_once(on.time.now));
    for (int n = 0; n != 20 && on.l.next_deadline() != never; ++n) {  // the blocks of the posts
        on.time.now += detail::unused_period;
        EXPECT_FALSE(on.l.run_once(on.time.now));
    }
    EXPECT_EQ(on.l.next_deadline(), never);
}

}  // namespace
}  // namespace weft
