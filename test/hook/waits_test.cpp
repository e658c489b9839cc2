// Semaphores, read-write locks, barriers and the ends of threads: fibers of one thread, and threads
// beside them.

#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/hook/detail/parking_lot.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/wait/stopped.hpp"

namespace {

using namespace weft;
using std::chrono::milliseconds;
using weft::testing::counted_end;
using weft::testing::moment_by;

constexpr timespec no_time{1, 1'000'000'000};

struct semaphore {
    sem_t it;
    explicit semaphore(unsigned value, int shared = 0) { ::sem_init(&it, shared, value); }
    semaphore(const semaphore&) = delete;
    ~semaphore() { ::sem_destroy(&it); }
};
struct rwlock {
    pthread_rwlock_t it = PTHREAD_RWLOCK_INITIALIZER;
};

POSIX_CASE(a_semaphore_is_waited_for) {
    for (const int shared : {0, 1}) {
        semaphore s(1, shared);
        t.told("wait", HOOKED(sem_wait)(&s.it));
        t.told("try", HOOKED(sem_trywait)(&s.it));
        timespec at = moment_by(CLOCK_REALTIME);
        t.told("until", HOOKED(sem_timedwait)(&s.it, &at));
        at = moment_by(CLOCK_MONOTONIC);
        t.told("by a clock", HOOKED(sem_clockwait)(&s.it, CLOCK_MONOTONIC, &at));
        t.told("by no clock", HOOKED(sem_clockwait)(&s.it, 99, &at));
        t.told("no time", HOOKED(sem_timedwait)(&s.it, &no_time));
        t.beside([&] {
            HOOKED(usleep)(3000);
            for (int i = 0; i < 2; ++i) HOOKED(sem_post)(&s.it);
        });
        t.told("posted", HOOKED(sem_wait)(&s.it));
        t.told("again", HOOKED(sem_wait)(&s.it));
        int value = -1;
        ::sem_getvalue(&s.it, &value);
        t.told("left", value);
        t.join();
    }
}

POSIX_CASE(a_read_write_lock_is_waited_for) {
    rwlock l;
    t.told("read", HOOKED(pthread_rwlock_rdlock)(&l.it));
    t.told("read again", HOOKED(pthread_rwlock_tryrdlock)(&l.it));
    t.told("write", HOOKED(pthread_rwlock_trywrlock)(&l.it));
    timespec at = moment_by(CLOCK_REALTIME);
    t.told("write until", HOOKED(pthread_rwlock_timedwrlock)(&l.it, &at));
    t.told("write in no time", HOOKED(pthread_rwlock_timedwrlock)(&l.it, &no_time));
    at = moment_by(CLOCK_MONOTONIC);
    t.told("write by a clock", HOOKED(pthread_rwlock_clockwrlock)(&l.it, CLOCK_MONOTONIC, &at));
    HOOKED(pthread_rwlock_unlock)(&l.it);
    HOOKED(pthread_rwlock_unlock)(&l.it);
    t.told("write", HOOKED(pthread_rwlock_wrlock)(&l.it));
    t.told("write again", HOOKED(pthread_rwlock_wrlock)(&l.it));
    t.told("read", HOOKED(pthread_rwlock_rdlock)(&l.it));
    t.told("read until", HOOKED(pthread_rwlock_timedrdlock)(&l.it, &at));
    t.told("by a clock", HOOKED(pthread_rwlock_clockrdlock)(&l.it, CLOCK_MONOTONIC, &at));
    t.beside([&] {
        timespec then = moment_by(CLOCK_MONOTONIC);
        t.told("another reads", HOOKED(pthread_rwlock_clockrdlock)(&l.it, CLOCK_MONOTONIC, &then));
    });
    t.join();
    for (int i = 0; i < 3; ++i)
        t.beside([&] {
            HOOKED(pthread_rwlock_rdlock)(&l.it);
            HOOKED(pthread_rwlock_unlock)(&l.it);
        });
    HOOKED(usleep)(5000);
    t.told("unlock", HOOKED(pthread_rwlock_unlock)(&l.it));
    t.join();
    t.told("free", HOOKED(pthread_rwlock_trywrlock)(&l.it));
    t.told("unlock", HOOKED(pthread_rwlock_unlock)(&l.it));
}

// Waits until that holds; returns whether it does.
template <class F>
bool comes_true(F f) {
    for (int i = 0; i < 1000 && !f(); ++i) HOOKED(usleep)(1000);
    return f();
}

POSIX_CASE(a_reader_comes_in_beside_others_whichever_writers_wait) {
    rwlock l;
    std::atomic<bool> has_come{false};
    std::atomic<bool> may_go{false};
    std::atomic<bool> has_written{false};
    HOOKED(pthread_rwlock_wrlock)(&l.it);
    t.beside([&] {
        HOOKED(pthread_rwlock_wrlock)(&l.it);
        has_written = true;
        HOOKED(pthread_rwlock_unlock)(&l.it);
    });
    HOOKED(usleep)(30'000);
    t.beside([&] {
        HOOKED(pthread_rwlock_rdlock)(&l.it);
        has_come = true;
        comes_true([&] { return may_go.load(); });
        HOOKED(pthread_rwlock_unlock)(&l.it);
    });
    HOOKED(usleep)(30'000);
    HOOKED(pthread_rwlock_unlock)(&l.it);
    t.told("read", HOOKED(pthread_rwlock_rdlock)(&l.it));
    t.told("the other reads as well", comes_true([&] { return has_come.load(); }));
    t.told("written", has_written);
    may_go = true;
    HOOKED(pthread_rwlock_unlock)(&l.it);
    t.join();
    t.told("written", has_written);
}

POSIX_CASE(a_reader_waits_for_writers_that_go_first) {
    rwlock l{PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};
    std::string order;
    HOOKED(pthread_rwlock_rdlock)(&l.it);
    t.beside([&] {
        HOOKED(pthread_rwlock_wrlock)(&l.it);
        order += 'w';
        HOOKED(pthread_rwlock_unlock)(&l.it);
    });
    t.told("it is in the way", comes_true([&] {
               if (HOOKED(pthread_rwlock_tryrdlock)(&l.it) != 0) return true;
               HOOKED(pthread_rwlock_unlock)(&l.it);
               return false;
           }));
    std::atomic<bool> comes{false};
    t.beside([&] {
        t.told("try", HOOKED(pthread_rwlock_tryrdlock)(&l.it));
        comes = true;
        t.told("read", HOOKED(pthread_rwlock_rdlock)(&l.it));
        order += 'r';
        HOOKED(pthread_rwlock_unlock)(&l.it);
    });
    comes_true([&] { return comes.load(); });
    HOOKED(usleep)(2000);
    HOOKED(pthread_rwlock_unlock)(&l.it);
    t.join();
    t.said("order", order);
}

POSIX_CASE(a_barrier_lets_all_go_and_tells_one) {
    pthread_barrier_t b;
    ::pthread_barrier_init(&b, nullptr, 3);
    std::atomic<int> told{0};
    for (int round = 0; round < 40; ++round) {
        for (int i = 0; i < 2; ++i)
            t.beside([&] {
                if (HOOKED(pthread_barrier_wait)(&b) == PTHREAD_BARRIER_SERIAL_THREAD) ++told;
            });
        if (HOOKED(pthread_barrier_wait)(&b) == PTHREAD_BARRIER_SERIAL_THREAD) ++told;
        t.join();
    }
    t.told("one a round", told);
    t.told("destroy", ::pthread_barrier_destroy(&b));
}

// The compiler has declarations of its own of these, so that their names alone name several.
int guard_acquire(hook::init_guard& g) {
    weft::testing::call_is_made(hook::call::__cxa_guard_acquire);
    return __cxxabiv1::__cxa_guard_acquire(&g);
}
void guard_release(hook::init_guard& g) {
    weft::testing::call_is_made(hook::call::__cxa_guard_release);
    __cxxabiv1::__cxa_guard_release(&g);
}
void guard_abort(hook::init_guard& g) {
    weft::testing::call_is_made(hook::call::__cxa_guard_abort);
    __cxxabiv1::__cxa_guard_abort(&g);
}

POSIX_CASE(a_static_is_initialised_by_one_after_another) {
    hook::init_guard g{};
    t.told("first", guard_acquire(g));
    t.beside([&] {
        t.told("second", guard_acquire(g));
        guard_release(g);
    });
    HOOKED(usleep)(5000);
    guard_abort(g);
    t.join();
    t.told("third", guard_acquire(g));
}

void* after_a_while(void* left) {
    ::usleep(3000);
    return left;
}

POSIX_CASE(a_thread_is_joined) {
    pthread_t thread;
    char value = 0;
    void* left = nullptr;
    ::pthread_create(&thread, nullptr, after_a_while, &value);
    t.told("join", HOOKED(pthread_join)(thread, &left));
    t.told("its value", left == &value);
    ::pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
            ::usleep(500'000);
            return nullptr;
        },
        nullptr);
    timespec at = moment_by(CLOCK_REALTIME, 1);
    t.told("too soon", HOOKED(pthread_timedjoin_np)(thread, &left, &at));
    const int no_time_said = HOOKED(pthread_timedjoin_np)(thread, &left, &no_time);
    t.told("no time", no_time_said);
    if (no_time_said != 0) t.told("at last", HOOKED(pthread_join)(thread, &left));
    ::pthread_create(&thread, nullptr, after_a_while, &value);
    at = moment_by(CLOCK_MONOTONIC, 2000);
    t.told("by a clock", HOOKED(pthread_clockjoin_np)(thread, &left, CLOCK_MONOTONIC, &at));
    t.told("itself", HOOKED(pthread_join)(::pthread_self(), &left));
    // A thread of pthreads, which is the same in libc: ThreadSanitizer does not track C's threads.
    thrd_t other;
    int result = 0;
    ::pthread_create(
        &other, nullptr,
        [](void*) -> void* {
            ::usleep(1000);
            return reinterpret_cast<void*>(7);
        },
        nullptr);
    t.told("of C", HOOKED(thrd_join)(other, &result));
    t.told("its result", result);
}

POSIX_CASE(the_end_of_a_thread_is_that_of_its_function) {
    std::atomic<int> steps{0};
    t.beside([&] {
        const counted_end at_end{steps};
        HOOKED(usleep)(1000);
        HOOKED(pthread_exit)(nullptr);
    });
    t.join();
    t.told("unwound", steps);
}

class pthread_waits : public weft::testing::on_each_driver {};

TEST_P(pthread_waits, for_a_semaphore_work_between_fibers_and_threads) {
    run([&] {
        semaphore there(0);
        semaphore here(0);
        std::thread peer([&] {
            for (int i = 0; i < 200; ++i) ::sem_wait(&there.it), ::sem_post(&here.it);
        });
        for (int i = 0; i < 200; ++i) {
            ::sem_post(&there.it);
            ASSERT_EQ(::sem_wait(&here.it), 0);
        }
        peer.join();
    });
}

sem_t* rung_by_handler;

TEST_P(pthread_waits, for_a_semaphore_are_ended_by_signal_handlers) {
    semaphore s(0);
    rung_by_handler = &s.it;
    ::signal(SIGUSR2, [](int) { ::sem_post(rung_by_handler); });
    run([&] {
        int taken = 0;
        fiber f([&] {
            for (; taken < 100; ++taken) ASSERT_EQ(::sem_wait(&s.it), 0);
        });
        for (int i = 0; i < 100; ++i) ::raise(SIGUSR2), this_fiber::yield();
        f.join();
        EXPECT_EQ(taken, 100);
    });
    ::signal(SIGUSR2, SIG_DFL);
}

TEST_P(pthread_waits, for_a_semaphore_are_ended_by_a_stop) {
    run([&] {
        semaphore s(0);
        int why = 0;
        fiber f([&] { why = ::sem_wait(&s.it) == 0 ? 0 : errno; });
        this_fiber::yield();
        f.request_stop();
        f.join();
        EXPECT_EQ(why, ECANCELED);
        ::sem_post(&s.it);
        EXPECT_EQ(::sem_trywait(&s.it), 0);
    });
}

TEST_P(pthread_waits, for_a_write_lock_work_in_fibers_and_threads) {
    run([&] {
        std::shared_mutex m;
        int value = 0;
        const auto work = [&] {
            for (int i = 0; i < 100; ++i) {
                m.lock();
                const int seen = value;
                ::usleep(10);
                value = seen + 1;
                m.unlock();
                m.lock_shared();
                m.unlock_shared();
            }
        };
        std::thread beside(work);
        fiber one(work);
        fiber two(work);
        one.join();
        two.join();
        beside.join();
        EXPECT_EQ(value, 300);
    });
}

// Fibers only: libc loses a wake where a thread stops waiting to write and writers go first.
TEST_P(pthread_waits, to_read_resume_when_a_preferred_writer_gives_up) {
    run([&] {
        rwlock l{PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};
        ASSERT_EQ(::pthread_rwlock_rdlock(&l.it), 0);
        fiber writes([&] {
            const timespec end = moment_by(CLOCK_REALTIME, 100);
            EXPECT_EQ(::pthread_rwlock_timedwrlock(&l.it, &end), ETIMEDOUT);
        });
        this_fiber::yield();
        EXPECT_EQ(::pthread_rwlock_tryrdlock(&l.it), EBUSY);
        const timespec soon = moment_by(CLOCK_REALTIME, 3);
        EXPECT_EQ(::pthread_rwlock_timedrdlock(&l.it, &soon), ETIMEDOUT);
        EXPECT_EQ(::pthread_rwlock_rdlock(&l.it), 0);
        writes.join();
        EXPECT_EQ(::pthread_rwlock_unlock(&l.it), 0);
        EXPECT_EQ(::pthread_rwlock_unlock(&l.it), 0);
    });
}

// Threads beside the fibers wait for one that is shared between processes.
TEST_P(pthread_waits, for_a_barrier_work_for_many_fibers) {
    constexpr unsigned count = 80;
    pthread_barrierattr_t a;
    ::pthread_barrierattr_init(&a);
    ::pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_barrier_t b;
    ASSERT_EQ(::pthread_barrier_init(&b, &a, count), 0);
    ::pthread_barrierattr_destroy(&a);
    run([&] {
        unsigned last = 0;
        unsigned met = 0;
        nursery n;
        for (unsigned i = 0; i < count; ++i)
            n.spawn([&] {
                if (::pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD) ++last;
                ++met;
            });
        n.join();
        EXPECT_EQ(last, 1u);
        EXPECT_EQ(met, count);
    });
    EXPECT_EQ(::pthread_barrier_destroy(&b), 0);
}

TEST_P(pthread_waits, for_a_thread_let_other_fibers_run) {
    run([&] {
        std::atomic<bool> may_end{false};
        std::thread t([&] {
            while (!may_end) std::this_thread::yield();
        });
        fiber f([&] { may_end = true; });
        t.join();
        auto result = std::async(std::launch::async, [] { return 5; });
        EXPECT_EQ(result.get(), 5);
        f.join();
    });
}

// Neither the fiber nor its thread polls meanwhile.
TEST_P(pthread_waits, for_a_thread_sleep_without_polling) {
    run([&] {
        const auto slept = [] {
            rusage all{};
            ::getrusage(RUSAGE_THREAD, &all);
            return all.ru_nvcsw;
        };
        std::thread t([] { std::this_thread::sleep_for(milliseconds(200)); });
        const long before = slept();
        t.join();
        EXPECT_LT(slept() - before, 40);
    });
}

TEST_P(pthread_waits, for_many_threads_each_end_with_their_thread) {
    constexpr unsigned count = 80;
    run([&] {
        sem_t may_end;
        ::sem_init(&may_end, 0, 0);
        std::vector<std::thread> all;
        for (unsigned i = 0; i < count; ++i)
            all.emplace_back([&] {
                while (::sem_wait(&may_end) != 0) continue;
            });
        unsigned joined = 0;
        nursery n;
        for (std::thread& t : all)
            n.spawn([&] {
                t.join();
                ++joined;
            });
        ::usleep(5000);
        EXPECT_EQ(joined, 0u);
        for (unsigned i = 0; i < count; ++i) ::sem_post(&may_end);
        n.join();
        EXPECT_EQ(joined, count);
        ::sem_destroy(&may_end);
    });
}

TEST_P(pthread_waits, for_a_thread_can_be_repeated_after_a_killed_one) {
    std::atomic<bool> may_end{false};
    pthread_t thread;
    ASSERT_EQ(::pthread_create(
                  &thread, nullptr,
                  [](void* flag) -> void* {
                      while (!*static_cast<std::atomic<bool>*>(flag)) ::usleep(1000);
                      return flag;
                  },
                  &may_end),
              0);
    {
        weft::loop ends;
        fiber killed([&] { ::pthread_join(thread, nullptr); }, {.on = ends});
        const time_point until = after(steady_now(), milliseconds(20));
        while (steady_now() < until) static_cast<void>(ends.run_once(until));
        killed.detach();
    }
    run([&] {
        for (int i = 0; i < 3; ++i) {
            const timespec soon = moment_by(CLOCK_REALTIME, 3);
            EXPECT_EQ(::pthread_timedjoin_np(thread, nullptr, &soon), ETIMEDOUT);
        }
        fiber f([&] {
            ::usleep(3000);
            may_end = true;
        });
        void* left = nullptr;
        EXPECT_EQ(::pthread_join(thread, &left), 0);
        EXPECT_EQ(left, &may_end);
        f.join();
    });
}

// The destructor that joins cannot be left: the loop that ends waits for it.
TEST(pthread_waits_of_a_loop_that_ends, for_a_thread_are_completed) {
    std::atomic<bool> has_ended{false};
    {
        loop l;
        fiber f(
            [&] {
                const std::jthread t([&](const std::stop_token& asked) {
                    while (!asked.stop_requested()) ::usleep(1000);
                    ::usleep(50'000);
                    has_ended = true;
                });
                for (;;) this_fiber::sleep_for(std::chrono::hours(1));
            },
            {.on = l});
        static_cast<void>(l.run_once(steady_now()));
        f.detach();
    }
    EXPECT_TRUE(has_ended);
}

TEST_P(pthread_waits, to_join_end_when_the_fiber_calls_pthread_exit) {
    run([&] {
        bool unwound = false;
        struct told {
            bool& it;
            ~told() { it = true; }
        };
        fiber f([&] {
            const told at_end{unwound};
            ::pthread_exit(nullptr);
        });
        EXPECT_TRUE(f.join().is_stopped());
        EXPECT_TRUE(unwound);
    });
}

TEST_P(pthread_waits, for_a_static_suspend_each_concurrent_caller) {
    run([&] {
        static std::atomic<int> entered{0};
        entered = 0;
        const auto waits_inside = [] {
            struct slow {
                slow() {
                    ++entered;
                    ::usleep(2000);
                }
            };
            static const slow once;
            static_cast<void>(once);
        };
        fiber one(waits_inside);
        fiber two(waits_inside);
        std::thread three(waits_inside);
        one.join();
        two.join();
        three.join();
        EXPECT_LE(entered, 1);
    });
}

// Woken, and stopped before its turn.
TEST_P(pthread_waits, lose_no_unit_of_a_semaphore_to_a_stop) {
    run([&] {
        semaphore s(0);
        int had = 0;
        const auto take = [&] { had += ::sem_wait(&s.it) == 0 ? 1 : 0; };
        fiber first(take);
        fiber second(take);
        while (hook::may_have_parked(&s.it) == false) this_fiber::yield();
        this_fiber::yield();
        ::sem_post(&s.it);
        // Nothing else has a turn here.
        const time_point end = after(steady_now(), milliseconds(20));
        while (steady_now() < end) std::this_thread::yield();
        first.request_stop();
        for (int i = 0; i < 500 && had == 0; ++i) ::usleep(1000);
        EXPECT_EQ(had, 1) << "by either";
        int left = 0;
        ::sem_getvalue(&s.it, &left);
        EXPECT_EQ(left, 0);
        ::sem_post(&s.it);
        ::sem_post(&s.it);
        first.join();
        second.join();
    });
}

// It is read by the main thread all the time.
TEST_P(pthread_waits, of_preferred_writers_end_first) {
    rwlock l{PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};
    std::string order;
    run([&] {
        ::pthread_rwlock_wrlock(&l.it);
        fiber reader([&] {
            ::pthread_rwlock_rdlock(&l.it);
            order += 'r';
            ::pthread_rwlock_unlock(&l.it);
        });
        this_fiber::yield();
        fiber writer([&] {
            ::pthread_rwlock_wrlock(&l.it);
            order += 'w';
            ::pthread_rwlock_unlock(&l.it);
        });
        this_fiber::yield();
        ::pthread_rwlock_unlock(&l.it);
        reader.join();
        writer.join();
    });
    EXPECT_EQ(order, "wr");
}

TEST_P(pthread_waits, of_readers_resume_when_a_writing_thread_gives_up) {
    pthread_rwlockattr_t a;
    ::pthread_rwlockattr_init(&a);
    ::pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_t l;
    ::pthread_rwlock_init(&l, &a);
    ::pthread_rwlockattr_destroy(&a);
    ASSERT_EQ(::pthread_rwlock_rdlock(&l), 0);
    std::thread writes([&] {
        const timespec end = moment_by(CLOCK_REALTIME, 100);
        EXPECT_EQ(::pthread_rwlock_timedwrlock(&l, &end), ETIMEDOUT);
    });
    run([&] {
        // It is in the way as soon as it waits.
        while (::pthread_rwlock_tryrdlock(&l) == 0) {
            ::pthread_rwlock_unlock(&l);
            ::usleep(1000);
        }
        bool has_read = false;
        fiber reads([&] {
            EXPECT_EQ(::pthread_rwlock_rdlock(&l), 0);
            has_read = true;
            ::pthread_rwlock_unlock(&l);
        });
        for (int i = 0; i < 1000 && !has_read; ++i) ::usleep(1000);
        EXPECT_TRUE(has_read);
        EXPECT_EQ(::pthread_rwlock_unlock(&l), 0);
        reads.join();
    });
    writes.join();
    EXPECT_EQ(::pthread_rwlock_destroy(&l), 0);
}

INSTANTIATE_ON_DRIVERS(pthread_waits);

// As a process does after its main thread. What that would have returned there is none of.
TEST(pthread_exit_of_a_first_fiber, ends_run_when_the_other_fibers_are_done) {
    bool other_has_ended = false;
    bool was_unwound = false;
    EXPECT_THROW(run([&] {
                     struct tells {
                         bool& it;
                         ~tells() { it = true; }
                     } const at_end{was_unwound};
                     fiber([&] {
                         ::usleep(50'000);
                         EXPECT_TRUE(was_unwound);
                         other_has_ended = true;
                     }).detach();
                     ::pthread_exit(nullptr);
                     return 0;
                 }),
                 stopped);
    EXPECT_TRUE(other_has_ended);
}

int recursive_static(int depth);
int (*volatile recursive_again)(int) = recursive_static;
int recursive_static(int depth) {
    static const int value = depth > 0 ? recursive_again(depth - 1) + 1 : 7;
    return value;
}

TEST(static_that_needs_itself_deathtest, aborts_in_a_fiber_and_on_a_thread) {
    // Other tests may have left threads behind, and with those no sanitizer lets a child start one.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    constexpr const char* why = "the initialiser of a static needs the static itself";
    // A wait for itself is ended by the alarm, without that line.
    EXPECT_DEATH(
        {
            ::alarm(10);
            run([] { fiber([] { recursive_static(1); }).join(); });
        },
        why);
    EXPECT_DEATH(
        {
            ::alarm(10);
            std::thread([] { recursive_static(1); }).join();
        },
        why);
}

TEST(pthread_waits_of_a_pool, resume_on_any_thread) {
    pool two(2);
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    semaphore units(2);
    pthread_barrier_t meeting;
    ::pthread_barrier_init(&meeting, nullptr, 4);
    int value = 0;
    {
        std::vector<fiber> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back(
                [&] {
                    for (int k = 0; k < 50; ++k) {
                        ::sem_wait(&units.it);
                        ::pthread_rwlock_wrlock(&l);
                        ++value;
                        ::usleep(1);
                        ::pthread_rwlock_unlock(&l);
                        ::sem_post(&units.it);
                        ::pthread_barrier_wait(&meeting);
                    }
                },
                fiber_options{.on = two, .migratable = true});
        for (fiber& f : all) f.join();
    }
    ::pthread_barrier_destroy(&meeting);
    EXPECT_EQ(value, 200);
    EXPECT_EQ(::pthread_rwlock_trywrlock(&l), 0);
    EXPECT_EQ(::pthread_rwlock_unlock(&l), 0);
}

}  // namespace
