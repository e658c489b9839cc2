#include "weft/hook/pin.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <mutex>
#include <thread>

#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/virtual_loop.hpp"

extern "C" int lock_in_library(pthread_mutex_t*);
extern "C" int unlock_in_library(pthread_mutex_t*);

namespace {

using namespace weft;

struct told_pin {
    unsigned mutexes = 0;
    std::uint64_t fiber = 0;
} last_told;

TEST(pin, tells_of_a_fiber_that_waits_and_holds_a_mutex) {
    hook::on_pin([](const hook::pin& p) { last_told = {p.mutexes, p.fiber->who().id}; });
    const auto before = hook::pin_count();
    run([] {
        ::usleep(100);  // without a mutex: nothing
        std::mutex m;
        std::mutex n;
        const std::lock_guard held(m);
        {
            const std::lock_guard also(n);
        }
        ::usleep(100);
        EXPECT_EQ(last_told.fiber, this_fiber::get_id());
    });
    hook::on_pin(nullptr);
    EXPECT_EQ(hook::pin_count() - before, 1u);
    EXPECT_EQ(last_told.mutexes, 1u);
}

TEST(pin, a_handler_finds_what_was_written_before_it_was_set) {
    static int what_it_needs;
    static std::atomic<int> found;
    what_it_needs = 0;
    found = 0;
    std::atomic<bool> over{false};
    std::thread other([&] {
        run([&] {
            std::mutex m;
            const std::lock_guard held(m);
            while (!over.load(std::memory_order_relaxed)) ::usleep(100);
        });
    });
    what_it_needs = 42;
    hook::on_pin([](const hook::pin&) { found.store(what_it_needs, std::memory_order_relaxed); });
    while (found.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    over.store(true, std::memory_order_relaxed);
    other.join();
    hook::on_pin(nullptr);
    EXPECT_EQ(found, 42);
}

TEST(pin, a_handler_that_was_replaced_is_given_back_with_what_it_needs) {
    static int what_it_needs;
    static int found;
    what_it_needs = 0;
    found = 0;
    std::thread other([] {
        what_it_needs = 42;
        hook::on_pin([](const hook::pin&) { found = what_it_needs; });
    });
    hook::pin_handler before = nullptr;
    while ((before = hook::on_pin(nullptr)) == nullptr) std::this_thread::yield();
    before({nullptr, "a test", 1});
    EXPECT_EQ(found, 42);
    other.join();
}

// The thread would wait for itself.
TEST(pin, is_no_deadlock_with_a_fiber_of_the_same_thread) {
    hook::on_pin([](const hook::pin&) {});
    run([] {
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        int inside = 0;
        int most = 0;
        const auto locks = [&] {
            for (int i = 0; i < 3; ++i) {
                ASSERT_EQ(::pthread_mutex_lock(&m), 0);
                most = std::max(most, ++inside);
                ::usleep(200);
                --inside;
                ASSERT_EQ(::pthread_mutex_unlock(&m), 0);
            }
        };
        fiber a(locks);
        fiber b(locks);
        fiber c(locks);
        a.join();
        b.join();
        c.join();
        EXPECT_EQ(most, 1);
    });
    hook::on_pin(nullptr);
}

TEST(pin, a_lock_with_a_deadline_is_waited_for_until_then) {
    hook::on_pin([](const hook::pin&) {});
    run([] {
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        ASSERT_EQ(::pthread_mutex_lock(&m), 0);
        fiber([] {
            // Twice, as a second may begin meanwhile.
            for (const clockid_t by : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
                constexpr auto some = std::chrono::milliseconds(20);
                timespec until;
                ::clock_gettime(by, &until);
                until.tv_nsec += std::chrono::nanoseconds(some).count();
                until.tv_sec += until.tv_nsec / 1'000'000'000;
                until.tv_nsec %= 1'000'000'000;
                const auto start = std::chrono::steady_clock::now();
                EXPECT_EQ(::pthread_mutex_clocklock(&m, by, &until), ETIMEDOUT);
                EXPECT_GE(std::chrono::steady_clock::now() - start, some / 2);
            }
        }).join();
        ::pthread_mutex_unlock(&m);
    });
    hook::on_pin(nullptr);
}

TEST(pin, a_lock_with_any_deadline_is_waited_for) {
    hook::on_pin([](const hook::pin&) {});
    run([] {
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        constexpr time_t last = std::numeric_limits<time_t>::max();
        constexpr time_t first = std::numeric_limits<time_t>::min();
        for (const clockid_t by : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
            ASSERT_EQ(::pthread_mutex_lock(&m), 0);
            fiber waits([by] {
                const timespec late = {last, 999'999'999};
                EXPECT_EQ(::pthread_mutex_clocklock(&m, by, &late), 0);
                ::pthread_mutex_unlock(&m);
            });
            fiber does_not([by] {
                for (const timespec t : {timespec{first, 0}, timespec{0, 0}})
                    EXPECT_EQ(::pthread_mutex_clocklock(&m, by, &t), ETIMEDOUT);
                for (const timespec none : {timespec{last, -1}, timespec{last, 1'000'000'000}})
                    EXPECT_EQ(::pthread_mutex_clocklock(&m, by, &none), EINVAL);
            });
            does_not.join();
            ::pthread_mutex_unlock(&m);
            waits.join();
        }
    });
    hook::on_pin(nullptr);
}

// A clock that jumps when nobody is ready would stand still.
TEST(pin, a_lock_that_is_waited_for_lets_time_pass) {
    hook::on_pin([](const hook::pin&) {});
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    weft::testing::virtual_loop l(1);
    fiber holder(
        [] {
            ::pthread_mutex_lock(&m);
            ::usleep(30'000);
            ::pthread_mutex_unlock(&m);
        },
        {.on = l});
    bool locked = false;
    fiber waits(
        [&] {
            ::usleep(1000);
            locked = ::pthread_mutex_lock(&m) == 0;
            ::pthread_mutex_unlock(&m);
        },
        {.on = l});
    l.run();
    EXPECT_TRUE(locked);
    hook::on_pin(nullptr);
}

// What another thread holds is waited for by the fiber where a library locks it.
TEST(pin, a_contended_mutex_of_a_library_lets_others_run) {
    hook::set_options({.pthread_mutex = true});
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<int> state{0};  // 1: it is held; 2: it may be released
    std::thread holder([&] {
        ::pthread_mutex_lock(&m);
        state = 1;
        while (state != 2) std::this_thread::yield();
        ::pthread_mutex_unlock(&m);
    });
    while (state != 1) std::this_thread::yield();
    run([&] {
        fiber other([&] { state = 2; });
        EXPECT_EQ(lock_in_library(&m), 0);  // for ever, if the other did not run
        EXPECT_EQ(unlock_in_library(&m), 0);
    });
    holder.join();
    hook::set_options({});
}

// It cannot be refused, so it waits on.
TEST(pin, a_lock_outlasts_a_stop) {
    hook::on_pin([](const hook::pin&) {});
    run([] {
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        ASSERT_EQ(::pthread_mutex_lock(&m), 0);
        bool locked = false;
        fiber f([&] {
            locked = ::pthread_mutex_lock(&m) == 0;
            ::pthread_mutex_unlock(&m);
        });
        this_fiber::sleep_for(std::chrono::milliseconds(2));
        f.request_stop();
        this_fiber::sleep_for(std::chrono::milliseconds(2));
        EXPECT_FALSE(locked);
        ::pthread_mutex_unlock(&m);
        f.join();
        EXPECT_TRUE(locked);
    });
    hook::on_pin(nullptr);
}

}  // namespace
