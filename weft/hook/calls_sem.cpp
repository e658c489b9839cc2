// Semaphores of POSIX. The value is libc's word, which a fiber takes from by libc's own
// sem_trywait; where it would wait it parks at the address. Threads are left to libc: they sleep in
// the kernel.
//
// sem_post may be called by a signal handler, so that it takes no lock and wakes no fiber itself:
// what it has interrupted may be in the midst of either. It adds to the word as ever, and if fibers
// wait there it leaves a count for a thread of weft's own, the bell:
//
//      a fiber that waits       sem_post                       the bell
//      place: address, one      real::sem_post: the word       sleeps on `rings`
//        more waits             fence                          counts -> 0; wakes as many fibers
//      fence                    place of the address? its        that are parked at the address
//      parks unless it can        count, the set's bit,
//        take from the word       `rings`, futex_wake
//
// A place belongs to an address as long as a fiber waits there. Fibers alone give and take places,
// under a lock; a post reads them. One that counts for an address whose place has gone to another
// wakes a fiber for no reason, which looks again. Where no place is free, and for a semaphore that
// is shared between processes, a fiber asks again and again.
//
// Model: none, a store and a look on both sides with a fence between, as the parking lot has it.

#include <semaphore.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>

#include "weft/base/asymmetric_fence.hpp"
#include "weft/base/futex.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/hook/blocked.hpp"
#include "weft/hook/calls.hpp"
#include "weft/hook/in_process.hpp"
#include "weft/hook/interruption.hpp"
#include "weft/hook/libc_mutex.hpp"
#include "weft/hook/opening.hpp"
#include "weft/hook/stops.hpp"
#include "weft/hook/timed_park.hpp"
#include "weft/sched/detached_thread.hpp"

namespace weft::hook {
namespace {

constexpr std::size_t bell_sets = 256;
constexpr std::size_t bell_ways = 8;

struct bell_place {
    atomic<const void*> address{nullptr};
    atomic<std::uint32_t> posts{0};
    std::uint32_t fibers = 0;  // under the set's lock
};
struct bell_set {
    spin_lock lock;
    bell_place places[bell_ways];
};
constinit bell_set bell_board[bell_sets];
constinit atomic<std::uint64_t> bell_marks[bell_sets / 64];  // sets that have a count
constinit atomic<std::uint32_t> bell_rings{0};
constinit atomic<bool> bell_stands{false};

std::size_t set_of(const void* address) noexcept {
    constexpr std::uint64_t golden = 0x9E37'79B9'7F4A'7C15;
    static_assert(bell_sets == 1u << 8);
    return reinterpret_cast<std::uintptr_t>(address) * golden >> (64 - 8);
}

// Async-signal-safe. After a store to what is waited for.
void ring_bell(const void* address) noexcept {
    weft::detail::full_fence();
    const std::size_t set = set_of(address);
    for (bell_place& p : bell_board[set].places) {
        if (p.address.load(std::memory_order_seq_cst) != address) continue;
        p.posts.fetch_add(1, std::memory_order_relaxed);
        // Release, both: the bell that sees them sees the count.
        bell_marks[set / 64].fetch_or(std::uint64_t{1} << set % 64, std::memory_order_release);
        bell_rings.fetch_add(1, std::memory_order_release);
        weft::detail::futex_wake(&bell_rings);
        return;
    }
}

void answer_set(bell_set& s) noexcept {
    for (bell_place& p : s.places) {
        if (p.posts.load(std::memory_order_relaxed) == 0) continue;
        const std::uint32_t n = p.posts.exchange(0, std::memory_order_acq_rel);
        if (const void* const at = p.address.load(std::memory_order_seq_cst)) unpark(at, n);
    }
}

void stand_at_bell(void*) noexcept {
    for (;;) {
        const std::uint32_t seen = bell_rings.load(std::memory_order_acquire);
        for (std::size_t i = 0; i < std::size(bell_marks); ++i)
            for (std::uint64_t marks = bell_marks[i].exchange(0, std::memory_order_acq_rel);
                 marks != 0; marks &= marks - 1)
                answer_set(bell_board[64 * i + static_cast<std::size_t>(std::countr_zero(marks))]);
        weft::detail::futex_wait(bell_rings, seen);
    }
}

// Its thread is not the child's, and the waiters are in the parent.
__attribute__((constructor(101))) void forget_bell_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] {
        for (bell_set& s : bell_board) new (&s) bell_set;
        bell_stands.store(false, std::memory_order_relaxed);
    });
}

bool bell_is_there() noexcept {
    if (bell_stands.load(std::memory_order_acquire)) return true;
    // The second caller goes on: what it rings for meanwhile is counted.
    if (bell_stands.exchange(true, std::memory_order_acq_rel)) return true;
    if (weft::detail::begin_detached_thread(stand_at_bell, nullptr)) return true;
    bell_stands.store(false, std::memory_order_release);
    return false;
}

// Of a fiber that waits.
class bell_rope {
public:
    explicit bell_rope(const void* address) noexcept : set_(bell_board[set_of(address)]) {
        if (!bell_is_there()) return;
        const std::lock_guard held(set_.lock);
        bell_place* free = nullptr;
        for (bell_place& p : set_.places) {
            if (p.fibers == 0 && free == nullptr) free = &p;
            if (p.fibers == 0 || p.address.load(std::memory_order_relaxed) != address) continue;
            free = &p;
            break;
        }
        if (free == nullptr) return;
        place_ = free;
        if (place_->fibers++ == 0) place_->address.store(address, std::memory_order_seq_cst);
    }
    bell_rope(const bell_rope&) = delete;
    bell_rope& operator=(const bell_rope&) = delete;
    ~bell_rope() {
        if (place_ == nullptr) return;
        const std::lock_guard held(set_.lock);
        if (--place_->fibers == 0) place_->address.store(nullptr, std::memory_order_relaxed);
    }
    explicit operator bool() const noexcept { return place_ != nullptr; }

private:
    bell_set& set_;
    bell_place* place_ = nullptr;
};

#if defined(__GLIBC__) && __SIZEOF_POINTER__ == 8
// glibc's: the value and the threads that wait, in 8 bytes, and then whether it is shared.
bool is_shared_semaphore(const sem_t* s) noexcept {
    int shared;
    std::memcpy(&shared, reinterpret_cast<const char*>(s) + 8, sizeof shared);
    return shared != 0;
}
#else
bool is_shared_semaphore(const sem_t*) noexcept { return true; }
#endif

// 0, or a number of errno.
int take_by_asking(sem_t* s, const clock_moment& until, const interruptible& here) {
    auto pause = std::chrono::microseconds(0);
    for (;;) {
        if (real::sem_trywait(s) == 0) return 0;
        if (errno != EAGAIN) return errno;
        if (here.is_over()) return EINTR;
        if (until.at != nullptr && left_until_moment(until) <= duration::zero()) return ETIMEDOUT;
        if (pause.count() == 0)
            let_others_run();
        else if (const int why = hook::until(after(now(), pause), ended_by::what_is_said_around_it);
                 why != 0)
            return why;
        pause =
            std::clamp(2 * pause, std::chrono::microseconds(50), std::chrono::microseconds(2000));
    }
}

// A stop says what is chosen for it, and may unwind.
int why_stopped_here() {
    const fiber_core* const f = fiber_here();
    const bool is_late = f != nullptr && f->pending_stop() == stop_reason::deadline;
    return answer_to_stop(is_late ? ETIMEDOUT : ECANCELED);
}

int take_unit(sem_t* s, const clock_moment& until) {
    if (until.at != nullptr && (is_no_moment_of_waits(*until.at) ||
                                (until.by != CLOCK_REALTIME && until.by != CLOCK_MONOTONIC)))
        return EINVAL;
    if (real::sem_trywait(s) == 0) return 0;
    if (errno != EAGAIN) return errno;
    const interruptible here(ended_by::plain_handler);
    if (is_shared_semaphore(s)) return take_by_asking(s, until, here);
    const bell_rope rope(s);
    if (!rope) return take_by_asking(s, until, here);
    parking how{.what = "a semaphore",
                .abandoned = [](const void* at, bool) noexcept { unpark(at, 1); }};
    for (;;) {
        const auto still = [s]() noexcept { return real::sem_trywait(s) != 0; };
        const unparked end = park_until(s, how, until, still);
        if (end == unparked::refused) return 0;
        if (end == unparked::timed_out) return ETIMEDOUT;
        if (end == unparked::stopped) {
            // One that was woken before is all that was told of a unit: it does not wait for that.
            if (how.first && real::sem_trywait(s) == 0) return 0;
            return here.is_over() ? EINTR : why_stopped_here();
        }
        how.first = true;
    }
}

int answer_of_take(sem_t* s, const clock_moment& until) {
    const int before = errno;
    const int why = take_unit(s, until);
    errno = why != 0 ? why : before;
    return why != 0 ? -1 : 0;
}

}  // namespace

int in_fiber::sem_wait(sem_t* s) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("sem_wait", __builtin_return_address(0),
                              [=] { return real::sem_wait(s); });
    return answer_of_take(s, {CLOCK_REALTIME, nullptr});
}

int in_fiber::sem_timedwait(sem_t* s, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("sem_timedwait", __builtin_return_address(0),
                              [=] { return real::sem_timedwait(s, until); });

    return answer_of_take(s, {CLOCK_REALTIME, until});
}

int in_fiber::sem_clockwait(sem_t* s, clockid_t by, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("sem_clockwait", __builtin_return_address(0),
                              [=] { return real::sem_clockwait(s, by, until); });

    return answer_of_take(s, {by, until});
}

int everywhere::sem_post(sem_t* s) {
    const int r = real::sem_post(s);
    if (r == 0) ring_bell(s);
    return r;
}

}  // namespace weft::hook
