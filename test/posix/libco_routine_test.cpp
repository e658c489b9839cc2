#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "co_routine.h"
#include "co_routine_inner.h"
#include "test/support/counted.hpp"

namespace {

using weft::testing::counted;

// A coroutine that runs f(), which outlives it.
template <class F>
stCoRoutine_t* make_co(F& f, const stCoRoutineAttr_t* attr = nullptr) {
    stCoRoutine_t* co = nullptr;
    EXPECT_EQ(0, co_create(
                     &co, attr,
                     [](void* p) -> void* {
                         (*static_cast<F*>(p))();
                         return nullptr;
                     },
                     &f));
    return co;
}

TEST(co_resume, runs_the_coroutine_until_it_yields_or_ends) {
    std::string said;
    auto f = [&] {
        said += 'a';
        co_yield_ct();
        said += 'b';
        co_yield_of(co_self());
        said += 'c';
    };
    stCoRoutine_t* const co = make_co(f);
    EXPECT_EQ(said, "");
    co_resume(co);
    EXPECT_EQ(said, "a");
    co_resume(co);
    EXPECT_EQ(said, "ab");
    co_resume(co);
    EXPECT_EQ(said, "abc");
    co_release(co);
}

TEST(co_resume, nests_without_a_fixed_depth_limit) {
    static int depth;
    static int deepest;
    static constexpr int most = 2000;
    depth = deepest = 0;
    struct nest {
        static void* run(void*) {
            deepest = std::max(deepest, ++depth);
            if (depth < most) {
                stCoRoutine_t* inner = nullptr;
                stCoRoutineAttr_t small;
                small.stack_size = 16 * 1024;
                EXPECT_EQ(co_create(&inner, &small, run, nullptr), 0);
                co_resume(inner);
                co_resume(inner);
                co_release(inner);
            }
            co_yield_ct();
            --depth;
            return nullptr;
        }
    };
    stCoRoutine_t* co = nullptr;
    co_create(&co, nullptr, nest::run, nullptr);
    co_resume(co);
    EXPECT_EQ(deepest, most);
    co_resume(co);
    EXPECT_EQ(depth, 0);
    co_release(co);
}

TEST(co_resume, returns_to_the_resuming_coroutine) {
    std::string said;
    auto inner = [&] {
        said += '1';
        co_yield_ct();
        said += '2';
    };
    stCoRoutine_t* const in = make_co(inner);
    auto outer = [&] {
        co_resume(in);
        said += 'a';
        co_yield_ct();
        said += 'b';
    };
    stCoRoutine_t* const out = make_co(outer);
    co_resume(out);
    EXPECT_EQ(said, "1a");
    co_resume(in);  // now by the thread
    EXPECT_EQ(said, "1a2");
    co_resume(out);
    EXPECT_EQ(said, "1a2b");
    co_release(in);
    co_release(out);
}

TEST(co_release, unwinds_a_suspended_coroutine) {
    int destroyed = 0;
    auto f = [&] {
        counted a{destroyed};
        auto deeper = [&] {
            counted b{destroyed};
            co_yield_ct();
            ADD_FAILURE() << "went on";
        };
        deeper();
    };
    stCoRoutine_t* const co = make_co(f);
    co_resume(co);
    EXPECT_EQ(destroyed, 0);
    co_release(co);
    EXPECT_EQ(destroyed, 2);
}

TEST(co_release, of_an_unstarted_coroutine_runs_nothing) {
    auto f = [] { ADD_FAILURE() << "began"; };
    co_release(make_co(f));
}

TEST(co_release, of_the_caller_takes_effect_when_it_ends) {
    int destroyed = 0;
    auto f = [&] {
        counted c{destroyed};
        co_release(co_self());
        co_yield_ct();
    };
    stCoRoutine_t* const co = make_co(f);
    co_resume(co);
    EXPECT_EQ(destroyed, 0);
    co_resume(co);
    EXPECT_EQ(destroyed, 1);
}

TEST(co_free, is_equivalent_to_co_release) {
    int destroyed = 0;
    auto f = [&] {
        counted c{destroyed};
        co_yield_ct();
    };
    stCoRoutine_t* const co = make_co(f);
    co_resume(co);
    co_free(co);
    EXPECT_EQ(destroyed, 1);
}

TEST(co_reset, restarts_the_coroutine_from_any_state) {
    int destroyed = 0, began = 0;
    auto f = [&] {
        counted c{destroyed};
        ++began;
        co_yield_ct();
    };
    stCoRoutine_t* const co = make_co(f);
    co_resume(co);
    co_reset(co);  // suspended
    EXPECT_EQ(destroyed, 1);
    co_resume(co);
    co_resume(co);
    EXPECT_EQ(destroyed, 2);
    co_reset(co);  // done
    co_reset(co);  // never started
    co_resume(co);
    EXPECT_EQ(began, 3);
    co_release(co);
    EXPECT_EQ(destroyed, 3);
}

TEST(co_self, returns_the_running_or_the_threads_main_coroutine) {
    stCoRoutine_t* inside = nullptr;
    auto f = [&] {
        inside = co_self();
        EXPECT_EQ(GetCurrThreadCo(), inside);
    };
    stCoRoutine_t* const co = make_co(f);
    co_resume(co);
    EXPECT_EQ(inside, co);
    EXPECT_NE(co_self(), nullptr);
    EXPECT_NE(co_self(), co);
    EXPECT_NE(co_get_curr_thread_env(), nullptr);
    std::thread([] {
        EXPECT_EQ(co_self(), nullptr);
        EXPECT_EQ(co_get_curr_thread_env(), nullptr);
        co_init_curr_thread_env();
        EXPECT_NE(co_self(), nullptr);
        EXPECT_NE(co_get_curr_thread_env(), nullptr);
    }).join();
    co_release(co);
}

TEST(co_create, uses_the_requested_stack_size) {
    stCoRoutineAttr_t attr;
    EXPECT_EQ(attr.stack_size, 128 * 1024);
    EXPECT_EQ(attr.share_stack, nullptr);
    attr.stack_size = 1 << 20;
    auto f = [] {
        volatile char much[700 * 1024];
        for (std::size_t i = 0; i < sizeof much; i += 1024) much[i] = 1;
    };
    stCoRoutine_t* const co = make_co(f, &attr);
    co_resume(co);
    co_release(co);
}

TEST(co_alloc_sharestack, lets_coroutines_take_turns_on_one_stack) {
    stShareStack_t* const stacks = co_alloc_sharestack(1, 128 * 1024);
    stCoRoutineAttr_t attr;
    attr.stack_size = 0;
    attr.share_stack = stacks;
    int made = 0, rounds = 0;
    auto f = [&] {
        const int mine = made++;
        char local[200];
        std::memset(local, 'a' + mine, sizeof local);
        for (int i = 0; i < 10; ++i) {
            co_yield_ct();
            ++rounds;
            for (const char c : local) EXPECT_EQ(c, 'a' + mine);
        }
    };
    stCoRoutine_t* all[3];
    for (stCoRoutine_t*& co : all) co = make_co(f, &attr);
    for (int i = 0; i < 11; ++i)
        for (stCoRoutine_t* co : all) co_resume(co);
    EXPECT_EQ(rounds, 30);
    for (stCoRoutine_t* co : all) co_release(co);
    co_free_sharestack(stacks);
}

TEST(co_alloc_sharestack, lets_a_coroutine_resume_another_on_the_same_stack) {
    stShareStack_t* const stacks = co_alloc_sharestack(1, 128 * 1024);
    stCoRoutineAttr_t attr;
    attr.share_stack = stacks;
    int destroyed = 0;
    static std::string said;
    said.clear();
    auto inner = [&] {
        counted c{destroyed};
        said += '1';
        co_yield_ct();
        said += '2';
        co_yield_ct();
    };
    stCoRoutine_t* const in = make_co(inner, &attr);
    auto outer = [&] {
        char local[64];
        std::memset(local, 'o', sizeof local);
        co_resume(in);
        said += 'a';
        co_resume(in);
        said += 'b';
        co_release(in);
        for (const char c : local) EXPECT_EQ(c, 'o');
    };
    stCoRoutine_t* const out = make_co(outer, &attr);
    co_resume(out);
    EXPECT_EQ(said, "1a2b");
    EXPECT_EQ(destroyed, 1);
    co_release(out);
    co_free_sharestack(stacks);
}

TEST(co_thread, unwinds_its_suspended_coroutines_on_exit) {
    int destroyed = 0;
    stCoRoutine_t* co = nullptr;
    auto f = [&] {
        counted c{destroyed};
        co_yield_ct();
    };
    std::thread([&] {
        co = make_co(f);
        co_resume(co);
    }).join();
    EXPECT_EQ(destroyed, 1);
    co_release(co);
}

TEST(co_thread, can_start_a_coroutine_that_another_created) {
    bool ran = false;
    auto f = [&] { ran = true; };
    stCoRoutine_t* const co = make_co(f);
    std::thread([&] { co_resume(co); }).join();
    EXPECT_TRUE(ran);
    co_release(co);
}

int status_of_child(void (*child)()) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        child();
        ::_exit(99);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(co_process, has_its_own_coroutines_after_a_fork) {
    co_init_curr_thread_env();
    EXPECT_EQ(status_of_child([] {
                  bool ran = false;
                  auto f = [&] {
                      co_poll(co_get_epoll_ct(), nullptr, 0, 1);
                      ran = true;
                  };
                  co_resume(make_co(f));
                  co_eventloop(
                      co_get_epoll_ct(), [](void* r) { return *static_cast<bool*>(r) ? -1 : 0; },
                      &ran);
                  ::_exit(ran ? 7 : 8);
              }),
              7);
}

// Objects in the frames of a parent are the parent's to destroy.
TEST(co_process, destroys_nothing_of_its_parent_after_a_fork) {
    if (WEFT_TEST_ASAN) GTEST_SKIP() << "it takes what is left to the parent for a leak";
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    struct tells {
        int fd;
        ~tells() { EXPECT_EQ(::write(fd, "x", 1), 1); }
    };
    auto f = [&] {
        const tells at_the_end{ends[1]};
        co_yield_ct();
    };
    stCoRoutine_t* const co = make_co(f);
    co_resume(co);
    EXPECT_EQ(status_of_child([] { std::exit(0); }), 0);  // with what its thread has to end
    char buffer[2];
    co_release(co);
    EXPECT_EQ(::read(ends[0], buffer, sizeof buffer), 1) << "once, here";
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(co_process, can_exit_in_a_coroutine) {
    if (WEFT_TEST_ASAN) GTEST_SKIP() << "it looks for leaks from the stack on which exit is called";
    EXPECT_EXIT(
        {
            auto f = [] { std::exit(3); };
            co_resume(make_co(f));
        },
        ::testing::ExitedWithCode(3), "");
}

TEST(co_misuse, resume_of_a_done_coroutine_aborts) {
    EXPECT_DEATH(
        {
            auto f = [] {};
            stCoRoutine_t* const co = make_co(f);
            co_resume(co);
            co_resume(co);
        },
        "co_resume of a coroutine that has ended");
}

TEST(co_misuse, resume_of_the_caller_itself_aborts) {
    EXPECT_DEATH(
        {
            auto f = [] { co_resume(co_self()); };
            co_resume(make_co(f));
        },
        "co_resume of a coroutine that runs");
}

TEST(co_misuse, resume_of_a_coroutine_in_another_wait_aborts) {
    EXPECT_DEATH(
        {
            auto f = [] { co_poll(co_get_epoll_ct(), nullptr, 0, 1000); };
            stCoRoutine_t* const co = make_co(f);
            co_resume(co);
            co_resume(co);
        },
        "co_resume of a coroutine that waits for a time point");
}

TEST(co_misuse, resume_by_another_thread_aborts) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto f = [] { co_yield_ct(); };
            stCoRoutine_t* const co = make_co(f);
            co_resume(co);
            std::thread([&] { co_resume(co); }).join();
        },
        "co_resume of another thread's coroutine");
}

TEST(co_misuse, yield_outside_a_coroutine_aborts) {
    EXPECT_DEATH(co_yield_ct(), "co_yield_ct outside of any coroutine");
}

TEST(co_misuse, release_by_a_nested_coroutine_aborts) {
    EXPECT_DEATH(
        {
            static stCoRoutine_t* out;
            auto inner = [] { co_release(out); };
            stCoRoutine_t* const in = make_co(inner);
            auto outer = [&] { co_resume(in); };
            out = make_co(outer);
            co_resume(out);
        },
        "the end of a coroutine by what it runs");
}

TEST(co_misuse, event_loop_in_a_coroutine_aborts) {
    EXPECT_DEATH(
        {
            auto f = [] { co_eventloop(co_get_epoll_ct(), nullptr, nullptr); };
            co_resume(make_co(f));
        },
        "co_eventloop in a coroutine");
}

TEST(co_log_err, writes_a_line) {
    ::testing::internal::CaptureStderr();
    co_log_err("%s %d", "number", 5);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "number 5\n");
}

}  // namespace
