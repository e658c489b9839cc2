#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <vector>

#include "test/posix/in_c.hpp"
#include "weft/base/detail/block_cache.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/virtual_loop.hpp"
#include "weft/stack/default_stacks.hpp"

namespace {

using weft::testing::as_pointer;
using weft::testing::begin_in_c;
using weft::testing::in_ms;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;

TEST(weft_create, starts_a_fiber_whose_joiner_gets_its_result) {
    EXPECT_EQ(run_in_c([] {
                  auto f = [] { return as_pointer(42); };
                  return joined_in_c(begin_in_c(f));
              }),
              as_pointer(42));
}

TEST(weft_create, starts_no_fiber_before_its_caller_waits) {
    run_in_c([] {
        bool began = false;
        auto f = [&] { began = true; };
        const weft_t t = begin_in_c(f);
        EXPECT_FALSE(began);
        weft_yield();
        EXPECT_TRUE(began);
        joined_in_c(t);
    });
}

TEST(weft_create, returns_EAGAIN_for_a_stack_that_is_too_large) {
    run_in_c([] {
        weft_attr_t attr;
        weft_attr_init(&attr);
        weft_attr_setstacksize(&attr, 2 * weft::largest_default_stack_bytes);
        weft_t t = WEFT_NULL;
        const auto never_runs = [](void*) -> void* { std::abort(); };
        EXPECT_EQ(weft_create(&t, &attr, never_runs, nullptr), EAGAIN);
        EXPECT_EQ(t, WEFT_NULL);
    });
}

// Two that are made, and will start, while there is a stack for one.
struct one_stack_for_two {
    static constexpr std::size_t bytes = std::size_t{64} << 20;  // of a size that no other has
    weft_t first = WEFT_NULL;
    weft_t second = WEFT_NULL;

    one_stack_for_two() {
        static auto waits = [] { weft_usleep(1000); };
        weft_attr_t attr;
        weft_attr_init(&attr);
        weft_attr_setstacksize(&attr, bytes);
        weft::default_stack_pool(bytes)->set_limits({.max_count = 1});
        first = begin_in_c(waits, &attr);
        second = begin_in_c(waits, &attr);
    }
    ~one_stack_for_two() { weft::default_stack_pool(bytes)->set_limits({}); }
};

TEST(weft_join, returns_EAGAIN_for_a_fiber_that_found_no_stack) {
    run_in_c([] {
        const one_stack_for_two t;
        void* value = &value;
        EXPECT_EQ(weft_join(t.second, &value), EAGAIN);
        EXPECT_EQ(value, &value) << "it returned nothing";
        joined_in_c(t.first);
    });
}

TEST(weft_fiber_misuse, detached_fiber_that_finds_no_stack_aborts) {
    EXPECT_DEATH(run_in_c([] {
                     const one_stack_for_two t;
                     weft_detach(t.second);
                     joined_in_c(t.first);
                 }),
                 "weft: out of memory: no room for a detached fiber to begin: fiber");
}

TEST(weft_create, on_a_plain_thread_uses_the_librarys_loop) {
    std::atomic<int> ran{0};
    auto f = [&] {
        EXPECT_NE(std::this_thread::get_id(), std::thread::id());
        weft_usleep(1000);
        ++ran;
        return as_pointer(ran);
    };
    weft_t all[3];
    for (weft_t& t : all) t = begin_in_c(f);
    for (weft_t t : all) EXPECT_NE(joined_in_c(t), nullptr);
    EXPECT_EQ(ran, 3);
}

// Nothing else orders the two, so that a race would be detected. In a process that has no such loop
// yet.
TEST(weft_create, on_two_plain_threads_uses_one_fully_built_loop) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto creates = [] {
        static auto f = [] {};
        static std::atomic<bool> waits, is_made;
        std::thread other([] {
            waits.store(true, std::memory_order_relaxed);
            while (!is_made.load(std::memory_order_relaxed)) std::this_thread::yield();
            joined_in_c(begin_in_c(f));
        });
        while (!waits.load(std::memory_order_relaxed)) std::this_thread::yield();
        const weft_t mine = begin_in_c(f);
        is_made.store(true, std::memory_order_relaxed);
        joined_in_c(mine);
        other.join();
        ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    };
    EXPECT_EXIT(creates(), ::testing::ExitedWithCode(0), "");
}

TEST(weft_join, returns_ESRCH_for_an_id_no_longer_in_use) {
    run_in_c([] {
        auto f = [] {};
        const weft_t t = begin_in_c(f);
        joined_in_c(t);
        EXPECT_EQ(weft_join(t, nullptr), ESRCH);
        EXPECT_EQ(weft_detach(t), ESRCH);
        EXPECT_EQ(weft_cancel(t), ESRCH);
        const weft_t next = begin_in_c(f);  // in its place
        EXPECT_FALSE(weft_equal(t, next));
        EXPECT_EQ(weft_join(t, nullptr), ESRCH);
        joined_in_c(next);
        EXPECT_EQ(weft_join(WEFT_NULL, nullptr), ESRCH);
    });
}

TEST(weft_join, frees_all_memory_of_joined_fibers) {
    run_in_c([] {
        const auto join_some = [] {
            static auto f = [] {};
            weft_t all[10];
            for (weft_t& t : all) t = begin_in_c(f);
            for (const weft_t t : all) joined_in_c(t);
            return weft::detail::block_cache::stats().used_bytes;
        };
        const std::size_t used = join_some();
        EXPECT_LE(join_some(), used);
    });
}

TEST(weft_join, returns_EDEADLK_for_the_caller_itself) {
    run_in_c([] { EXPECT_EQ(weft_join(weft_self(), nullptr), EDEADLK); });
}

TEST(weft_join, returns_EDEADLK_when_it_would_close_a_cycle) {
    run_in_c([] {
        weft_t a = WEFT_NULL, b = WEFT_NULL, c = WEFT_NULL;
        auto joins_b = [&] { EXPECT_EQ(weft_join(b, nullptr), 0); };
        auto joins_c = [&] { EXPECT_EQ(weft_join(c, nullptr), 0); };
        auto joins_a = [&] {
            weft_yield();
            EXPECT_EQ(weft_join(a, nullptr), EDEADLK);
        };
        a = begin_in_c(joins_b);
        b = begin_in_c(joins_c);
        c = begin_in_c(joins_a);
        joined_in_c(a);
    });
}

TEST(weft_join, allows_one_joiner_at_a_time) {
    run_in_c([] {
        auto sleeps = [] { weft_usleep(2000); };
        const weft_t t = begin_in_c(sleeps);
        auto joins = [&] { EXPECT_EQ(weft_join(t, nullptr), 0); };
        const weft_t first = begin_in_c(joins);
        weft_yield();
        EXPECT_EQ(weft_join(t, nullptr), EINVAL);
        EXPECT_EQ(weft_detach(t), EINVAL);
        joined_in_c(first);
    });
}

TEST(weft_tryjoin, does_not_wait) {
    run_in_c([] {
        auto f = [] { return as_pointer(1); };
        const weft_t t = begin_in_c(f);
        void* value = nullptr;
        EXPECT_EQ(weft_tryjoin(t, &value), EBUSY);
        weft_yield();
        EXPECT_EQ(weft_tryjoin(t, &value), 0);
        EXPECT_EQ(value, as_pointer(1));
    });
}

TEST(weft_timedjoin, times_out_and_can_be_repeated) {
    run_in_c([] {
        bool go_on = false;
        auto f = [&] {
            while (!go_on) weft_usleep(100);
        };
        const weft_t t = begin_in_c(f);
        const timespec soon = in_ms(2);
        EXPECT_EQ(weft_timedjoin(t, nullptr, &soon), ETIMEDOUT);
        go_on = true;
        const timespec late = in_ms(60'000);
        EXPECT_EQ(weft_timedjoin(t, nullptr, &late), 0);
        const timespec wrong{0, 1'000'000'000};
        EXPECT_EQ(weft_timedjoin(t, nullptr, &wrong), EINVAL);
    });
}

TEST(weft_detach, lets_the_fiber_finish_unjoined) {
    bool ran = false;
    run_in_c([&] {
        auto f = [&] { ran = true; };
        const weft_t t = begin_in_c(f);
        EXPECT_EQ(weft_detach(t), 0);
        EXPECT_EQ(weft_detach(t), EINVAL);
        EXPECT_EQ(weft_join(t, nullptr), EINVAL);
        weft_yield();
        EXPECT_TRUE(ran);
        EXPECT_EQ(weft_join(t, nullptr), ESRCH);
    });
}

TEST(weft_detach, works_on_a_done_fiber) {
    run_in_c([] {
        auto f = [] {};
        const weft_t t = begin_in_c(f);
        weft_yield();
        EXPECT_EQ(weft_detach(t), 0);
        EXPECT_EQ(weft_detach(t), ESRCH);
    });
}

TEST(weft_self, equals_the_id_its_creator_received) {
    run_in_c([] {
        weft_t inside = WEFT_NULL;
        auto f = [&] { inside = weft_self(); };
        const weft_t t = begin_in_c(f);
        joined_in_c(t);
        EXPECT_TRUE(weft_equal(inside, t));
        EXPECT_NE(weft_self(), t);
    });
    EXPECT_EQ(weft_self(), WEFT_NULL);
}

TEST(weft_run, returns_when_all_fibers_are_done) {
    int ended = 0;
    static int* count;
    count = &ended;
    run_in_c([] {
        for (int i = 0; i < 3; ++i) {
            weft_t t;
            EXPECT_EQ(0, weft_create(
                             &t, nullptr,
                             [](void*) -> void* {
                                 weft_usleep(500);
                                 ++*count;
                                 return nullptr;
                             },
                             nullptr));
            EXPECT_EQ(0, weft_detach(t));
        }
    });
    EXPECT_EQ(ended, 3);
}

TEST(weft_run, returns_EBUSY_within_itself) {
    run_in_c([] {
        const weft_start_t nothing = [](void*) -> void* { return nullptr; };
        EXPECT_EQ(weft_run(nothing, nullptr, nullptr), EBUSY);
        EXPECT_EQ(weft_run_on(1, nothing, nullptr, nullptr), EBUSY);
    });
}

TEST(weft_run, returns_the_exit_value_of_the_first_fiber) {
    EXPECT_EQ(run_in_c([]() -> void* { weft_exit(as_pointer(7)); }), as_pointer(7));
}

TEST(weft_run_on, runs_fibers_on_threads_that_share_locks) {
    static weft_mutex_t lock = WEFT_MUTEX_INITIALIZER;
    static int count;
    count = 0;
    void* result = nullptr;
    EXPECT_EQ(0, weft_run_on(
                     2,
                     [](void*) -> void* {
                         weft_t all[8];
                         for (weft_t& t : all)
                             EXPECT_EQ(0, weft_create(
                                              &t, nullptr,
                                              [](void*) -> void* {
                                                  for (int i = 0; i < 200; ++i) {
                                                      weft_mutex_lock(&lock);
                                                      ++count;
                                                      if (i % 50 == 0) weft_yield();
                                                      weft_mutex_unlock(&lock);
                                                  }
                                                  return nullptr;
                                              },
                                              nullptr));
                         for (weft_t t : all) EXPECT_EQ(0, weft_join(t, nullptr));
                         return as_pointer(count);
                     },
                     nullptr, &result));
    EXPECT_EQ(result, as_pointer(1600));
}

TEST(weft_fiber, can_be_joined_by_any_thread) {
    auto f = [] {
        weft_usleep(1000);
        return as_pointer(3);
    };
    const weft_t t = begin_in_c(f);
    void* value = nullptr;
    std::thread([&] { EXPECT_EQ(0, weft_join(t, &value)); }).join();
    EXPECT_EQ(value, as_pointer(3));
}

TEST(weft_fiber, of_c_shares_a_loop_with_a_cpp_fiber) {
    weft::testing::virtual_loop l;
    weft::fiber f(
        [] {
            auto g = [] {
                weft_usleep(1'000'000);
                return as_pointer(5);
            };
            EXPECT_EQ(weft_self(), WEFT_NULL);
            EXPECT_EQ(joined_in_c(begin_in_c(g)), as_pointer(5));
        },
        {.on = l});
    l.run();
    f.join();
    EXPECT_GE(l.now(), weft::time_point(std::chrono::seconds(1)));
}

TEST(weft_fiber_misuse, exit_outside_a_fiber_aborts) {
    EXPECT_DEATH(weft_exit(nullptr), "weft_exit outside of a fiber");
}

TEST(weft_fiber_misuse, exception_that_leaves_its_function_aborts) {
    EXPECT_DEATH(run_in_c([] { throw 1; }), "an exception left a fiber that is not joined");
}

}  // namespace
