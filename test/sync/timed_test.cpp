#include "weft/sync/detail/timed.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/broadcast.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/counting_semaphore.hpp"
#include "weft/sync/latch.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/sync/mutex.hpp"
#include "weft/sync/oneshot.hpp"
#include "weft/sync/recursive_mutex.hpp"
#include "weft/sync/select.hpp"
#include "weft/sync/shared_mutex.hpp"
#include "weft/sync/unbounded_channel.hpp"
#include "weft/sync/wait_group.hpp"
#include "weft/task/task.hpp"

using namespace std::chrono_literals;

namespace {

// What nothing completes but the time.
struct unready {
    weft::channel<int> empty, full;
    weft::unbounded_channel<int> unbounded;
    weft::oneshot<int> answer;
    weft::broadcast<int> news{1};
    weft::broadcast<int>::receiver reader{news};
    weft::manual_reset_event manual;
    weft::auto_reset_event automatic;
    weft::latch latch{1};
    weft::wait_group group;
    weft::counting_semaphore<1> permits{0};

    unready() { group.add(); }
    ~unready() { group.done(); }
};

// Makes the operation, lets an hour pass, and awaits it: how long the wait was.
template <class Make>
weft::task<weft::duration> late(Make make) {
    auto op = make();
    co_await weft::sleep_for(1h);
    const weft::time_point begin = weft::now();
    static_cast<void>(co_await op);
    co_return weft::now() - begin;
}

template <class F>
void in_virtual_time(F f) {
    weft::testing::virtual_loop l;
    weft::fiber body(f, {.on = l.loop()});
    l.run();
}

TEST(time_limit, of_a_duration_begins_when_the_wait_begins) {
    in_virtual_time([] {
        unready u;
        const auto lasts = [](auto make) { return weft::await(late(make)); };
        EXPECT_EQ(lasts([&] { return u.empty.async_recv(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.full.async_send(1, 2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.unbounded.async_recv(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.answer.async_recv(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.reader.async_recv(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.manual.async_wait(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.automatic.async_wait(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.latch.async_wait(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.group.async_wait(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] { return u.permits.async_acquire(2ms); }), 2ms);
        EXPECT_EQ(lasts([&] {
                      return weft::async_select(weft::on_recv(u.empty, [](int) {}),
                                                weft::on_timeout(2ms, [] {}));
                  }),
                  2ms);
    });
}

TEST(time_limit, of_a_deadline_ends_the_wait_at_once_if_it_has_passed) {
    in_virtual_time([] {
        unready u;
        const weft::time_point end = weft::now() + 2ms;
        EXPECT_EQ(weft::await(late([&] { return u.empty.async_recv(end); })), 0ms);
        EXPECT_EQ(weft::await(late([&] { return u.manual.async_wait(end); })), 0ms);
    });
}

TEST(time_limit, of_the_system_clock_ends_a_wait) {
    in_virtual_time([] {
        unready u;
        const auto passed = std::chrono::system_clock::now() - 1s;
        const auto later = std::chrono::system_clock::now() + 1h;
        const weft::time_point begin = weft::now();
        EXPECT_EQ(u.empty.recv(passed).error(), std::errc::timed_out);
        EXPECT_EQ(u.full.send(1, passed).error(), std::errc::timed_out);
        EXPECT_FALSE(u.latch.wait(passed));
        EXPECT_EQ(weft::now(), begin);
        EXPECT_FALSE(u.manual.wait(later));
        EXPECT_GT(weft::now(), begin + 59min);
        EXPECT_LE(weft::now(), begin + 1h);
    });
}

TEST(time_limit, of_the_system_clock_is_taken_by_what_mirrors_std) {
    in_virtual_time([] {
        weft::mutex m;
        weft::recursive_mutex r;
        weft::shared_mutex s;
        weft::counting_semaphore<1> permits(0);
        weft::condition_variable changed;
        const auto passed = std::chrono::system_clock::now() - 1s;
        const std::scoped_lock held(m, r, s);
        weft::fiber other([&] {
            EXPECT_FALSE(m.try_lock_until(passed));
            EXPECT_FALSE(r.try_lock_until(passed));
            EXPECT_FALSE(s.try_lock_until(passed));
            EXPECT_FALSE(s.try_lock_shared_until(passed));
            EXPECT_FALSE(permits.try_acquire_until(passed));
            weft::mutex mine;
            std::unique_lock lock(mine, passed);
            EXPECT_TRUE(lock.owns_lock());
            EXPECT_EQ(changed.wait_until(lock, passed), std::cv_status::timeout);
            EXPECT_FALSE(changed.wait_until(lock, passed, [] { return false; }));
            EXPECT_FALSE(
                changed.wait_until(lock, weft::stop_token(), passed, [] { return false; }));
        });
        other.join();
    });
}

TEST(condition_variable, wait_for_with_a_predicate_has_one_limit_for_all_its_waits) {
    in_virtual_time([] {
        weft::mutex m;
        weft::condition_variable changed;
        weft::fiber notifier([&] {
            for (int i = 0; i < 5; ++i) {
                weft::this_fiber::sleep_for(1ms);
                changed.notify_all();
            }
        });
        std::unique_lock lock(m);
        const weft::time_point begin = weft::now();
        EXPECT_FALSE(changed.wait_for(lock, 3ms, [] { return false; }));
        EXPECT_EQ(weft::now() - begin, 3ms);
        lock.unlock();
        notifier.join();
    });
}

}  // namespace
