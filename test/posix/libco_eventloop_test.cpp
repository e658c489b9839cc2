#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "co_comm.h"
#include "co_routine.h"
#include "test/support/counted.hpp"

namespace {

using weft::testing::counted;
using namespace std::chrono_literals;

template <class F>
stCoRoutine_t* begin_co(F& f) {
    stCoRoutine_t* co = nullptr;
    EXPECT_EQ(0, co_create(
                     &co, nullptr,
                     [](void* p) -> void* {
                         (*static_cast<F*>(p))();
                         return nullptr;
                     },
                     &f));
    co_resume(co);
    return co;
}

void loop_until(const bool& done) {
    co_eventloop(
        co_get_epoll_ct(), [](void* d) { return *static_cast<const bool*>(d) ? -1 : 0; },
        const_cast<bool*>(&done));
}

void sleep_co(int ms) { EXPECT_EQ(co_poll(co_get_epoll_ct(), nullptr, 0, ms), 0); }

TEST(co_eventloop, resumes_a_coroutine_when_its_wait_ends) {
    std::string said;
    bool done = false;
    auto f = [&] {
        said += '1';
        sleep_co(2);
        said += '2';
        done = true;
    };
    stCoRoutine_t* const co = begin_co(f);
    said += 'a';
    loop_until(done);
    EXPECT_EQ(said, "1a2");
    co_release(co);
}

TEST(co_eventloop, sleeps_longer_the_longer_it_is_idle) {
    int calls = 0;
    bool done = false;
    auto f = [&] {
        sleep_co(300);
        done = true;
    };
    stCoRoutine_t* const co = begin_co(f);
    struct seen {
        int& calls;
        bool& done;
    } s{calls, done};
    co_eventloop(
        co_get_epoll_ct(),
        [](void* p) {
            ++static_cast<seen*>(p)->calls;
            return static_cast<seen*>(p)->done ? -1 : 0;
        },
        &s);
    EXPECT_LE(calls, 15);
    EXPECT_GE(calls, 5);
    co_release(co);
}

TEST(co_eventloop, is_woken_by_another_thread) {
    std::atomic<bool> done{false};
    std::thread other([&, ctx = co_get_epoll_ct()] {
        done = true;
        co_eventloop_wake(ctx);
    });
    co_eventloop(
        co_get_epoll_ct(), [](void* d) { return *static_cast<std::atomic<bool>*>(d) ? -1 : 0; },
        &done);
    other.join();
}

TEST(co_eventloop, is_per_thread) {
    std::vector<std::thread> all;
    std::atomic<int> ended{0};
    for (int i = 0; i < 3; ++i)
        all.emplace_back([&] {
            bool done = false;
            auto f = [&] {
                for (int k = 0; k < 5; ++k) sleep_co(1);
                done = true;
            };
            stCoRoutine_t* const co = begin_co(f);
            loop_until(done);
            co_release(co);
            ++ended;
        });
    for (std::thread& t : all) t.join();
    EXPECT_EQ(ended, 3);
}

TEST(co_poll, reports_readiness_and_timeout) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    bool done = false;
    auto reads = [&] {
        pollfd p{ends[0], POLLIN | POLLERR | POLLHUP, 0};
        EXPECT_EQ(co_poll(co_get_epoll_ct(), &p, 1, 2), 0);
        EXPECT_EQ(co_poll(co_get_epoll_ct(), &p, 1, -1), 1);
        EXPECT_EQ(p.revents, POLLIN);
        done = true;
    };
    auto writes = [&] {
        sleep_co(10);
        EXPECT_EQ(::write(ends[1], "x", 1), 1);
    };
    stCoRoutine_t* const r = begin_co(reads);
    stCoRoutine_t* const w = begin_co(writes);
    loop_until(done);
    co_release(r);
    co_release(w);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(co_poll, outside_a_coroutine_is_poll) {
    pollfd p{STDERR_FILENO, 0, 5};
    EXPECT_GE(co_poll(co_get_epoll_ct(), &p, 1, 0), 0);
    EXPECT_EQ(co_poll(co_get_epoll_ct(), nullptr, 0, 1), 0);
}

TEST(co_poll, is_unwound_when_its_coroutine_is_released) {
    int destroyed = 0;
    auto f = [&] {
        counted c{destroyed};
        sleep_co(1'000'000);
    };
    co_release(begin_co(f));
    EXPECT_EQ(destroyed, 1);
}

TEST(co_cond, distinguishes_a_signal_from_a_timeout) {
    stCoCond_t* const cond = co_cond_alloc();
    bool done = false;
    auto waits = [&] {
        errno = 0;
        EXPECT_EQ(co_cond_timedwait(cond, 2), -1);
        EXPECT_EQ(errno, ETIMEDOUT);
        EXPECT_EQ(co_cond_timedwait(cond, 100'000), 0);
        EXPECT_EQ(co_cond_timedwait(cond, -1), 0);
        done = true;
    };
    auto signals = [&] {
        sleep_co(8);
        co_cond_signal(cond);
        sleep_co(1);
        co_cond_signal(cond);
    };
    stCoRoutine_t* const w = begin_co(waits);
    stCoRoutine_t* const s = begin_co(signals);
    loop_until(done);
    co_release(w);
    co_release(s);
    EXPECT_EQ(co_cond_free(cond), 0);
}

TEST(co_cond, wakes_the_oldest_or_all_but_not_at_once) {
    stCoCond_t* const cond = co_cond_alloc();
    std::string order;
    int made = 0;
    bool done = false;
    auto waits = [&] {
        const char name = static_cast<char>('a' + made++);
        EXPECT_EQ(co_cond_timedwait(cond, -1), 0);
        order += name;
        done = order.size() == 4;
    };
    stCoRoutine_t* all[4];
    for (stCoRoutine_t*& co : all) co = begin_co(waits);
    co_cond_signal(cond);
    co_cond_broadcast(cond);
    EXPECT_EQ(order, "");
    loop_until(done);
    EXPECT_EQ(order, "abcd");
    for (stCoRoutine_t* co : all) co_release(co);
    co_cond_free(cond);
}

TEST(co_cond, signalled_by_another_thread_resumes_on_its_own) {
    stCoCond_t* const cond = co_cond_alloc();
    bool done = false;
    const auto here = std::this_thread::get_id();
    auto waits = [&] {
        EXPECT_EQ(co_cond_timedwait(cond, -1), 0);
        EXPECT_EQ(std::this_thread::get_id(), here);
        done = true;
    };
    stCoRoutine_t* const co = begin_co(waits);
    std::thread other([&] { co_cond_signal(cond); });
    loop_until(done);
    other.join();
    co_release(co);
    co_cond_free(cond);
}

TEST(co_cond, forgets_a_released_coroutine) {
    stCoCond_t* const cond = co_cond_alloc();
    auto waits = [&] { co_cond_timedwait(cond, -1); };
    co_release(begin_co(waits));
    co_cond_signal(cond);
    co_cond_free(cond);
}

TEST(co_misuse, free_of_a_condition_with_a_waiter_aborts) {
    EXPECT_DEATH(
        {
            stCoCond_t* const cond = co_cond_alloc();
            auto waits = [&] { co_cond_timedwait(cond, -1); };
            begin_co(waits);
            co_cond_free(cond);
        },
        "co_cond_free of a condition that has waiters");
}

TEST(co_mutex, is_owned_by_one_at_a_time_in_order_of_arrival) {
    clsCoMutex m;
    int inside = 0, made = 0;
    std::string order;
    bool done = false;
    auto f = [&] {
        const char name = static_cast<char>('a' + made++);
        for (int i = 0; i < 2; ++i) {
            clsSmartLock held(&m);
            EXPECT_EQ(++inside, 1);
            order += name;
            sleep_co(1);
            --inside;
        }
        done = order.size() == 6;
    };
    stCoRoutine_t* all[3];
    for (stCoRoutine_t*& co : all) co = begin_co(f);
    loop_until(done);
    EXPECT_EQ(order, "abcabc");
    for (stCoRoutine_t* co : all) co_release(co);
}

TEST(co_accept, returns_the_error_of_the_system) {
    errno = 0;
    EXPECT_EQ(co_accept(-1, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EBADF);
}

}  // namespace
