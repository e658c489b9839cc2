// Mutexes of several kinds, conditions, read-write locks, semaphores and beginnings, by fibers of a
// pool and by plain threads at once. The law: each excludes what it excludes, and no wake is lost:
// a waiter is notified at once, and not only by a later check, as the check for mutexes that are
// unlocked behind the hooks does.
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <list>
#include <thread>
#include <vector>

#include "weft/base/clock.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/run/run.hpp"
#include "weft/sched/pool.hpp"

namespace {

using namespace weft;
using namespace std::chrono_literals;

constexpr int fiber_count = 8;
constexpr int thread_count = 2;
constexpr int mutex_count = 4;
constexpr int once_count = 128;

timespec storm_moment(long us) {
    timespec t;
    ::clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += us * 1000;
    t.tv_sec += t.tv_nsec / 1'000'000'000;
    t.tv_nsec %= 1'000'000'000;
    return t;
}

// What it does now, and since when; read by the watcher.
struct storm_party {
    std::atomic<const char*> at{nullptr};
    std::atomic<std::int64_t> since{0};  // 0: it waits for nothing
    std::uint64_t seed = 0;
    std::uint64_t done = 0;

    std::uint64_t draw(std::uint64_t below) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        return (seed >> 33) % below;
    }
    template <class F>
    auto waits(const char* what, F f) {
        at = what;
        since = steady_now().time_since_epoch().count();
        const auto r = f();
        since = 0;
        return r;
    }
};

class pthread_storm {
public:
    pthread_storm() {
        const int kinds[mutex_count] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                        PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
        for (int i = 0; i < mutex_count; ++i) {
            pthread_mutexattr_t a;
            ::pthread_mutexattr_init(&a);
            ::pthread_mutexattr_settype(&a, kinds[i]);
            ::pthread_mutex_init(&mutexes_[i], &a);
            ::pthread_mutexattr_destroy(&a);
        }
        ::sem_init(&units_, 0, 2);
        begun_ = 0;
        for (pthread_once_t& o : onces_) o = PTHREAD_ONCE_INIT;
    }
    ~pthread_storm() {
        for (pthread_mutex_t& m : mutexes_) EXPECT_EQ(::pthread_mutex_destroy(&m), 0);
        EXPECT_EQ(::pthread_cond_destroy(&put_back_), 0);
        EXPECT_EQ(::pthread_rwlock_destroy(&pair_lock_), 0);
        EXPECT_EQ(::sem_destroy(&units_), 0);
    }
    pthread_storm(const pthread_storm&) = delete;

    void agent(storm_party& p, time_point end) {
        while (steady_now() < end) {
            switch (p.draw(6)) {
                case 0:
                    exclude(p, p.draw(4) == 0);
                    break;
                case 1:
                case 2:
                    take_a_token(p);
                    break;
                case 3:
                    look_at_the_pair(p);
                    break;
                case 4:
                    take_a_unit(p);
                    break;
                default:
                    begin_once(p);
            }
            ++p.done;
        }
    }
    void expect_rest() {
        EXPECT_EQ(tokens_, 2);
        int left = 0;
        EXPECT_EQ(::sem_getvalue(&units_, &left), 0);
        EXPECT_EQ(left, 2);
        EXPECT_EQ(begun_, std::count(std::begin(drawn_), std::end(drawn_), true));
    }

private:
    static void inside_for_a_while(storm_party& p) {
        if (p.draw(4) == 0) ::usleep(static_cast<useconds_t>(p.draw(200)));
    }

    void exclude(storm_party& p, bool in_time) {
        const auto k = p.draw(mutex_count);
        pthread_mutex_t& m = mutexes_[k];
        if (in_time) {
            const timespec until = storm_moment(static_cast<long>(p.draw(300)));
            const int r = p.waits("pthread_mutex_timedlock",
                                  [&] { return ::pthread_mutex_timedlock(&m, &until); });
            if (r == ETIMEDOUT) return;
            ASSERT_EQ(r, 0);
        } else {
            ASSERT_EQ(p.waits("pthread_mutex_lock", [&] { return ::pthread_mutex_lock(&m); }), 0);
        }
        EXPECT_EQ(inside_[k]++, 0);
        inside_for_a_while(p);
        EXPECT_EQ(--inside_[k], 0);
        ASSERT_EQ(::pthread_mutex_unlock(&m), 0);
    }

    // Two tokens: what has one puts it back. The mutex is unlocked by the wait itself as well.
    void take_a_token(storm_party& p) {
        pthread_mutex_t& m = mutexes_[0];
        ASSERT_EQ(p.waits("pthread_mutex_lock", [&] { return ::pthread_mutex_lock(&m); }), 0);
        while (tokens_ == 0) {
            if (p.draw(3) == 0) {
                const timespec until = storm_moment(static_cast<long>(p.draw(500)));
                static_cast<void>(::pthread_cond_timedwait(&put_back_, &m, &until));
            } else {
                p.waits("pthread_cond_wait", [&] { return ::pthread_cond_wait(&put_back_, &m); });
            }
        }
        EXPECT_GE(--tokens_, 0);
        ::pthread_mutex_unlock(&m);
        inside_for_a_while(p);
        ASSERT_EQ(p.waits("pthread_mutex_lock", [&] { return ::pthread_mutex_lock(&m); }), 0);
        EXPECT_LE(++tokens_, 2);
        if (p.draw(8) == 0)
            ::pthread_cond_broadcast(&put_back_);
        else
            ::pthread_cond_signal(&put_back_);
        ::pthread_mutex_unlock(&m);
    }

    void look_at_the_pair(storm_party& p) {
        if (p.draw(3) != 0) {
            ASSERT_EQ(p.waits("pthread_rwlock_rdlock",
                              [&] { return ::pthread_rwlock_rdlock(&pair_lock_); }),
                      0);
            EXPECT_EQ(pair_[0], pair_[1]);
            inside_for_a_while(p);
            EXPECT_EQ(pair_[0], pair_[1]);
        } else {
            ASSERT_EQ(p.waits("pthread_rwlock_wrlock",
                              [&] { return ::pthread_rwlock_wrlock(&pair_lock_); }),
                      0);
            ++pair_[0];
            inside_for_a_while(p);
            ++pair_[1];
        }
        ASSERT_EQ(::pthread_rwlock_unlock(&pair_lock_), 0);
    }

    void take_a_unit(storm_party& p) {
        ASSERT_EQ(p.waits("sem_wait", [&] { return ::sem_wait(&units_); }), 0);
        EXPECT_LT(with_unit_.fetch_add(1), 2);
        inside_for_a_while(p);
        with_unit_.fetch_sub(1);
        ASSERT_EQ(::sem_post(&units_), 0);
    }

    void begin_once(storm_party& p) {
        const auto i = p.draw(once_count);
        drawn_[i] = true;
        p.waits("pthread_once", [&] {
            return ::pthread_once(&onces_[i], [] {
                ::usleep(20);
                ++begun_;
            });
        });
    }

    pthread_mutex_t mutexes_[mutex_count];
    int inside_[mutex_count] = {};
    pthread_cond_t put_back_ = PTHREAD_COND_INITIALIZER;
    int tokens_ = 2;
    pthread_rwlock_t pair_lock_ = PTHREAD_RWLOCK_INITIALIZER;
    int pair_[2] = {};
    sem_t units_;
    std::atomic<int> with_unit_{0};
    pthread_once_t onces_[once_count];
    std::atomic<bool> drawn_[once_count] = {};
    static inline std::atomic<int> begun_;
};

// Prints the longest wait; a wait that does not end ends the program.
class storm_watcher {
public:
    explicit storm_watcher(std::list<storm_party>& all) : all_(all) {
        thread_ = std::thread([this] { watch(); });
    }
    ~storm_watcher() {
        ended_ = true;
        thread_.join();
    }
    storm_watcher(const storm_watcher&) = delete;
    std::chrono::milliseconds longest() const { return longest_.load(); }
    const char* of() const { return of_; }

private:
    void watch() {
        while (!ended_) {
            std::this_thread::sleep_for(5ms);
            const std::int64_t present = steady_now().time_since_epoch().count();
            for (storm_party& p : all_) {
                const std::int64_t since = p.since;
                if (since == 0) continue;
                const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
                    std::chrono::nanoseconds(present - since));
                if (waited > longest_.load()) longest_ = waited, of_ = p.at.load();
                if (waited < 30s) continue;
                std::fprintf(stderr, "a wake is lost: %s has not ended\n", p.at.load());
                std::abort();
            }
        }
    }

    std::list<storm_party>& all_;
    std::thread thread_;
    std::atomic<bool> ended_{false};
    std::atomic<std::chrono::milliseconds> longest_{0ms};
    std::atomic<const char*> of_{""};
};

TEST(pthread_storm, of_fibers_and_threads_loses_no_wake) {
    std::list<storm_party> parties(fiber_count + thread_count);
    std::uint64_t seed = 1;
    for (storm_party& p : parties) p.seed = seed++ * 0x9E37'79B9'7F4A'7C15;
    pthread_storm storm;
    pool two(2);
    const time_point end = after(steady_now(), 1500ms);
    storm_watcher watcher(parties);
    {
        std::vector<std::thread> threads;
        std::vector<fiber> fibers;
        int i = 0;
        for (storm_party& p : parties) {
            const auto body = [&storm, &p, end] { storm.agent(p, end); };
            if (i++ < fiber_count)
                fibers.emplace_back(body, fiber_options{.on = two});
            else
                threads.emplace_back(body);
        }
        for (fiber& f : fibers) f.join();
        for (std::thread& t : threads) t.join();
    }
    storm.expect_rest();
    for (const storm_party& p : parties) EXPECT_GT(p.done, 0u);
    std::printf("[ LONGEST  ] %d ms, %s\n", static_cast<int>(watcher.longest().count()),
                watcher.of());
}

}  // namespace
