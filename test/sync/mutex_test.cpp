#include "weft/sync/mutex.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "test/support/agents.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/sync/auto_reset_event.hpp"
#include "weft/sync/condition_variable.hpp"
#include "weft/sync/latch.hpp"
#include "weft/sync/manual_reset_event.hpp"
#include "weft/sync/recursive_mutex.hpp"
#include "weft/sync/shared_mutex.hpp"
#include "weft/sync/wait_group.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/with_nursery.hpp"

using namespace std::chrono_literals;

namespace {

class mutex_among : public weft::testing::among {};

TEST_P(mutex_among, has_one_owner_at_a_time) {
    weft::mutex m;
    int count = 0;
    run_many(4, [&](auto wait) -> weft::task<> {
        for (int i = 0; i < 200; ++i) {
            co_await wait(m.async_lock());
            const std::lock_guard held(m, std::adopt_lock);
            const int before = count;
            if (i % 16 == 0) co_await wait(weft::sleep_for(0s));
            count = before + 1;
        }
    });
    EXPECT_EQ(count, 800);
}

TEST_P(mutex_among, a_deadline_ends_a_wait_and_the_lock_is_not_lost) {
    weft::mutex m;
    weft::manual_reset_event held, over;
    run(
        [&](auto wait) -> weft::task<> {
            co_await wait(m.async_lock());
            held.set();
            co_await wait(over.async_wait());
            m.unlock();
        },
        [&](auto wait) -> weft::task<> {
            co_await wait(held.async_wait());
            const auto until = weft::after(weft::now(), 2ms);
            EXPECT_FALSE(co_await wait(m.async_lock(until)));
            EXPECT_GE(weft::now(), until);
            over.set();
            EXPECT_TRUE(co_await wait(m.async_lock(weft::never)));
            m.unlock();
        });
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

WEFT_INSTANTIATE_AMONG(mutex_among);

TEST(mutex, unlock_passes_ownership_to_the_longest_waiter) {
    weft::loop l;
    weft::mutex m;
    std::vector<int> order;
    std::vector<weft::fiber> fibers;
    ASSERT_TRUE(m.try_lock());
    for (int i = 0; i < 5; ++i)
        fibers.emplace_back(
            [&, i] {
                m.lock();
                order.push_back(i);
                weft::this_fiber::yield();
                m.unlock();
                m.lock();  // behind the others
                order.push_back(5 + i);
                m.unlock();
            },
            weft::fiber_options{.on = l});
    l.run_until_idle();
    EXPECT_TRUE(order.empty());
    m.unlock();
    EXPECT_FALSE(m.try_lock()) << "it is handed over, although nobody has run";
    l.run();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    for (auto& f : fibers) f.join();
}

TEST(mutex, has_one_owner_at_a_time_under_any_schedule) {
    EXPECT_TRUE(weft::testing::explore(50, [](std::uint64_t seed) {
        weft::testing::virtual_loop l(seed);
        weft::mutex m;
        int inside = 0, count = 0;
        bool well = true;
        std::vector<weft::fiber> fibers;
        for (int i = 0; i < 4; ++i)
            fibers.emplace_back(
                [&, i] {
                    for (int k = 0; k < 10; ++k) {
                        if ((i + k) % 3 == 0) {
                            if (!m.try_lock_for(1ms)) continue;
                        } else {
                            m.lock();
                        }
                        well = well && ++inside == 1;
                        if (k % 2 == 0) weft::this_fiber::sleep_for(1ms);
                        ++count;
                        --inside;
                        m.unlock();
                    }
                },
                weft::fiber_options{.on = l});
        l.run();
        for (auto& f : fibers) f.join();
        return well && count > 0 && m.try_lock() && (m.unlock(), true);
    }));
}

TEST(mutex, is_released_when_its_new_owners_frame_is_destroyed) {
    weft::loop l;
    weft::mutex m;
    auto body = [&]() -> weft::task<> { co_await m.async_lock(); };
    auto t = std::make_unique<weft::task<>>(body());
    l.post([&] {
        ASSERT_TRUE(m.try_lock());
        t->start();
        m.unlock();
        EXPECT_FALSE(m.try_lock()) << "handed over";
        t.reset();
    });
    l.run_until_idle();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(mutex, owned_by_caller_is_true_only_for_the_owner) {
    weft::mutex m;
    EXPECT_FALSE(m.is_owned_by_caller());
    const std::lock_guard held(m);
    EXPECT_TRUE(m.is_owned_by_caller());
    std::thread([&] { EXPECT_FALSE(m.is_owned_by_caller()); }).join();
}

// Coroutines that user code starts have the flow of the starter, or none; one waits for the other
// nevertheless.
TEST(mutex, excludes_coroutines_started_by_user_code) {
    weft::mutex m;
    weft::manual_reset_event go;
    weft::wait_group living;
    int inside = 0;
    const auto body = [&]() -> weft::task<> {
        co_await m.async_lock();
        EXPECT_EQ(inside++, 0);
        co_await go.async_wait();
        co_await weft::sleep_for(0s);
        EXPECT_EQ(--inside, 0);
        m.unlock();
        living.done();
    };
    const auto three = [&] {
        living.add(3);
        weft::task<> t[] = {body(), body(), body()};
        for (auto& one : t) one.start();
        go.set();
        m.lock();  // behind them
        EXPECT_EQ(inside, 0);
        m.unlock();
        living.wait();
    };
    three();  // a thread
    go.reset();
    weft::loop l;
    weft::fiber f(three, {.on = l});
    l.run();
    f.join();
    EXPECT_TRUE(living.try_wait());
}

// A lock that is released between the failed check and the wait.
struct freed_meanwhile : weft::detail::lock_operation {
    weft::mutex& of;

    explicit freed_meanwhile(weft::mutex& m)
        : lock_operation(m, std::source_location::current()), of(m) {}
    bool ready() noexcept { return lock_operation::ready() || (of.unlock(), false); }
    bool blocking_ready() noexcept {
        return lock_operation::blocking_ready() || (of.unlock(), false);
    }
};

class mutex_between : public weft::testing::among {};

TEST_P(mutex_between, is_acquired_at_once_if_released_before_the_wait_begins) {
    weft::mutex m;
    int had = 0;
    run_many(2, [&](auto wait) -> weft::task<> {
        co_await wait(m.async_lock());
        freed_meanwhile again(m);
        co_await wait(again);
        EXPECT_TRUE(m.is_owned_by_caller());
        ++had;
        m.unlock();  // and ends, with no lock
    });
    EXPECT_EQ(had, 2);
}

WEFT_INSTANTIATE_AMONG_KINDS(mutex_between, weft::testing::kind::fiber, weft::testing::kind::task,
                             weft::testing::kind::thread);

// A failed try cannot report a stop: it throws, and so does not repeat for ever.
TEST(mutex, a_loop_of_timed_tries_is_ended_by_a_stop) {
    weft::testing::virtual_loop l(1);
    weft::mutex m;
    ASSERT_TRUE(m.try_lock());
    int tries = 0;
    weft::fiber f(
        [&] {
            while (tries < 1'000 && !m.try_lock_for(1ms)) ++tries;
        },
        {.on = l});
    weft::fiber stops([&] { weft::this_fiber::sleep_for(5ms), f.request_stop(); }, {.on = l});
    l.run();
    stops.join();
    EXPECT_TRUE(f.join().is_stopped());
    EXPECT_LT(tries, 10);
    m.unlock();
}

// In one iteration: if the fiber yields in between, the owner can run.
TEST(mutex, reports_a_try_lock_busy_loop_in_a_debug_build) {
    weft::loop l;
    weft::mutex m;
    const auto told_of = [&](bool yields) {
        ::testing::internal::CaptureStderr();
        EXPECT_TRUE(m.try_lock());
        unsigned tries = 0;
        weft::fiber f(
            [&] {
                while (!m.try_lock() && ++tries != 3 * weft::detail::many_failed_tries)
                    if (yields) weft::this_fiber::yield();
            },
            {.name = "eager", .on = l});
        l.run();
        f.join();
        m.unlock();
        return ::testing::internal::GetCapturedStderr();
    };
    const std::string report = told_of(false);
    if (WEFT_DEBUG != 0) {
        EXPECT_EQ(report.find("weft: try_lock has failed 10000 times in one round of its loop"),
                  0u);
        EXPECT_NE(report.find("\"eager\""), std::string::npos) << report;
        EXPECT_NE(report.find("mutex_test.cpp:"), std::string::npos) << report;
        EXPECT_EQ(report.find('\n'), report.size() - 1) << "one line";
    } else {
        EXPECT_EQ(report, "");
    }
    EXPECT_EQ(told_of(true), "");
}

TEST(mutex_death, unlock_by_a_non_owner_names_both_agents) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::mutex m;
            weft::fiber a([&] { m.lock(), weft::this_fiber::sleep_for(1h); },
                          {.name = "alice", .on = l});
            weft::fiber b([&] { m.unlock(); }, {.name = "bob", .on = l});
            l.run();
        },
        "unlock of a mutex, which is held by fiber [0-9]+ \"alice\": fiber [0-9]+ \"bob\" "
        "\\(.*mutex_test\\.cpp:");
}

TEST(mutex_death, unlock_outside_any_flow) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::mutex m;
            m.lock();
            l.post([&] { m.unlock(); });
            l.run();
        },
        "unlock of a mutex, which is held by thread [0-9]+: a coroutine that is no task of its own "
        "\\(.*mutex_test\\.cpp:");
}

TEST(mutex_death, unlock_of_an_unlocked_mutex) {
    EXPECT_DEATH(
        {
            weft::mutex m;
            m.unlock();
        },
        "unlock of a mutex, which is held by no agent: thread [0-9]+ \\(.*mutex_test\\.cpp:");
}

TEST(mutex_death, second_lock_by_its_owner) {
    EXPECT_DEATH(
        {
            weft::mutex m;
            m.lock();
            m.lock();
        },
        "lock of a mutex, which is held by thread [0-9]+: thread [0-9]+ \\(.*mutex_test\\.cpp:");
}

TEST(mutex_death, a_fiber_that_ends_as_its_owner) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::mutex m;
            weft::fiber a([&] { m.lock(); }, {.name = "alice", .on = l});
            l.run();
        },
        "weft: a fiber ended and holds a mutex: fiber [0-9]+ \"alice\"");
}

TEST(mutex_death, a_fiber_that_ends_as_its_owner_by_handoff) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::mutex m;
            weft::fiber a(
                [&] {
                    const std::lock_guard held(m);
                    weft::this_fiber::sleep_for(1ms);
                },
                {.on = l});
            weft::fiber b([&] { m.lock(); }, {.name = "bob", .on = l});
            l.run();
        },
        "weft: a fiber ended and holds a mutex: fiber [0-9]+ \"bob\"");
}

TEST(mutex_death, a_task_that_ends_as_its_owner) {
    EXPECT_DEATH(
        {
            weft::loop l;
            weft::mutex m;
            const auto body = [&]() -> weft::task<> { co_await m.async_lock(); };
            weft::fiber f(
                [&] {
                    weft::nursery n;
                    n.spawn(body());
                    n.join();
                },
                {.on = l});
            l.run();
        },
        "weft: a task ended and holds a mutex: task [0-9]+");
}

TEST(mutex, can_be_unlocked_or_tried_before_the_flow_ends) {
    weft::loop l;
    weft::mutex m;
    const auto body = [&] {
        m.lock();
        weft::this_fiber::yield();
        m.unlock();
        if (m.try_lock_for(1h)) m.unlock();
        while (!m.try_lock()) weft::this_fiber::yield();
        m.unlock();
    };
    weft::fiber a(body, {.on = l}), b(body, {.on = l});
    const auto in_a_task = [&]() -> weft::task<> {
        co_await m.async_lock();
        {
            const std::lock_guard held(m, std::adopt_lock);
            co_await weft::sleep_for(1ms);
        }
        if (co_await m.async_lock(weft::now())) m.unlock();
    };
    weft::fiber c([&] { weft::await(in_a_task()); }, {.on = l});
    weft::fiber stopped([&] { const std::lock_guard held(m); }, {.on = l});
    stopped.request_stop();
    l.run();
    for (weft::fiber* f : {&a, &b, &c}) EXPECT_FALSE(f->join().is_stopped());
    stopped.join();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(mutex_death, destruction_while_a_fiber_waits) {
    EXPECT_DEATH(
        {
            weft::loop l;
            auto m = std::make_unique<weft::mutex>();
            EXPECT_TRUE(m->try_lock());
            weft::fiber f([&] { m->lock(); }, {.on = l});
            l.run_until_idle();
            m.reset();
        },
        "weft: a mutex is destroyed, which is held by thread [0-9]+: thread [0-9]+\n");
}

// -- the owner is a thread that has ended -------------------------------------------------------

// A Mutex that has no destructor and is owned by a thread that has ended, and the number of that
// thread.
template <class Mutex>
std::uint64_t held_by_one_that_has_ended(Mutex& m) {
    std::uint64_t number = 0;
    std::thread([&] {
        m.lock();
        number = weft::detail::this_thread_host().number();
    }).join();
    return number;
}
std::string thread_named(std::uint64_t number) { return "thread " + std::to_string(number); }

template <class Mutex>
class mutex_of_any_kind_death : public ::testing::Test {};
using mutexes = ::testing::Types<weft::mutex, weft::shared_mutex>;
TYPED_TEST_SUITE(mutex_of_any_kind_death, mutexes);

TYPED_TEST(mutex_of_any_kind_death, owned_at_thread_exit_names_that_thread) {
    alignas(TypeParam) static std::byte place[sizeof(TypeParam)];
    auto& m = *new (place) TypeParam;
    const std::string owner = thread_named(held_by_one_that_has_ended(m));
    const std::string me = thread_named(weft::detail::this_thread_host().number());
    EXPECT_NE(owner, me);
    EXPECT_DEATH(m.unlock(), owner + ": " + me + " \\(.*mutex_test\\.cpp:");
    EXPECT_DEATH(m.~TypeParam(), owner + ": " + me + "\n");
    // Nor is a later thread, at the same place in memory, the owner.
    for (int i = 0; i < 3; ++i) std::thread([&] { EXPECT_FALSE(m.is_owned_by_caller()); }).join();
    EXPECT_FALSE(m.try_lock_for(0ms));
}

// -- the source location of the call -------------------------------------------------------------

// A blocking wait in the body of a coroutine, so that the refusal names its source line.
template <class F>
void in_a_coroutine(F wait) {
    const auto body = [&]() -> weft::task<> {
        wait();
        co_return;
    };
    weft::sync_wait(body());
}

TEST(lock_death, a_refused_wait_names_the_calling_line) {
    weft::mutex m;
    weft::shared_mutex s;
    weft::recursive_mutex r;
    const std::lock_guard m_held(m);
    const std::lock_guard s_held(s);
    const std::lock_guard r_held(r);
    const auto later = weft::now() + 1h;
    const std::string refused = "a blocking wait in a coroutine: co_await it: task [0-9]+ ";
    const std::string here = refused + "\\(.*/mutex_test\\.cpp:";
    EXPECT_DEATH(in_a_coroutine([&] { m.lock(); }), here);
    EXPECT_DEATH(in_a_coroutine([&] { static_cast<void>(m.try_lock_until(later)); }), here);
    EXPECT_DEATH(in_a_coroutine([&] { static_cast<void>(m.try_lock_for(1h)); }), here);
    EXPECT_DEATH(in_a_coroutine([&] { s.lock_shared(); }), here);
    EXPECT_DEATH(in_a_coroutine([&] { static_cast<void>(s.try_lock_for(1h)); }), here);
    EXPECT_DEATH(in_a_coroutine([&] { static_cast<void>(s.try_lock_shared_for(1h)); }), here);
    EXPECT_DEATH(in_a_coroutine([&] { r.lock(); }), here);
    EXPECT_DEATH(in_a_coroutine([&] { static_cast<void>(r.try_lock_for(1h)); }), here);
    weft::condition_variable changed;
    EXPECT_DEATH(in_a_coroutine([&] {
                     weft::mutex own;
                     std::unique_lock held(own);
                     changed.wait_for(held, 1h, [] { return false; });
                 }),
                 here);
    weft::latch never(1);
    EXPECT_DEATH(in_a_coroutine([&] { static_cast<void>(never.wait(1h)); }), here);
    weft::auto_reset_event unset;
    EXPECT_DEATH(in_a_coroutine([&] { unset.wait(); }), here);
}

TEST(recursive_mutex, a_try_lock_busy_loop_report_names_the_calling_line) {
    weft::loop l;
    weft::recursive_mutex m;
    m.lock();
    ::testing::internal::CaptureStderr();
    weft::fiber f(
        [&] {
            for (unsigned i = 0; i != weft::detail::many_failed_tries; ++i)
                EXPECT_FALSE(m.try_lock());
        },
        {.on = l});
    l.run();
    f.join();
    m.unlock();
    const std::string report = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(report.find("/mutex_test.cpp:") != std::string::npos, WEFT_DEBUG != 0) << report;
}

}  // namespace
