// Read-write locks of pthreads. A fiber tries libc's own lock, which keeps all its rules. If the
// lock is not free, the fiber parks at the lock's address. The unlocking fiber or thread wakes the
// first parked waiter, and if that waiter is a reader, all other parked readers.
//
//   the writer   libc stores the thread that writes; while a fiber writes, the fiber's id is stored
//                there, beyond all thread ids. Only that fiber therefore gets EDEADLK for its own
//                lock, and the fiber can unlock on any thread that it has migrated to
//   a writer     that was woken and finds readers wakes the readers that are parked behind it, as
//                libc does; if writers go first, a reader parks while a writer is parked
//   a stop       ends no wait: a lock cannot be refused
//   shared       a lock that is shared between processes is tried again and again, because another
//                process's unlock notifies no waiter here
//
// Model: none, the words are libc's, and the waiters are in the parking lot.

#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>

#include "weft/base/detail/asymmetric_fence.hpp"
#include "weft/hook/detail/beside.hpp"
#include "weft/hook/detail/blocked.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/libc_mutex.hpp"
#include "weft/hook/detail/timed_park.hpp"
#include "weft/hook/detail/turn_budget.hpp"

namespace weft::hook {
namespace {

constexpr std::uint32_t as_reader = 1;
constexpr std::uint32_t as_writer = 2;

#if defined(__GLIBC__)
bool is_shared(const pthread_rwlock_t& l) noexcept { return l.__data.__shared != 0; }
bool writers_go_first(const pthread_rwlock_t& l) noexcept {
    return l.__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}
// Relaxed, both: the id is compared with the caller's own, and a writer stores and clears its own.
int writer_of(const pthread_rwlock_t& l) noexcept {
    return __atomic_load_n(&l.__data.__cur_writer, __ATOMIC_RELAXED);  // as said above
}
void set_writer(pthread_rwlock_t& l, int to) noexcept {
    __atomic_store_n(&l.__data.__cur_writer, to, __ATOMIC_RELAXED);  // as above
}
#else
bool is_shared(const pthread_rwlock_t&) noexcept { return false; }
bool writers_go_first(const pthread_rwlock_t&) noexcept { return false; }
int writer_of(const pthread_rwlock_t&) noexcept { return 0; }
void set_writer(pthread_rwlock_t&, int) noexcept {}
#endif

// Negative, and so no thread's id. Two fibers with the same value have ids that are 2^31 apart.
int writer_number_of(const fiber_core& f) noexcept {
    return static_cast<int>(static_cast<std::uint32_t>(f.id()) | 0x8000'0000u);
}

int try_rwlock(pthread_rwlock_t& l, std::uint32_t as, const fiber_core& f) noexcept {
    if (as == as_reader) return real::pthread_rwlock_tryrdlock(&l);
    const int r = real::pthread_rwlock_trywrlock(&l);
    if (r == 0) set_writer(l, writer_number_of(f));
    return r;
}

constexpr std::size_t all_readers = std::numeric_limits<std::size_t>::max();

// Called after an unlock, after which the lock may be destroyed.
void wake_for_rwlock(const void* l, bool writers_first) noexcept {
    weft::detail::full_fence();
    if (!may_have_parked(l)) return;
    if (writers_first) {
        if (unpark(l, 1, as_writer) == 0) unpark(l, all_readers, as_reader);
        return;
    }
    std::uint32_t first_is = 0;
    unpark_first(l, [&](const parked* first, bool) noexcept {
        if (first != nullptr) first_is = first->bits;
        return false;
    });
    if (first_is == as_reader) unpark(l, all_readers, as_reader);
}

// Called for a fiber that was woken and is killed. Wakes waiters of either kind; those that were
// woken without need check again.
void wake_any_for_rwlock(const void* l, bool) noexcept {
    unpark(l, 1, as_writer);
    unpark(l, all_readers, as_reader);
}

bool yields_to_writers(const pthread_rwlock_t& l, std::uint32_t as) noexcept {
    return as == as_reader && writers_go_first(l) && has_parked(&l, as_writer);
}
// The last writer may have left before the reader was queued.
void look_for_writers_again(void* l) noexcept {
    if (!has_parked(l, as_writer)) wake_for_rwlock(l, true);
}

bool is_written_by(const void* l, const fiber_core& f) noexcept {
    return writer_of(*static_cast<const pthread_rwlock_t*>(l)) == writer_number_of(f);
}

int poll_rwlock(pthread_rwlock_t& l, std::uint32_t as, fiber_core& f, const clock_moment& until) {
    auto pause = std::chrono::microseconds(0);
    others_beside others(f, "a lock that processes share");
    for (;;) {
        const int r = try_rwlock(l, as, f);
        if (r != EBUSY) return r;
        if (until.at != nullptr && left_until_moment(until) <= duration::zero()) return ETIMEDOUT;
        ask_again_after(f, others, pause);
        pause =
            std::clamp(2 * pause, std::chrono::microseconds(50), std::chrono::microseconds(1000));
    }
}

int lock_rwlock(pthread_rwlock_t& l, std::uint32_t as, const clock_moment& until) {
    pay(price::lock);
    fiber_core& f = *hooked_fiber();
    if (until.at != nullptr) {
        if (until.by != CLOCK_REALTIME && until.by != CLOCK_MONOTONIC) return EINVAL;
        if (is_no_moment_of_waits(*until.at)) return EINVAL;
    }
    int r = yields_to_writers(l, as) ? EBUSY : try_rwlock(l, as, f);
    if (r != EBUSY) return r;
    if (writer_of(l) == writer_number_of(f)) return EDEADLK;
    if (is_shared(l)) return poll_rwlock(l, as, f, until);
    const bool writers_first = writers_go_first(l);
    parking how{.what = as == as_reader ? "a lock to read" : "a lock to write",
                .is_stopped = false,
                .is_owned = true,
                .is_owner = until.at == nullptr ? is_written_by : nullptr,
                .bits = as,
                .abandoned = wake_any_for_rwlock};
    for (;;) {
        const bool yields = yields_to_writers(l, as);
        how.entered = yields ? look_for_writers_again : nullptr;
        how.entered_of = &l;
        const auto still = [&] { return yields || (r = try_rwlock(l, as, f)) == EBUSY; };
        const unparked end = park_until(&l, how, until, still);
        if (end == unparked::refused) return r;
        if (end == unparked::timed_out) {
            if (as == as_writer) wake_for_rwlock(&l, writers_first);
            return ETIMEDOUT;
        }
        how.first = true;
        if (as == as_reader || writers_first) continue;
        if ((r = try_rwlock(l, as, f)) != EBUSY) return r;
        // Readers own the lock: other readers may too, as if this writer had not come.
        if (writer_of(l) == 0) unpark(&l, all_readers, as_reader);
    }
}

// A thread has waited in libc to write. If writers go first, that has kept readers out.
int no_longer_in_the_way(const pthread_rwlock_t& l, int r) noexcept {
    if (r == ETIMEDOUT) wake_for_rwlock(&l, writers_go_first(l));
    return r;
}

}  // namespace

int in_fiber::pthread_rwlock_rdlock(pthread_rwlock_t* l) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_rwlock_rdlock", __builtin_return_address(0),
                              [=] { return real::pthread_rwlock_rdlock(l); });

    return lock_rwlock(*l, as_reader, {CLOCK_REALTIME, nullptr});
}
int in_fiber::pthread_rwlock_timedrdlock(pthread_rwlock_t* l, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_rwlock_timedrdlock", __builtin_return_address(0),
                              [=] { return real::pthread_rwlock_timedrdlock(l, until); });

    return lock_rwlock(*l, as_reader, {CLOCK_REALTIME, until});
}
int in_fiber::pthread_rwlock_clockrdlock(pthread_rwlock_t* l, clockid_t by, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_rwlock_clockrdlock", __builtin_return_address(0),
                              [=] { return real::pthread_rwlock_clockrdlock(l, by, until); });

    return lock_rwlock(*l, as_reader, {by, until});
}
int in_fiber::pthread_rwlock_wrlock(pthread_rwlock_t* l) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_rwlock_wrlock", __builtin_return_address(0),
                              [=] { return real::pthread_rwlock_wrlock(l); });

    return lock_rwlock(*l, as_writer, {CLOCK_REALTIME, nullptr});
}
int everywhere::pthread_rwlock_timedwrlock(pthread_rwlock_t* l, const timespec* until) {
    if (hooked_fiber() != nullptr && pthreads_are_of_fibers())
        return lock_rwlock(*l, as_writer, {CLOCK_REALTIME, until});
    const int r = left_to_thread("pthread_rwlock_timedwrlock", __builtin_return_address(0),
                                 [=] { return real::pthread_rwlock_timedwrlock(l, until); });
    return no_longer_in_the_way(*l, r);
}
int everywhere::pthread_rwlock_clockwrlock(pthread_rwlock_t* l, clockid_t by,
                                           const timespec* until) {
    if (hooked_fiber() != nullptr && pthreads_are_of_fibers())
        return lock_rwlock(*l, as_writer, {by, until});
    const int r = left_to_thread("pthread_rwlock_clockwrlock", __builtin_return_address(0),
                                 [=] { return real::pthread_rwlock_clockwrlock(l, by, until); });
    return no_longer_in_the_way(*l, r);
}
int in_fiber::pthread_rwlock_tryrdlock(pthread_rwlock_t* l) {
    pay(price::lock);
    if (!pthreads_are_of_fibers()) return real::pthread_rwlock_tryrdlock(l);
    return yields_to_writers(*l, as_reader) ? EBUSY : try_rwlock(*l, as_reader, *hooked_fiber());
}

int in_fiber::pthread_rwlock_trywrlock(pthread_rwlock_t* l) {
    pay(price::lock);
    if (!pthreads_are_of_fibers()) return real::pthread_rwlock_trywrlock(l);
    return try_rwlock(*l, as_writer, *hooked_fiber());
}

int everywhere::pthread_rwlock_unlock(pthread_rwlock_t* l) {
    // The writer is a fiber, and therefore the caller. libc takes the id of the fiber's thread for
    // the writer.
    if (writer_of(*l) < 0)
        set_writer(*l, static_cast<int>(real::syscall(SYS_gettid, 0, 0, 0, 0, 0, 0)));
    const bool writers_first = writers_go_first(*l);
    const int r = real::pthread_rwlock_unlock(l);
    wake_for_rwlock(l, writers_first);
    return r;
}

}  // namespace weft::hook
