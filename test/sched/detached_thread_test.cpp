#include "weft/sched/detail/detached_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>

namespace weft {
namespace {

TEST(detached_thread, runs_on_another_thread_with_signals_blocked) {
    struct seen {
        std::thread::id where;
        bool blocked[2] = {};
        std::atomic<bool> over{false};
    };
    static seen there;  // the thread may still be at its notification when this function returns
    ASSERT_TRUE(detail::begin_detached_thread(
        [](void* of) noexcept {
            auto& s = *static_cast<seen*>(of);
            s.where = std::this_thread::get_id();
            ::sigset_t mask;
            ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
            s.blocked[0] = ::sigismember(&mask, SIGINT) == 1;
            s.blocked[1] = ::sigismember(&mask, SIGUSR1) == 1;
            s.over = true;
            s.over.notify_one();
        },
        &there));
    there.over.wait(false);
    EXPECT_NE(there.where, std::this_thread::get_id());
    EXPECT_TRUE(there.blocked[0] && there.blocked[1]);
}

TEST(detached_thread, keeps_the_signal_mask_of_its_creator) {
    ::sigset_t before;
    ::sigset_t after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    static std::atomic<bool> over;
    over = false;
    ASSERT_TRUE(detail::begin_detached_thread(
        [](void*) noexcept {
            over = true;
            over.notify_one();
        },
        nullptr));
    ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int n = 1; n != NSIG; ++n) EXPECT_EQ(::sigismember(&before, n), ::sigismember(&after, n));
    over.wait(false);
}

// More than other tests have left behind, which may end meanwhile.
TEST(detached_thread, is_counted_while_its_function_runs) {
    constexpr unsigned many = 40;
    static std::atomic<unsigned> begun;
    static std::atomic<bool> goes;
    begun = 0;
    goes = false;
    for (unsigned i = 0; i < many; ++i)
        ASSERT_TRUE(detail::begin_detached_thread(
            [](void*) noexcept {
                ++begun;
                goes.wait(false);
            },
            nullptr));
    while (begun != many) std::this_thread::yield();
    EXPECT_GE(detail::detached_thread_count(), many);
    goes = true;
    goes.notify_all();
    while (detail::detached_thread_count() >= many) std::this_thread::yield();
}

}  // namespace
}  // namespace weft
