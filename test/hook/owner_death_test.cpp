// Robust mutexes whose owner ends: a thread, or a fiber; the next owner gets the same result.

#include "weft/hook/detail/owner_death.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>
#include <thread>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/hook/hook.hpp"

namespace {

using namespace weft;

struct robust_mutex {
    pthread_mutex_t m;
    robust_mutex(int type, int protocol) {
        pthread_mutexattr_t a;
        ::pthread_mutexattr_init(&a);
        ::pthread_mutexattr_settype(&a, type);
        ::pthread_mutexattr_setprotocol(&a, protocol);
        ::pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
        ::pthread_mutex_init(&m, &a);
        ::pthread_mutexattr_destroy(&a);
    }
    robust_mutex(const robust_mutex&) = delete;
};

class transcript {
public:
    void add(std::string_view what, int answer) {
        text_.append(what).append(" = ").append(std::to_string(answer)).append("\n");
    }
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

// Runs an agent to its end beside the caller.
using owner_runner = void (*)(const std::function<void()>&);
void run_owner_on_thread(const std::function<void()>& f) { std::thread(f).join(); }
void run_owner_in_fiber(const std::function<void()>& f) { fiber(f).join(); }

timespec soon_on_the_calendar() {
    timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 5;
    return t;
}

// The results of one mutex with owners that end, again and again.
std::string ends_of_owners(int type, int protocol, owner_runner run_owner) {
    transcript t;
    robust_mutex one(type, protocol);
    robust_mutex other(type, protocol);
    pthread_mutex_t* const m = &one.m;
    // Two at once, in the same list, of which the first is given back.
    run_owner([&] {
        robust_mutex given_back(type, protocol);
        t.add("lock", ::pthread_mutex_lock(m));
        t.add("lock one between", ::pthread_mutex_lock(&given_back.m));
        t.add("lock the other", ::pthread_mutex_lock(&other.m));
        t.add("unlock the one between", ::pthread_mutex_unlock(&given_back.m));
        if (type == PTHREAD_MUTEX_RECURSIVE) t.add("lock again", ::pthread_mutex_lock(m));
    });
    t.add("lock", ::pthread_mutex_lock(m));
    t.add("consistent", ::pthread_mutex_consistent(m));
    t.add("consistent again", ::pthread_mutex_consistent(m));
    t.add("unlock", ::pthread_mutex_unlock(m));
    t.add("lock", ::pthread_mutex_lock(m));
    t.add("unlock", ::pthread_mutex_unlock(m));
    t.add("try the other", ::pthread_mutex_trylock(&other.m));
    t.add("unlock it as it is", ::pthread_mutex_unlock(&other.m));
    t.add("lock it", ::pthread_mutex_lock(&other.m));
    t.add("try it", ::pthread_mutex_trylock(&other.m));
    t.add("destroy it", ::pthread_mutex_destroy(&other.m));
    // An owner that got EOWNERDEAD, and ends as well.
    run_owner([&] { t.add("lock", ::pthread_mutex_lock(m)); });
    run_owner([&] { t.add("lock after an end", ::pthread_mutex_lock(m)); });
    const timespec until = soon_on_the_calendar();
    t.add("timedlock", ::pthread_mutex_timedlock(m, &until));
    t.add("consistent", ::pthread_mutex_consistent(m));
    t.add("unlock", ::pthread_mutex_unlock(m));
    t.add("destroy", ::pthread_mutex_destroy(m));
    return t.text();
}

class owner_death : public weft::testing::on_each_driver {};

constexpr int robust_types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK};
constexpr int robust_protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT};

TEST_P(owner_death, of_a_fiber_is_reported_like_that_of_a_thread) {
    if (WEFT_TSAN) GTEST_SKIP() << "it takes what such an owner had for unlocked";
    for (const int type : robust_types)
        for (const int protocol : robust_protocols) {
            std::string of_threads;
            std::thread([&] {
                of_threads = ends_of_owners(type, protocol, run_owner_on_thread);
            }).join();
            std::string of_fibers;
            run([&] { of_fibers = ends_of_owners(type, protocol, run_owner_in_fiber); });
            EXPECT_EQ(of_threads, of_fibers) << type << " " << protocol;
        }
}

TEST_P(owner_death, wakes_a_waiting_fiber_and_a_waiting_thread) {
    for (const bool waits_on_thread : {false, true}) {
        robust_mutex m(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE);
        int told = -1;
        const auto waits = [&] {
            told = ::pthread_mutex_lock(&m.m);
            ::pthread_mutex_consistent(&m.m);
            ::pthread_mutex_unlock(&m.m);
        };
        run([&] {
            std::atomic<bool> is_held{false};
            fiber owner([&] {
                ::pthread_mutex_lock(&m.m);
                is_held = true;
                ::usleep(3000);
            });
            while (!is_held) this_fiber::yield();
            if (waits_on_thread) {
                std::thread beside(waits);
                owner.join();
                beside.join();
            } else {
                fiber beside(waits);
                owner.join();
                beside.join();
            }
        });
        EXPECT_EQ(told, EOWNERDEAD) << waits_on_thread;
    }
}

TEST_P(owner_death, is_not_reported_if_a_key_destructor_unlocks) {
    run([&] {
        static robust_mutex m(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE);
        static pthread_key_t key;
        int unlocked = -1;
        static int* told = nullptr;
        told = &unlocked;
        ::pthread_key_create(&key, [](void*) { *told = ::pthread_mutex_unlock(&m.m); });
        fiber f([&] {
            ::pthread_setspecific(key, &m);
            ::pthread_mutex_lock(&m.m);
        });
        f.join();
        EXPECT_EQ(unlocked, 0);
        EXPECT_EQ(::pthread_mutex_lock(&m.m), 0);
        EXPECT_EQ(::pthread_mutex_unlock(&m.m), 0);
        ::pthread_key_delete(key);
    });
}

TEST_P(owner_death, is_also_reported_for_a_stopped_fiber) {
    robust_mutex m(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE);
    run([&] {
        fiber f([&] {
            ::pthread_mutex_lock(&m.m);
            ::usleep(8'000'000);
        });
        this_fiber::yield();
        f.request_stop();
        f.join();
        EXPECT_EQ(::pthread_mutex_lock(&m.m), EOWNERDEAD);
        EXPECT_EQ(::pthread_mutex_unlock(&m.m), 0);
        EXPECT_EQ(::pthread_mutex_lock(&m.m), ENOTRECOVERABLE);
    });
}

INSTANTIATE_ON_DRIVERS(owner_death);

}  // namespace
