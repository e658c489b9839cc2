#include "weft/hook/detail/libc_mutex.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "test/hook/suite.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/virtual_loop.hpp"

extern "C" int lock_in_library(pthread_mutex_t*);
extern "C" int unlock_in_library(pthread_mutex_t*);

namespace {

using namespace weft;
using weft::testing::moment_by;

// A mutex of every kind that libc makes here.
struct kind {
    const char* name;
    int type = PTHREAD_MUTEX_NORMAL;
    int protocol = PTHREAD_PRIO_NONE;
    int robust = PTHREAD_MUTEX_STALLED;
    int shared = PTHREAD_PROCESS_PRIVATE;
};
const kind kinds[] = {
    {"normal"},
    {"recursive", PTHREAD_MUTEX_RECURSIVE},
    {"errorcheck", PTHREAD_MUTEX_ERRORCHECK},
    {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP},
    {"inherit", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT},
    {"inherit recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT},
    {"inherit errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT},
    {"robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST},
    {"robust recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST},
    {"robust errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST},
    {"robust adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST},
    {"robust inherit", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ROBUST},
    {"robust inherit recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT,
     PTHREAD_MUTEX_ROBUST},
    {"shared", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED,
     PTHREAD_PROCESS_SHARED},
    {"shared adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED,
     PTHREAD_PROCESS_SHARED},
    {"shared errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED,
     PTHREAD_PROCESS_SHARED},
    {"shared recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED,
     PTHREAD_PROCESS_SHARED},
};

struct mutex_of {
    pthread_mutex_t m;
    explicit mutex_of(const kind& k) {
        pthread_mutexattr_t a;
        ::pthread_mutexattr_init(&a);
        EXPECT_EQ(::pthread_mutexattr_settype(&a, k.type), 0);
        EXPECT_EQ(::pthread_mutexattr_setprotocol(&a, k.protocol), 0);
        EXPECT_EQ(::pthread_mutexattr_setrobust(&a, k.robust), 0);
        EXPECT_EQ(::pthread_mutexattr_setpshared(&a, k.shared), 0);
        EXPECT_EQ(::pthread_mutex_init(&m, &a), 0);
        ::pthread_mutexattr_destroy(&a);
    }
    mutex_of(const mutex_of&) = delete;
    ~mutex_of() { EXPECT_EQ(::pthread_mutex_destroy(&m), 0); }
};

TEST(libc_mutex, of_every_kind_admits_one_fiber_at_a_time) {
    for (const kind& k : kinds) {
        mutex_of m(k);
        int inside = 0;
        int most = 0;
        run([&] {
            nursery n;
            for (int i = 0; i < 4; ++i)
                n.spawn([&] {
                    for (int round = 0; round < 3; ++round) {
                        EXPECT_EQ(::pthread_mutex_lock(&m.m), 0) << k.name;
                        most = std::max(most, ++inside);
                        ::usleep(300);
                        --inside;
                        EXPECT_EQ(::pthread_mutex_unlock(&m.m), 0) << k.name;
                    }
                });
            n.join();
        });
        EXPECT_EQ(most, 1) << k.name;
    }
}

// The results that a thread, or a fiber, gets for a mutex that it owns, and for one that another
// owns.
std::string said_of(const kind& k, bool in_fibers) {
    mutex_of m(k);
    std::string text;
    const bool comes_again =
        k.type == PTHREAD_MUTEX_RECURSIVE || k.type == PTHREAD_MUTEX_ERRORCHECK;
    const bool asks = comes_again || k.robust == PTHREAD_MUTEX_ROBUST;
    const auto told = [&](const char* what, int r) {
        text.append(what).append(" ").append(r == 0 ? "0" : ::strerrorname_np(r)).append("; ");
    };
    const auto beside = [&](auto f) {
        if (in_fibers)
            fiber(f).join();
        else
            std::thread(f).join();
    };
    const auto body = [&] {
        told("unlock of none", asks ? ::pthread_mutex_unlock(&m.m) : 0);
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        const timespec past = {0, 0};
        told("wait with none", asks ? ::pthread_cond_timedwait(&c, &m.m, &past) : 0);
        told("lock", ::pthread_mutex_lock(&m.m));
        told("try", ::pthread_mutex_trylock(&m.m));
        timespec soon = moment_by(CLOCK_MONOTONIC, 2);
        if (k.protocol == PTHREAD_PRIO_NONE)
            told("in time", ::pthread_mutex_clocklock(&m.m, CLOCK_MONOTONIC, &soon));
        if (comes_again) told("again", ::pthread_mutex_lock(&m.m));
        if (comes_again && k.protocol == PTHREAD_PRIO_NONE) {
            soon.tv_nsec = -1;
            told("in no time", ::pthread_mutex_timedlock(&m.m, &soon));
        }
        beside([&] {
            told("another tries", ::pthread_mutex_trylock(&m.m));
            timespec late = moment_by(CLOCK_REALTIME, 2);
            told("and waits", ::pthread_mutex_timedlock(&m.m, &late));
            late.tv_nsec = 1'000'000'000;
            told("for no time", ::pthread_mutex_timedlock(&m.m, &late));
            if (k.protocol == PTHREAD_PRIO_NONE)
                told("by no clock", ::pthread_mutex_clocklock(&m.m, 99, &late));
            if (asks) told("and unlocks", ::pthread_mutex_unlock(&m.m));
        });
        if (k.robust == PTHREAD_MUTEX_STALLED) told("destroy", ::pthread_mutex_destroy(&m.m));
        int unlocks = 0;
        int r;
        do {
            r = ::pthread_mutex_unlock(&m.m);
            ++unlocks;
        } while (r == 0 && asks);
        told("last unlock", r);
        text.append(std::to_string(unlocks));
    };
    if (in_fibers)
        run(body);
    else
        std::thread(body).join();
    return text;
}

TEST(libc_mutex, of_every_kind_returns_the_same_to_fibers_and_threads) {
    if (WEFT_TSAN) GTEST_SKIP() << "ThreadSanitizer reports what is refused";
    for (const kind& k : kinds) EXPECT_EQ(said_of(k, true), said_of(k, false)) << k.name;
}

// Fibers of two threads, and plain threads.
TEST(libc_mutex, of_every_kind_excludes_fibers_and_threads_alike) {
    constexpr int rounds = 300;
    for (const kind& k : kinds) {
        mutex_of m(k);
        long count = 0;
        const auto add = [&] {
            for (int i = 0; i < rounds; ++i) {
                EXPECT_EQ(::pthread_mutex_lock(&m.m), 0);
                const long before = count;
                if (i % 50 == 0) ::usleep(50);
                count = before + 1;
                EXPECT_EQ(::pthread_mutex_unlock(&m.m), 0);
            }
        };
        std::vector<std::thread> threads;
        for (int i = 0; i < 2; ++i) threads.emplace_back(add);
        for (int i = 0; i < 2; ++i)
            threads.emplace_back([&] {
                run([&] {
                    nursery n;
                    for (int j = 0; j < 3; ++j) n.spawn(add);
                    n.join();
                });
            });
        for (auto& t : threads) t.join();
        EXPECT_EQ(count, 8 * rounds) << k.name;
    }
}

TEST(libc_mutex, of_robust_kind_is_acquired_from_a_dead_thread) {
    mutex_of m({"robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST});
    std::thread([&] { EXPECT_EQ(::pthread_mutex_lock(&m.m), 0); }).join();
    run([&] {
        EXPECT_EQ(::pthread_mutex_lock(&m.m), EOWNERDEAD);
        EXPECT_EQ(::pthread_mutex_consistent(&m.m), 0);
        EXPECT_EQ(::pthread_mutex_unlock(&m.m), 0);
    });
}

// It comes back, again and again, in the turn in which it has unlocked.
TEST(libc_mutex, is_granted_to_a_fiber_that_lost_the_race_once) {
    run([] {
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        bool had = false;
        int turns = 0;
        ::pthread_mutex_lock(&m);
        fiber waits([&] {
            ::pthread_mutex_lock(&m);
            had = true;
            ::pthread_mutex_unlock(&m);
        });
        while (!had && turns < 100) {
            ++turns;
            this_fiber::yield();
            ::pthread_mutex_unlock(&m);
            ::pthread_mutex_lock(&m);
        }
        ::pthread_mutex_unlock(&m);
        waits.join();
        EXPECT_LE(turns, 4);
    });
}

// What a fiber holds, a thread waits for in libc.
TEST(libc_mutex, owned_by_a_fiber_blocks_threads) {
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    std::thread waits;
    std::atomic<bool> locked{false};
    run([&] {
        ::pthread_mutex_lock(&m);
        waits = std::thread([&] {
            ::pthread_mutex_lock(&m);
            locked = true;
            ::pthread_mutex_unlock(&m);
        });
        ::usleep(20'000);
        EXPECT_FALSE(locked);
        ::pthread_mutex_unlock(&m);
    });
    waits.join();
    EXPECT_TRUE(locked);
}

// Its destructors unlock it, and cannot wait.
TEST(libc_mutex, is_unlocked_by_the_destructors_of_a_killed_fiber) {
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    {
        loop l;
        fiber f(
            [] {
                struct unlocks {
                    ~unlocks() { ::pthread_mutex_unlock(&m); }
                };
                ::pthread_mutex_lock(&m);
                const unlocks at_end;
                for (;;) ::usleep(1'000'000);
            },
            {.on = l});
        static_cast<void>(l.run_once(steady_now()));
        f.detach();
    }
    EXPECT_EQ(::pthread_mutex_trylock(&m), 0);
    ::pthread_mutex_unlock(&m);
}

// It cannot be left there: libc declares that nothing is thrown, and there is something to destroy.
TEST(libc_mutex, unlocked_by_a_thread_is_acquired_before_the_loop_ends) {
    static std::mutex m;
    static std::shared_mutex shared;
    std::atomic<bool> held{false};
    bool unlocked = false;
    struct tells {
        bool& it;
        ~tells() { it = true; }
    };
    std::thread owner([&] {
        const std::lock_guard both(m);
        const std::lock_guard of_both(shared);
        held = true;
        ::usleep(50'000);
    });
    while (!held) std::this_thread::yield();
    {
        loop l;
        fiber f(
            [&] {
                const tells at_end{unlocked};
                const std::lock_guard mine(m);
            },
            {.on = l});
        fiber g([] { const std::shared_lock mine(shared); }, {.on = l});
        static_cast<void>(l.run_once(steady_now()));
        f.detach();
        g.detach();
    }
    EXPECT_TRUE(unlocked);
    owner.join();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
    EXPECT_TRUE(shared.try_lock());
    shared.unlock();
}

TEST(libc_mutex, stays_owned_by_the_fiber_in_a_forked_child) {
    mutex_of m({"errorcheck", PTHREAD_MUTEX_ERRORCHECK});
    run([&] {
        ::pthread_mutex_lock(&m.m);
        const ::pid_t child = ::fork();
        if (child == 0)
            ::_exit(::pthread_mutex_lock(&m.m) == EDEADLK && ::pthread_mutex_unlock(&m.m) == 0 &&
                            ::pthread_mutex_lock(&m.m) == 0
                        ? 0
                        : 1);
        int status = -1;
        ::waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        ::pthread_mutex_unlock(&m.m);
    });
}

// Another thread is in the midst of such a call when the child is made.
TEST(libc_mutex, of_robust_kind_works_in_a_child_forked_amid_locking) {
    const kind robust = {"robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST};
    std::atomic<bool> ended{false};
    std::thread busy([&] {
        run([&] {
            mutex_of theirs(robust);
            while (!ended) {
                ::pthread_mutex_lock(&theirs.m);
                ::pthread_mutex_unlock(&theirs.m);
            }
        });
    });
    run([&] {
        mutex_of own(robust);
        EXPECT_TRUE(weft::testing::each_child_says([&] {
            ::pthread_mutex_lock(&own.m);
            return ::pthread_mutex_unlock(&own.m) == 0;
        }));
    });
    ended = true;
    busy.join();
}

// The thread would wait for itself.
TEST(libc_mutex, owned_by_a_thread_stores_the_thread_id) {
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    const auto is_named = [] {
        ::pthread_mutex_lock(&m);
        const bool is_right = m.__data.__owner == ::gettid() && m.__data.__nusers == 1;
        ::pthread_mutex_unlock(&m);
        return is_right && m.__data.__owner == 0 && m.__data.__nusers == 0;
    };
    EXPECT_TRUE(is_named());
    std::thread([&] { EXPECT_TRUE(is_named()); }).join();
    const ::pid_t child = ::fork();
    if (child == 0) ::_exit(is_named() ? 0 : 1);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(::pthread_mutex_destroy(&m), 0);
}

TEST(libc_mutex, suspends_the_fiber_and_not_its_thread) {
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
}

TEST(libc_mutex, timed_lock_waits_until_its_deadline) {
    run([] {
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        ASSERT_EQ(::pthread_mutex_lock(&m), 0);
        fiber([] {
            // Twice, because the clock's next second may start in between.
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
}

TEST(libc_mutex, timed_lock_accepts_extreme_deadlines) {
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
}

// A clock that jumps when no flow is ready would stand still.
TEST(libc_mutex, lock_wait_lets_virtual_time_pass) {
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    weft::testing::virtual_loop l(1);
    fiber owner(
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
}

// What another thread holds is waited for by the fiber.
TEST(libc_mutex, contended_in_a_library_lets_other_fibers_run) {
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<int> state{0};  // 1: it is held; 2: it may be released
    std::thread owner([&] {
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
    owner.join();
}

// It cannot be refused, so it waits on.
TEST(libc_mutex, lock_is_not_ended_by_a_stop) {
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
}

}  // namespace
