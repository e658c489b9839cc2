// The waits of a fiber while its stack is unwound: the fiber cannot be suspended, and the awaited
// object may be another fiber's of the same loop.

#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/hook/suite.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"
#include "weft/run/run.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace weft;

using killed_step = std::function<void()>;

struct when_unwound {
    const killed_step& then;
    ~when_unwound() { then(); }
};

// Until it is killed.
void stay() {
    const shield from_stops;
    for (;;) ::usleep(10'000'000);
}

// Two fibers, of which the younger is killed first, as their loop ends.
void end_both(const killed_step& owner, const killed_step& late) {
    ::alarm(20);  // where a wait hangs its thread
    {
        loop l;
        fiber a([&] { owner(); }, {.name = "owner", .on = l});
        fiber b(
            [&] {
                const when_unwound at_end{late};
                stay();
            },
            {.name = "late", .on = l});
        static_cast<void>(l.run_once(steady_now()));
        a.detach();
        b.detach();
    }
    ::alarm(0);
}

// The older has a lock, and releases it as it is unwound.
void expect_had(const char* what, const killed_step& lock, const killed_step& unlock,
                const killed_step& relock, const killed_step& reunlock) {
    std::string order;
    end_both(
        [&] {
            lock();
            const killed_step last = [&] {
                order += "owner ";
                unlock();
            };
            const when_unwound at_end{last};
            stay();
        },
        [&] {
            relock();
            order += "late ";
            reunlock();
        });
    EXPECT_EQ(order, "owner late ") << what;
}

TEST(fiber_that_is_killed, locks_a_mutex_after_its_owner_is_unwound) {
    for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK})
        for (const bool is_shared : {false, true}) {
            pthread_mutexattr_t a;
            ::pthread_mutexattr_init(&a);
            ::pthread_mutexattr_settype(&a, type);
            ::pthread_mutexattr_setpshared(
                &a, is_shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
            pthread_mutex_t m;
            ::pthread_mutex_init(&m, &a);
            const killed_step lock = [&] { EXPECT_EQ(::pthread_mutex_lock(&m), 0); };
            const killed_step unlock = [&] { EXPECT_EQ(::pthread_mutex_unlock(&m), 0); };
            expect_had("a mutex", lock, unlock, lock, unlock);
            EXPECT_EQ(::pthread_mutex_destroy(&m), 0);
            ::pthread_mutexattr_destroy(&a);
        }
}

TEST(fiber_that_is_killed, locks_a_rwlock_after_its_owner_is_unwound) {
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    const killed_step read = [&] { EXPECT_EQ(::pthread_rwlock_rdlock(&l), 0); };
    const killed_step write = [&] { EXPECT_EQ(::pthread_rwlock_wrlock(&l), 0); };
    const killed_step unlock = [&] { EXPECT_EQ(::pthread_rwlock_unlock(&l), 0); };
    expect_had("to write", write, unlock, write, unlock);
    expect_had("to read", write, unlock, read, unlock);
    expect_had("to write after a reader", read, unlock, write, unlock);

    pthread_rwlockattr_t a;
    ::pthread_rwlockattr_init(&a);
    ::pthread_rwlockattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    ::pthread_rwlock_init(&l, &a);
    expect_had("of processes", write, unlock, write, unlock);

    pthread_spinlock_t s;
    ::pthread_spin_init(&s, PTHREAD_PROCESS_PRIVATE);
    const killed_step lock_spin = [&] { EXPECT_EQ(::pthread_spin_lock(&s), 0); };
    const killed_step unlock_spin = [&] { EXPECT_EQ(::pthread_spin_unlock(&s), 0); };
    expect_had("a spin lock", lock_spin, unlock_spin, lock_spin, unlock_spin);
}

int begun;
pthread_once_t once;
void begin_once() {
    if (++begun == 1) stay();
}
int begin_static() {
    if (++begun == 1) stay();
    return begun;
}
int value_of_static() {
    static const int value = begin_static();
    return value;
}

TEST(fiber_that_is_killed, retries_an_initialisation_that_was_unwound) {
    begun = 0;
    once = PTHREAD_ONCE_INIT;
    end_both([] { ::pthread_once(&once, begin_once); }, [] { ::pthread_once(&once, begin_once); });
    EXPECT_EQ(begun, 2);

    begun = 0;
    int value = 0;
    end_both([&] { value = value_of_static(); }, [&] { value = value_of_static(); });
    EXPECT_EQ(value, 2);
}

TEST(fiber_that_is_killed, is_notified_by_a_fiber_killed_after_it) {
    struct way {
        const char* name;
        killed_step tell;
        killed_step wait;
    };
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    pthread_barrier_t meeting;
    ::pthread_barrier_init(&meeting, nullptr, 2);
    sem_t units;
    ::sem_init(&units, 0, 0);
    std::atomic<int> flag{0};
    bool told = false;
    const way ways[] = {
        {"a condition",
         [&] {
             ::pthread_mutex_lock(&m);
             told = true;
             ::pthread_cond_signal(&c);
             ::pthread_mutex_unlock(&m);
         },
         [&] {
             ::pthread_mutex_lock(&m);
             while (!told) ::pthread_cond_wait(&c, &m);
             ::pthread_mutex_unlock(&m);
         }},
        {"a semaphore", [&] { ::sem_post(&units); },
         [&] {
             while (::sem_wait(&units) != 0) {
             }
         }},
        {"a futex",
         [&] {
             flag = 1;
             flag.notify_one();
         },
         [&] { flag.wait(0); }},
        {"a barrier", [&] { ::pthread_barrier_wait(&meeting); },
         [&] { ::pthread_barrier_wait(&meeting); }},
    };
    for (const way& w : ways) {
        bool has_ended = false;
        end_both(
            [&] {
                const when_unwound at_end{w.tell};
                stay();
            },
            [&] {
                w.wait();
                has_ended = true;
            });
        EXPECT_TRUE(has_ended) << w.name;
    }
}

TEST(fiber_that_is_killed, relocks_the_mutex_of_a_condition_wait) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    std::string order;
    ::alarm(20);
    {
        loop l;
        bool waits = false;
        fiber owner(
            [&] {
                while (!waits) this_fiber::yield();
                ::pthread_mutex_lock(&m);
                const killed_step unlock = [&] {
                    order += "owner ";
                    EXPECT_EQ(::pthread_mutex_unlock(&m), 0);
                };
                const when_unwound at_end{unlock};
                stay();
            },
            {.on = l});
        fiber late(
            [&] {
                ::pthread_mutex_lock(&m);
                const killed_step unlock = [&] {
                    order += "late ";
                    EXPECT_EQ(::pthread_mutex_unlock(&m), 0);
                };
                const when_unwound at_end{unlock};
                waits = true;
                const shield from_stops;
                for (;;) ::pthread_cond_wait(&c, &m);
            },
            {.on = l});
        static_cast<void>(l.run_once(steady_now()));
        owner.detach();
        late.detach();
    }
    ::alarm(0);
    EXPECT_EQ(order, "owner late ");
}

TEST(fiber_that_is_killed, waits_for_a_mutex_owned_by_a_thread) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    std::atomic<bool> locked{false};
    std::atomic<bool> unlocked{false};
    std::thread owner([&] {
        ::pthread_mutex_lock(&m);
        locked = true;
        ::usleep(300'000);
        unlocked = true;
        ::pthread_mutex_unlock(&m);
    });
    while (!locked) std::this_thread::yield();
    bool was_unlocked = false;
    end_both([] { stay(); },
             [&] {
                 ::pthread_mutex_lock(&m);
                 was_unlocked = unlocked;
                 ::pthread_mutex_unlock(&m);
             });
    EXPECT_TRUE(was_unlocked);
    owner.join();
}

// Each would have to wait for the very fiber that waits for it.
void kill_both_in_need_of_each_other() {
    static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
    static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
    const auto body = [](pthread_mutex_t& own, pthread_mutex_t& others) {
        return [&] {
            ::pthread_mutex_lock(&own);
            const killed_step then = [&] {
                ::pthread_mutex_lock(&others);
                ::pthread_mutex_unlock(&others);
                ::pthread_mutex_unlock(&own);
            };
            const when_unwound at_end{then};
            stay();
        };
    };
    loop l;
    fiber a(body(first, second), {.name = "elder", .on = l});
    fiber b(body(second, first), {.name = "younger", .on = l});
    static_cast<void>(l.run_once(steady_now()));
    a.detach();
    b.detach();
}

// The owner is suspended, and cannot continue within this turn.
void kill_in_a_turn(const killed_step& lock) {
    run([&] {
        fiber owner(
            [&] {
                lock();
                stay();
            },
            {.name = "owner"});
        flow* victim = nullptr;
        fiber late(
            [&] {
                victim = current_flow();
                const when_unwound at_end{lock};
                stay();
            },
            {.name = "late"});
        this_fiber::yield();
        this_fiber::yield();
        victim->kind->end(*victim);
    });
}

TEST(fiber_that_is_killed_deathtest, aborts_when_its_wait_can_never_end) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // A wait for ever is ended by the alarm, without that line.
    EXPECT_DEATH((::alarm(10), kill_both_in_need_of_each_other()),
                 "fiber [0-9]+ \"elder\" is killed and needs a mutex .*which fiber [0-9]+ "
                 "\"younger\" has");
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    EXPECT_DEATH((::alarm(10), kill_in_a_turn([] { ::pthread_mutex_lock(&m); })),
                 "fiber [0-9]+ \"late\" is killed and needs a mutex .*which fiber [0-9]+ "
                 "\"owner\" has");
}

TEST(fiber_that_is_killed_deathtest, names_the_awaited_object_if_its_owner_is_unknown) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    static pthread_spinlock_t spin;
    ::pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    EXPECT_DEATH((::alarm(4), kill_in_a_turn([] { ::pthread_spin_lock(&spin); })),
                 "fiber [0-9]+ \"late\" is killed and waits for a spin lock with its thread");
    static pthread_rwlock_t shared;
    pthread_rwlockattr_t how;
    ::pthread_rwlockattr_init(&how);
    ::pthread_rwlockattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    ::pthread_rwlock_init(&shared, &how);
    EXPECT_DEATH((::alarm(4), kill_in_a_turn([] { ::pthread_rwlock_wrlock(&shared); })),
                 "fiber [0-9]+ \"late\" is killed and waits for a lock that processes share");
    ::pthread_rwlockattr_destroy(&how);
}

}  // namespace
