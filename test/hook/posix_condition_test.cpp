// Conditions and the threads of C11: the cases of the differential suite, and what only fibers do.
#include <gtest/gtest.h>
#include <pthread.h>
#include <threads.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "test/hook/suite.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/hook/detail/parking_lot.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/loop.hpp"

namespace {

using namespace weft;
using weft::testing::counted_end;
using weft::testing::moment_by;

POSIX_CASE(conditions_wait_until_they_are_signalled) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    int items = 0;
    bool over = false;
    HOOKED(pthread_mutex_lock)(&m);
    t.beside([&] {
        HOOKED(pthread_mutex_lock)(&m);
        items = 1;
        HOOKED(pthread_cond_signal)(&c);
        while (items != 0) HOOKED(pthread_cond_wait)(&c, &m);
        over = true;
        HOOKED(pthread_cond_broadcast)(&c);
        HOOKED(pthread_mutex_unlock)(&m);
    });
    while (items == 0) t.told("wait", HOOKED(pthread_cond_wait)(&c, &m));
    items = 0;
    HOOKED(pthread_cond_signal)(&c);
    while (!over) HOOKED(pthread_cond_wait)(&c, &m);
    t.told("try", HOOKED(pthread_mutex_trylock)(&m));
    t.told("unlock", HOOKED(pthread_mutex_unlock)(&m));
}

POSIX_CASE(conditions_wait_until_their_time) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    HOOKED(pthread_mutex_lock)(&m);
    for (const clockid_t by : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
        pthread_condattr_t a;
        ::pthread_condattr_init(&a);
        ::pthread_condattr_setclock(&a, by);
        pthread_cond_t of_clock;
        ::pthread_cond_init(&of_clock, &a);
        ::pthread_condattr_destroy(&a);
        timespec end = moment_by(by, 20);
        t.took("so long", std::chrono::milliseconds(19),
               [&] { t.told("in vain", HOOKED(pthread_cond_timedwait)(&of_clock, &m, &end)); });
        end = moment_by(by, 20);
        t.took("so long", std::chrono::milliseconds(19),
               [&] { t.told("by a clock", HOOKED(pthread_cond_clockwait)(&c, &m, by, &end)); });
        ::pthread_cond_destroy(&of_clock);
    }
    for (const timespec past : {timespec{0, 0}, timespec{-1, 0}})
        t.told("past", HOOKED(pthread_cond_timedwait)(&c, &m, &past));
    for (const timespec none : {timespec{0, -1}, timespec{0, 1'000'000'000}}) {
        t.told("no time", HOOKED(pthread_cond_timedwait)(&c, &m, &none));
        t.told("no time", HOOKED(pthread_cond_clockwait)(&c, &m, CLOCK_REALTIME, &none));
    }
    const timespec past = {0, 0};
    t.told("no clock", HOOKED(pthread_cond_clockwait)(&c, &m, CLOCK_PROCESS_CPUTIME_ID, &past));
    t.told("try", HOOKED(pthread_mutex_trylock)(&m));
    HOOKED(pthread_mutex_unlock)(&m);
}

POSIX_CASE(conditions_ask_whose_the_mutex_is) {
    for (const int type : {PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE}) {
        pthread_mutexattr_t a;
        ::pthread_mutexattr_init(&a);
        ::pthread_mutexattr_settype(&a, type);
        pthread_mutex_t m;
        ::pthread_mutex_init(&m, &a);
        ::pthread_mutexattr_destroy(&a);
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        t.told("not its own", HOOKED(pthread_cond_wait)(&c, &m));
        HOOKED(pthread_mutex_lock)(&m);
        const timespec past = {0, 0};
        t.told("its own", HOOKED(pthread_cond_timedwait)(&c, &m, &past));
        t.told("unlock", HOOKED(pthread_mutex_unlock)(&m));
        t.told("unlock", HOOKED(pthread_mutex_unlock)(&m));
        ::pthread_mutex_destroy(&m);
    }
}

POSIX_CASE(conditions_of_processes_are_signalled) {
    pthread_condattr_t a;
    ::pthread_condattr_init(&a);
    ::pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_cond_t c;
    ::pthread_cond_init(&c, &a);
    ::pthread_condattr_destroy(&a);
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    bool told = false;
    t.beside([&] {
        weft::testing::after_ms(5);
        HOOKED(pthread_mutex_lock)(&m);
        told = true;
        HOOKED(pthread_cond_signal)(&c);
        HOOKED(pthread_mutex_unlock)(&m);
    });
    HOOKED(pthread_mutex_lock)(&m);
    while (!told) HOOKED(pthread_cond_wait)(&c, &m);
    const timespec end = moment_by(CLOCK_REALTIME, 10);
    int r;
    while ((r = HOOKED(pthread_cond_timedwait)(&c, &m, &end)) == 0) {
    }
    t.told("in vain", r);
    HOOKED(pthread_mutex_unlock)(&m);
    t.join();
    ::pthread_cond_destroy(&c);
}

POSIX_CASE(threads_of_c11_exclude_and_wait) {
    mtx_t m;
    cnd_t c;
    ::mtx_init(&m, mtx_timed | mtx_recursive);
    ::cnd_init(&c);
    bool told = false;
    t.told("lock", HOOKED(mtx_lock)(&m));
    t.told("again", HOOKED(mtx_trylock)(&m));
    t.told("unlock", HOOKED(mtx_unlock)(&m));
    t.beside([&] {
        timespec end = moment_by(CLOCK_REALTIME, 2);
        t.told("another's", HOOKED(mtx_trylock)(&m));
        t.told("in vain", HOOKED(mtx_timedlock)(&m, &end));
        HOOKED(mtx_lock)(&m);
        told = true;
        HOOKED(cnd_signal)(&c);
        HOOKED(cnd_broadcast)(&c);
        HOOKED(mtx_unlock)(&m);
    });
    const timespec some = {0, 10'000'000};
    t.took("sleep", std::chrono::milliseconds(10),
           [&] { t.told("sleep", HOOKED(thrd_sleep)(&some, nullptr)); });
    const timespec none = {0, -1};
    t.told("no sleep", HOOKED(thrd_sleep)(&none, nullptr));
    HOOKED(thrd_yield)();
    while (!told) HOOKED(cnd_wait)(&c, &m);
    timespec end = moment_by(CLOCK_REALTIME, 5);
    t.told("in vain", HOOKED(cnd_timedwait)(&c, &m, &end));
    t.told("unlock", HOOKED(mtx_unlock)(&m));
    t.told("unlock", HOOKED(mtx_unlock)(&m));
    t.join();
    ::cnd_destroy(&c);
    ::mtx_destroy(&m);
}

int c11_beginnings = 0;
void begin_slowly() {
    HOOKED(usleep)(2000);
    ++c11_beginnings;
}

POSIX_CASE(threads_of_c11_begin_once_and_keep_what_is_their_own) {
    once_flag once = ONCE_FLAG_INIT;
    c11_beginnings = 0;
    tss_t key;
    static std::atomic<int> dropped;
    dropped = 0;
    t.told("create", HOOKED(tss_create)(&key, [](void*) { ++dropped; }));
    std::atomic<int> right{0};
    for (int i = 0; i < 3; ++i)
        t.beside([&] {
            int mine = 0;
            const auto set = HOOKED(tss_set)(key, &mine);
            HOOKED(call_once)(&once, begin_slowly);
            HOOKED(usleep)(1000);
            if (set == thrd_success && HOOKED(tss_get)(key) == &mine && c11_beginnings == 1)
                ++right;
        });
    t.join();
    t.told("right", right);
    t.told("dropped", dropped);
    t.told("of another", HOOKED(tss_get)(key) != nullptr);
    HOOKED(tss_delete)(key);
}

POSIX_CASE(threads_of_c11_end_where_they_say) {
    std::atomic<int> steps{0};
    t.beside([&] {
        const counted_end at_end{steps};
        HOOKED(usleep)(1000);
        HOOKED(thrd_exit)(3);
        ++steps;
    });
    t.join();
    t.told("unwound", steps);
    thrd_t other;
    ::thrd_create(&other, [](void*) { return 0; }, nullptr);
    t.told("detach", HOOKED(thrd_detach)(other));
    const thrd_t me = HOOKED(thrd_current)();
    t.told("itself", ::thrd_equal(me, HOOKED(thrd_current)()));
}

// Where a fiber waits for its mutex a thread does not wait in libc.
TEST(condition, is_left_by_a_waiting_thread_that_is_canceled) {
    struct parts {
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        std::atomic<bool> is_held{false};
        std::atomic<bool> is_left{false};
    } p;
    pthread_t waits;
    ASSERT_EQ(::pthread_create(
                  &waits, nullptr,
                  [](void* of) -> void* {
                      auto& mine = *static_cast<parts*>(of);
                      struct at_end {
                          parts& its;
                          ~at_end() {
                              its.is_left = true;
                              ::pthread_mutex_unlock(&its.m);
                          }
                      } const end{mine};
                      ::pthread_mutex_lock(&mine.m);
                      mine.is_held = true;
                      while (!hook::has_parked(&mine.m)) std::this_thread::yield();
                      for (;;) ::pthread_cond_wait(&mine.c, &mine.m);
                  },
                  &p),
              0);
    while (!p.is_held) std::this_thread::yield();
    run([&] {
        ::pthread_mutex_lock(&p.m);  // it is unlocked for the wait
        EXPECT_FALSE(p.is_left);
        ::pthread_cancel(waits);
        ::usleep(50'000);
        EXPECT_FALSE(p.is_left) << "without the mutex";
        ::pthread_mutex_unlock(&p.m);
    });
    const timespec end = moment_by(CLOCK_REALTIME, 5000);
    void* left = nullptr;
    ASSERT_EQ(::pthread_timedjoin_np(waits, &left, &end), 0);
    EXPECT_EQ(left, PTHREAD_CANCELED);
    EXPECT_EQ(::pthread_mutex_trylock(&p.m), 0);
}

// Fibers of two loops and threads put in and take out.
TEST(condition, loses_no_wake_between_fibers_and_threads) {
    constexpr int each = 300;
    std::mutex lock;
    std::condition_variable room;
    std::condition_variable items;
    std::deque<int> queue;
    std::atomic<long> sum{0};
    const auto put = [&] {
        for (int i = 0; i < each; ++i) {
            std::unique_lock held(lock);
            room.wait(held, [&] { return queue.size() < 3; });
            queue.push_back(1);
            items.notify_one();
        }
    };
    const auto take = [&] {
        for (int i = 0; i < each; ++i) {
            std::unique_lock held(lock);
            while (!items.wait_for(held, std::chrono::seconds(30), [&] { return !queue.empty(); }))
                ADD_FAILURE() << "nothing came";
            sum += queue.front();
            queue.pop_front();
            room.notify_one();
        }
    };
    std::vector<std::thread> threads;
    threads.emplace_back(put);
    threads.emplace_back(take);
    for (int l = 0; l < 2; ++l)
        threads.emplace_back([&] {
            run([&] {
                nursery n;
                for (int i = 0; i < 2; ++i) n.spawn(put), n.spawn(take);
                n.join();
            });
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(sum, 5 * each);
    EXPECT_TRUE(queue.empty());
}

TEST(condition, leaves_its_mutex_to_fibers_while_a_thread_waits) {
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    static bool waits;
    static bool told;
    waits = told = false;
    run([] {
        std::thread thread([] {
            ::pthread_mutex_lock(&m);
            waits = true;
            ::usleep(10'000);  // a fiber comes for the mutex
            while (!told) ::pthread_cond_wait(&c, &m);
            ::pthread_mutex_unlock(&m);
        });
        const auto start = std::chrono::steady_clock::now();
        for (bool seen = false; !seen;) {
            ::pthread_mutex_lock(&m);
            seen = waits;
            ::pthread_mutex_unlock(&m);
            ::usleep(100);
        }
        ::pthread_mutex_lock(&m);
        told = true;
        ::pthread_cond_signal(&c);
        ::pthread_mutex_unlock(&m);
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
        thread.join();
    });
}

// 0, as if for no reason: the program checks its condition.
TEST(condition, wakes_a_stopped_fiber_with_its_mutex_locked) {
    run([] {
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        bool stopped = false;
        fiber f([&] {
            ::pthread_mutex_lock(&m);
            EXPECT_EQ(::pthread_cond_wait(&c, &m), 0);
            stopped = true;
            EXPECT_EQ(::pthread_mutex_trylock(&m), EBUSY);
            ::pthread_mutex_unlock(&m);
        });
        this_fiber::yield();
        f.request_stop();
        f.join();
        EXPECT_TRUE(stopped);
    });
}

TEST(condition, unwinds_a_stopped_fiber_that_keeps_waiting) {
    run([] {
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        int waits = 0;
        fiber f([&] {
            struct unlocks {
                pthread_mutex_t& m;
                ~unlocks() { EXPECT_EQ(::pthread_mutex_unlock(&m), 0); }
            };
            ::pthread_mutex_lock(&m);
            const unlocks at_end{m};
            for (;;) {
                ++waits;
                ::pthread_cond_wait(&c, &m);
            }
        });
        this_fiber::yield();
        f.request_stop();
        f.join();
        EXPECT_GT(waits, 1);
        EXPECT_LE(waits, 1000);
        EXPECT_EQ(::pthread_mutex_trylock(&m), 0);
    });
}

// The mutex is its own again while it unwinds.
TEST(condition, relocks_its_mutex_for_a_killed_fiber) {
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    static bool was_own;
    was_own = false;
    {
        loop l;
        flow* waiting = nullptr;
        fiber f(
            [&] {
                struct unlocks {
                    ~unlocks() {
                        was_own = ::pthread_mutex_trylock(&m) == EBUSY;
                        EXPECT_EQ(::pthread_mutex_unlock(&m), 0);
                    }
                };
                waiting = current_flow();
                ::pthread_mutex_lock(&m);
                const unlocks at_end;
                for (;;) ::pthread_cond_wait(&c, &m);
            },
            {.on = l});
        static_cast<void>(l.run_once(steady_now()));
        EXPECT_EQ(::pthread_mutex_trylock(&m), 0);
        ::pthread_mutex_unlock(&m);
        {
            const detail::restore_on_exit put_back;
            detail::this_thread_runs() = {nullptr, &l};
            waiting->kind->end(*waiting);
        }
        f.detach();
    }
    EXPECT_TRUE(was_own);
    EXPECT_EQ(::pthread_mutex_trylock(&m), 0);
    ::pthread_mutex_unlock(&m);
}

}  // namespace
