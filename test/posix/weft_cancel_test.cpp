// What ends a fiber in the middle: weft_exit, weft_cancel, and the end of its loop.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "test/posix/in_c.hpp"
#include "test/support/counted.hpp"
#include "weft/sched/loop.hpp"
#include "weft/wait/flow.hpp"

namespace {

using weft::testing::as_pointer;
using weft::testing::begin_in_c;
using weft::testing::counted;
using weft::testing::joined_in_c;
using weft::testing::run_in_c;

// A handler that records that it ran.
void note(void* text) { *static_cast<std::string*>(text) += "a"; }
void note_b(void* text) { *static_cast<std::string*>(text) += "b"; }

TEST(weft_exit, unwinds_and_runs_handlers_in_reverse_order) {
    run_in_c([] {
        int destroyed = 0;
        std::string said;
        auto f = [&] {
            counted c{destroyed};
            weft_cleanup_push(note, &said);
            weft_cleanup_push(note_b, &said);
            weft_exit(as_pointer(9));
            weft_cleanup_pop(0);
            weft_cleanup_pop(0);
        };
        EXPECT_EQ(joined_in_c(begin_in_c(f)), as_pointer(9));
        EXPECT_EQ(destroyed, 1);
        EXPECT_EQ(said, "ba");
    });
}

TEST(weft_cleanup, runs_at_the_pop_only_if_requested) {
    run_in_c([] {
        std::string said;
        weft_cleanup_push(note, &said);
        weft_cleanup_push(note_b, &said);
        weft_cleanup_pop(1);
        weft_cleanup_pop(0);
        EXPECT_EQ(said, "b");
    });
}

TEST(weft_cleanup, does_not_run_when_a_wait_returns) {
    run_in_c([] {
        static int runs;
        runs = 0;
        weft_cleanup_push([](void*) { ++runs; }, nullptr);
        EXPECT_EQ(weft_usleep(1), 0);
        EXPECT_EQ(runs, 0);
        weft_cleanup_pop(1);
        EXPECT_EQ(runs, 1);
    });
}

TEST(weft_cleanup, runs_when_an_exception_leaves_the_block) {
    run_in_c([] {
        std::string said;
        try {
            weft_cleanup_push(note, &said);
            throw 1;
            weft_cleanup_pop(0);
        } catch (int) {
        }
        EXPECT_EQ(said, "a");
        weft_cleanup_push(note_b, &said);
        weft_cleanup_pop(1);
        EXPECT_EQ(said, "ab");
    });
}

TEST(weft_cleanup, works_on_a_plain_thread) {
    std::string said;
    weft_cleanup_push(note, &said);
    weft_cleanup_pop(1);
    EXPECT_EQ(said, "a");
}

// Each point of cancellation: a fiber waits there, is cancelled, and ends with handlers and
// destructors.
template <class Wait>
void is_ended_in(Wait wait) {
    run_in_c([&] {
        int destroyed = 0;
        std::string said;
        auto f = [&] {
            counted c{destroyed};
            weft_cleanup_push(note, &said);
            wait();
            ADD_FAILURE() << "came back";
            weft_cleanup_pop(0);
        };
        const weft_t t = begin_in_c(f);
        weft_yield();
        EXPECT_EQ(destroyed, 0);
        EXPECT_EQ(weft_cancel(t), 0);
        EXPECT_EQ(joined_in_c(t), WEFT_CANCELED);
        EXPECT_EQ(destroyed, 1);
        EXPECT_EQ(said, "a");
    });
}

TEST(weft_cancel, ends_a_sleep) {
    is_ended_in([] { weft_sleep(3600); });
}
TEST(weft_cancel, ends_a_poll) {
    is_ended_in([] { weft_poll(nullptr, 0, -1); });
}
TEST(weft_cancel, ends_a_poll_of_an_fd) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    is_ended_in([&] {
        pollfd p{ends[0], POLLIN, 0};
        weft_poll(&p, 1, -1);
    });
    is_ended_in([&] {
        pollfd p[2] = {{ends[0], POLLIN, 0}, {ends[0], POLLPRI, 0}};
        weft_poll(p, 2, -1);
    });
    ::close(ends[0]);
    ::close(ends[1]);
}
TEST(weft_cancel, ends_a_loop_that_calls_testcancel) {
    is_ended_in([] {
        for (;;) {
            weft_yield();  // is no such point
            weft_testcancel();
        }
    });
}

TEST(weft_cancel, ends_a_condition_wait_with_the_mutex_locked) {
    static weft_mutex_t lock = WEFT_MUTEX_INITIALIZER;
    static weft_cond_t cond = WEFT_COND_INITIALIZER;
    is_ended_in([] {
        weft_mutex_lock(&lock);
        weft_cleanup_push(
            [](void* m) { EXPECT_EQ(weft_mutex_unlock(static_cast<weft_mutex_t*>(m)), 0); }, &lock);
        weft_cond_wait(&cond, &lock);
        weft_cleanup_pop(1);
    });
    EXPECT_EQ(weft_mutex_trylock(&lock), 0);
    EXPECT_EQ(weft_mutex_unlock(&lock), 0);
}

TEST(weft_cancel, ends_a_join_and_leaves_the_target_joinable) {
    run_in_c([] {
        auto sleeps = [] { weft_usleep(3000); };
        const weft_t t = begin_in_c(sleeps);
        auto joins = [&] { weft_join(t, nullptr); };
        const weft_t joiner = begin_in_c(joins);
        weft_yield();
        EXPECT_EQ(weft_cancel(joiner), 0);
        EXPECT_EQ(joined_in_c(joiner), WEFT_CANCELED);
        EXPECT_EQ(joined_in_c(t), nullptr);
    });
}

TEST(weft_cancel, does_not_end_the_wait_for_a_lock) {
    run_in_c([] {
        static weft_mutex_t lock = WEFT_MUTEX_INITIALIZER;
        bool had = false;
        auto f = [&] {
            weft_mutex_lock(&lock);
            had = true;
            weft_mutex_unlock(&lock);
            weft_testcancel();
            ADD_FAILURE() << "came back";
        };
        weft_mutex_lock(&lock);
        const weft_t t = begin_in_c(f);
        weft_yield();
        weft_cancel(t);
        weft_yield();
        EXPECT_FALSE(had);
        weft_mutex_unlock(&lock);
        EXPECT_EQ(joined_in_c(t), WEFT_CANCELED);
        EXPECT_TRUE(had);
    });
}

TEST(weft_cancel, is_pending_until_enabled) {
    run_in_c([] {
        int before = -1;
        bool slept = false;
        auto f = [&] {
            EXPECT_EQ(weft_setcancelstate(WEFT_CANCEL_DISABLE, &before), 0);
            weft_usleep(1000);
            weft_testcancel();
            slept = true;
            int was = -1;
            EXPECT_EQ(weft_setcancelstate(WEFT_CANCEL_ENABLE, &was), 0);
            EXPECT_EQ(was, WEFT_CANCEL_DISABLE);
            weft_testcancel();
            ADD_FAILURE() << "came back";
        };
        const weft_t t = begin_in_c(f);
        weft_yield();
        weft_cancel(t);
        EXPECT_EQ(joined_in_c(t), WEFT_CANCELED);
        EXPECT_EQ(before, WEFT_CANCEL_ENABLE);
        EXPECT_TRUE(slept);
        EXPECT_EQ(weft_setcancelstate(2, nullptr), EINVAL);
    });
}

TEST(weft_cancel, does_not_end_the_waits_of_a_cleanup_handler) {
    run_in_c([] {
        bool slept = false;
        auto f = [&] {
            weft_cleanup_push(
                [](void* p) {
                    EXPECT_EQ(weft_usleep(1000), 0);
                    weft_testcancel();
                    *static_cast<bool*>(p) = true;
                },
                &slept);
            weft_sleep(3600);
            weft_cleanup_pop(0);
        };
        const weft_t t = begin_in_c(f);
        weft_yield();
        weft_cancel(t);
        EXPECT_EQ(joined_in_c(t), WEFT_CANCELED);
        EXPECT_TRUE(slept);
    });
}

TEST(weft_cancel, has_no_effect_on_a_done_fiber) {
    run_in_c([] {
        auto f = [] { return as_pointer(1); };
        const weft_t t = begin_in_c(f);
        weft_yield();
        EXPECT_EQ(weft_cancel(t), 0);
        EXPECT_EQ(joined_in_c(t), as_pointer(1));
    });
}

TEST(weft_cancel, before_the_first_turn_acts_at_the_first_wait) {
    run_in_c([] {
        bool began = false;
        auto f = [&] {
            began = true;
            weft_sleep(3600);
        };
        const weft_t t = begin_in_c(f);
        weft_cancel(t);
        EXPECT_EQ(joined_in_c(t), WEFT_CANCELED);
        EXPECT_TRUE(began);
    });
}

TEST(weft_cancel, reaches_a_fiber_on_another_thread) {
    auto f = [] { weft_sleep(3600); };
    const weft_t t = begin_in_c(f);
    EXPECT_EQ(weft_cancel(t), 0);
    EXPECT_EQ(joined_in_c(t), WEFT_CANCELED);
}

// A wait that no stop ends, so that the end of the loop kills what waits there.
TEST(weft_fiber, killed_in_a_c_call_unwinds_and_runs_its_handlers) {
    int destroyed = 0;
    std::string said;
    weft_mutex_t lock = WEFT_MUTEX_INITIALIZER;
    weft_t t = WEFT_NULL;
    auto f = [&] {
        counted c{destroyed};
        weft_cleanup_push(note, &said);
        weft_mutex_lock(&lock);
        weft_cleanup_pop(0);
    };
    ASSERT_EQ(weft_mutex_lock(&lock), 0);
    {
        weft::loop l;
        l.post([&] { t = begin_in_c(f); });
        l.run_until_idle();
        EXPECT_EQ(said, "");
    }
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(said, "a");
    EXPECT_EQ(joined_in_c(t), WEFT_CANCELED);
    EXPECT_EQ(weft_mutex_unlock(&lock), 0);
}

TEST(weft_fiber, can_be_joined_when_its_loop_has_ended) {
    weft_t t = WEFT_NULL;
    bool ran = false;
    auto f = [&] {
        ran = true;
        weft_sleep(3600);
    };
    {
        weft::loop l;
        l.post([&] { t = begin_in_c(f); });
        l.run_until_idle();
    }
    EXPECT_EQ(joined_in_c(t), WEFT_CANCELED);
    EXPECT_TRUE(ran);
}

TEST(weft_fiber_misuse, cleanup_pop_in_the_wrong_order_aborts) {
    EXPECT_DEATH(run_in_c([] {
                     weft_cleanup a{}, b{};
                     weft_cleanup_enter_(&a, note, nullptr);
                     weft_cleanup_enter_(&b, note, nullptr);
                     weft_cleanup_leave_(&a, 0);
                 }),
                 "weft_cleanup_pop of another");
}

}  // namespace
