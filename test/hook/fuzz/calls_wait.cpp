// Waits of pthreads: mutexes of each kind, conditions, semaphores, locks for readers and writers.

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <memory>

#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {
namespace {

constexpr choice mutex_kinds[] = {{"normal", PTHREAD_MUTEX_NORMAL},
                                  {"recursive", PTHREAD_MUTEX_RECURSIVE},
                                  {"errorcheck", PTHREAD_MUTEX_ERRORCHECK},
                                  {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP}};
enum limit : long { without, past, soon, bad_time, bad_clock, far };
constexpr choice limits[] = {{"plain", without},
                             {"try", -1},
                             {"past", past},
                             {"1ms", soon, true},
                             {"bad_time", bad_time},
                             {"bad_clock", bad_clock},
                             {"far", far}};
constexpr choice counts[] = {{"0", 0}, {"1", 1}};
constexpr choice hows[] = {{"read", 0}, {"write", 1}};
constexpr choice all_or_one[] = {{"one", 0}, {"all", 1}};

::timespec time_of(long limit, ::clockid_t by) {
    ::timespec t{};
    if (limit == past) return t;
    if (limit == far) return {0x7fffffffffffffff, 0};
    ::clock_gettime(by, &t);
    if (limit == bad_time) return {0, 2000 * 1000 * 1000};
    t.tv_nsec += 1000 * 1000;
    if (t.tv_nsec >= 1000 * 1000 * 1000) {
        t.tv_nsec -= 1000 * 1000 * 1000;
        ++t.tv_sec;
    }
    return t;
}

void makes_mutex(making& m) {
    auto o = std::make_unique<shared_object>();
    o->what = mutex;
    o->is_checked = m.value(1) == PTHREAD_MUTEX_RECURSIVE || m.value(1) == PTHREAD_MUTEX_ERRORCHECK;
    ::pthread_mutexattr_t a;
    ::pthread_mutexattr_init(&a);
    ::pthread_mutexattr_settype(&a, m.number(1));
    m.tell_error(::pthread_mutex_init(&o->lock, &a));
    ::pthread_mutexattr_destroy(&a);
    m.here.put_object(m.place(0), std::move(o));
}
void makes(making& m, unsigned what, unsigned count) {
    auto o = std::make_unique<shared_object>();
    o->what = what;
    ::sem_init(&o->count, 0, count);
    m.here.put_object(m.place(0), std::move(o));
}

void locks_mutex(making& m) {
    shared_object* const o = m.object(0, mutex);
    if (o == nullptr) return m.say("none");
    const long how = m.value(1);
    // It would wait for itself; with a time limit the call returns.
    if (!o->is_checked && o->held[m.actor()] != 0 && (how == without || how == far))
        return m.say("its own");
    int n;
    if (how == without) {
        n = ::pthread_mutex_lock(&o->lock);
    } else if (how == -1) {
        n = ::pthread_mutex_trylock(&o->lock);
    } else if (how == bad_clock || how == past) {
        const ::timespec t = time_of(how, CLOCK_MONOTONIC);
        n = ::pthread_mutex_clocklock(&o->lock, how == past ? CLOCK_MONOTONIC : 99, &t);
    } else {
        const ::timespec t = time_of(how, CLOCK_REALTIME);
        n = ::pthread_mutex_timedlock(&o->lock, &t);
    }
    if (m.tell_error(n) == 0) ++o->held[m.actor()];
}
void unlocks_mutex(making& m) {
    shared_object* const o = m.object(0, mutex);
    if (o == nullptr) return m.say("none");
    if (!o->is_checked && o->held[m.actor()] == 0) return m.say("another's");
    if (m.tell_error(::pthread_mutex_unlock(&o->lock)) == 0) --o->held[m.actor()];
}

// With the mutex, which is had only meanwhile.
void waits_for_condition(making& m) {
    shared_object* const c = m.object(0, condition);
    shared_object* const o = m.object(1, mutex);
    if (c == nullptr || o == nullptr || o->held[m.actor()] != 0) return m.say("none");
    if (m.tell_error(::pthread_mutex_trylock(&o->lock)) != 0) return;
    ++o->held[m.actor()];
    const long how = m.value(2);
    if (how == without || how == -1) {
        m.tell_error(::pthread_cond_wait(&c->condition, &o->lock));
    } else if (how == bad_clock || how == past) {
        const ::timespec t = time_of(how, CLOCK_MONOTONIC);
        m.tell_error(::pthread_cond_clockwait(&c->condition, &o->lock,
                                              how == past ? CLOCK_MONOTONIC : 99, &t));
    } else {
        const ::timespec t = time_of(how, CLOCK_REALTIME);
        m.tell_error(::pthread_cond_timedwait(&c->condition, &o->lock, &t));
    }
    --o->held[m.actor()];
    m.tell_error(::pthread_mutex_unlock(&o->lock));
}
void signals_condition(making& m) {
    shared_object* const c = m.object(0, condition);
    if (c == nullptr) return m.say("none");
    m.tell_error(m.value(1) != 0 ? ::pthread_cond_broadcast(&c->condition)
                                 : ::pthread_cond_signal(&c->condition));
}

void waits_for_semaphore(making& m) {
    shared_object* const o = m.object(0, semaphore);
    if (o == nullptr) return m.say("none");
    const long how = m.value(1);
    if (how == without) {
        m.tell(::sem_wait(&o->count));
    } else if (how == -1) {
        m.tell(::sem_trywait(&o->count));
    } else if (how == bad_clock || how == past) {
        const ::timespec t = time_of(how, CLOCK_MONOTONIC);
        m.tell(::sem_clockwait(&o->count, how == past ? CLOCK_MONOTONIC : 99, &t));
    } else {
        const ::timespec t = time_of(how, CLOCK_REALTIME);
        m.tell(::sem_timedwait(&o->count, &t));
    }
}
void posts(making& m) {
    shared_object* const o = m.object(0, semaphore);
    if (o == nullptr) return m.say("none");
    m.tell(::sem_post(&o->count));
}

void locks_both(making& m) {
    shared_object* const o = m.object(0, rwlock);
    if (o == nullptr) return m.say("none");
    const bool writes = m.value(1) != 0;
    const long how = m.value(2);
    if (o->held[m.actor()] != 0 && how != -1 && how != soon) return m.say("its own");
    int n;
    if (how == without) {
        n = writes ? ::pthread_rwlock_wrlock(&o->both) : ::pthread_rwlock_rdlock(&o->both);
    } else if (how == -1) {
        n = writes ? ::pthread_rwlock_trywrlock(&o->both) : ::pthread_rwlock_tryrdlock(&o->both);
    } else {
        const ::timespec t = time_of(how, CLOCK_REALTIME);
        n = writes ? ::pthread_rwlock_timedwrlock(&o->both, &t)
                   : ::pthread_rwlock_timedrdlock(&o->both, &t);
    }
    if (m.tell_error(n) == 0) ++o->held[m.actor()];
}
void unlocks_both(making& m) {
    shared_object* const o = m.object(0, rwlock);
    if (o == nullptr || o->held[m.actor()] == 0) return m.say("none");
    if (m.tell_error(::pthread_rwlock_unlock(&o->both)) == 0) --o->held[m.actor()];
}

}  // namespace

void add_waits(std::vector<call_spec>& all) {
    all.push_back({"mutex", 4, looks, {a_new(mutex), one_of(mutex_kinds)}, makes_mutex});
    all.push_back(
        {"condition", 2, looks, {a_new(condition)}, [](making& m) { makes(m, condition, 0); }});
    all.push_back({"semaphore", 3, looks, {a_new(semaphore), one_of(counts)}, [](making& m) {
                       makes(m, semaphore, static_cast<unsigned>(m.value(1)));
                   }});
    all.push_back({"rwlock", 2, looks, {a_new(rwlock)}, [](making& m) { makes(m, rwlock, 0); }});
    all.push_back({"mutex_lock", 9, takes | locks, {a_slot(mutex), one_of(limits)}, locks_mutex});
    all.push_back({"mutex_unlock", 7, looks, {a_slot(mutex)}, unlocks_mutex});
    all.push_back({"cond_wait",
                   5,
                   takes | locks,
                   {a_slot(condition), a_slot(mutex), one_of(limits)},
                   waits_for_condition});
    all.push_back(
        {"cond_signal", 4, looks, {a_slot(condition), one_of(all_or_one)}, signals_condition});
    all.push_back(
        {"sem_wait", 5, takes | locks, {a_slot(semaphore), one_of(limits)}, waits_for_semaphore});
    all.push_back({"sem_post", 4, looks, {a_slot(semaphore)}, posts});
    all.push_back({"rwlock_lock",
                   6,
                   takes | locks,
                   {a_slot(rwlock), one_of(hows), one_of(limits)},
                   locks_both});
    all.push_back({"rwlock_unlock", 4, looks, {a_slot(rwlock)}, unlocks_both});
}

}  // namespace weft::testing::fuzz
