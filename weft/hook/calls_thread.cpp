// The ends of threads. A fiber first checks a few times whether the thread has ended. Then a thread
// of weft's own sleeps for the fiber where the system reports the end: on libc's word with the
// thread's id, which the system clears before it wakes one sleeper there. The fiber gets libc's own
// result. If the word is not found, the fiber checks again and again.
//
//      fiber                         thread of its own                   system, at the end
//      still running: begins ------> sleeps while the id is the same <------- id = 0, wakes one
//      parks               <-------- is done, unparks; wakes others that sleep there
//
// A stop does not end the wait: a joiner, such as a destructor, would go on as if the thread had
// ended. pthread_exit() ends the fiber that calls it (cancellation.hpp).
//
// Model: none, `over` is set once, and its waiter is in the parking lot.

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "weft/hook/detail/blocked.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/libc_mutex.hpp"
#include "weft/hook/detail/offloaded_call.hpp"
#include "weft/hook/detail/timed_park.hpp"

namespace weft::hook::in_fiber {
namespace {

// The system's id of a running thread, from the thread's CPU-time clock; 0: the thread has ended,
// or the clock is another one.
int number_of(pthread_t which) noexcept {
    clockid_t clock;
    constexpr int of_thread = 6;  // the three bits below the complement of the id
    if (real::pthread_getcpuclockid(which, &clock) != 0 || (clock & 7) != of_thread) return 0;
    return ~(clock >> 3);
}

// The offset from a thread's handle, its descriptor, to the word with its id; 0: not known.
std::ptrdiff_t place_of_number() noexcept {
    static const std::ptrdiff_t place = [] {
        const int* own = nullptr;
        if (::prctl(PR_GET_TID_ADDRESS, &own, 0, 0, 0) != 0 || own == nullptr)
            return std::ptrdiff_t{0};
        const auto from = static_cast<std::uintptr_t>(real::pthread_self());
        const auto at = reinterpret_cast<std::uintptr_t>(own);
        constexpr std::uintptr_t most = 4096;  // a descriptor is smaller
        const int number = ::gettid();
        const bool is_there = at > from && at - from < most && *own == number &&
                              number_of(real::pthread_self()) == number;
        return is_there ? static_cast<std::ptrdiff_t>(at - from) : std::ptrdiff_t{0};
    }();
    return place;
}

// The wait of a thread for the end of another. The waiting thread itself reads none of the other's
// memory, because that memory may be gone.
class thread_end_call final : public offloaded_call {
public:
    // `seen` is the id of a running thread.
    thread_end_call(const int* number, int seen) noexcept
        : number_(reinterpret_cast<long>(number)), seen_(seen) {}

    void run() noexcept override {
        // A request to end that comes just before the sleep is found after this time. Relaxed: it
        // stands for itself.
        constexpr timespec a_while = {10, 0};
        while (!asked_.load(std::memory_order_relaxed) &&
               (futex(FUTEX_WAIT, seen_, &a_while) == 0 || errno == EINTR || errno == ETIMEDOUT)) {
        }
        futex(FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr);
        over_.store(true, std::memory_order_seq_cst);  // pairs with the check of the parking lot
        unpark(this, 1);
    }
    void hurry() noexcept override {
        asked_.store(true, std::memory_order_relaxed);  // the thread is woken, or checks again
        futex(FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr);
    }
    bool is_told() const noexcept { return over_.load(std::memory_order_seq_cst); }

private:
    // Without the flag for private, because the system wakes without it.
    long futex(int operation, long value, const timespec* limit) const noexcept {
        return real::syscall(SYS_futex, number_, operation, value, reinterpret_cast<long>(limit), 0,
                             0);
    }

    const long number_;
    const long seen_;
    atomic<bool> asked_{false};
    atomic<bool> over_{false};
};

// Waits until the thread has ended or the deadline has come. False: the caller has to poll.
bool wait_for_end(pthread_t which, const clock_moment& until) {
    const std::ptrdiff_t place = place_of_number();
    if (place == 0 || !is_own_process()) return false;
    const auto* const number =
        reinterpret_cast<const int*>(which + static_cast<std::uintptr_t>(place));
    const int seen = number_of(which);
    if (seen == 0) return true;
    struct left_behind {
        thread_end_call* of;
        ~left_behind() {
            if (of == nullptr) return;
            if (!of->is_told()) of->hurry();
            of->release();
        }
    } const mine{new (std::nothrow) thread_end_call(number, seen)};
    if (mine.of == nullptr) return false;
    mine.of->keep();
    const bool begun = pool_of_waits().post([of = mine.of]() noexcept {
        of->run();
        of->release();
    });
    if (!begun) return mine.of->release(), false;
    // A request to cancel does not end such a wait: each slice is followed by a check.
    fiber_core& f = *fiber_here();
    const duration slice =
        f.has_cancel_record ? duration(std::chrono::milliseconds(20)) : std::chrono::seconds(10);
    for (;;) {
        leave_if_canceled(f);
        duration left = slice;
        if (until.at != nullptr) left = std::min(left, left_until_moment(until));
        if (left <= duration::zero()) return true;
        const parking how = {.what = "the end of a thread",
                             .deadline = after(now(), left),
                             .is_stopped = false,
                             .is_owned = true};
        if (park(mine.of, how, [&] { return !mine.of->is_told(); }) != unparked::timed_out)
            return true;
    }
}

int join_by_asking(pthread_t which, void** left, const clock_moment& until) {
    // A fiber's handle is odd and names no thread. A join of the caller's own handle, as a fiber or
    // as a thread, would wait for itself.
    if (::pthread_equal(which, ::pthread_self()) != 0 || which == real::pthread_self())
        return EDEADLK;
    if ((which & 1) != 0) return ESRCH;
    // libc refuses neither an invalid clock nor an invalid time, and waits forever.
    const bool is_timed = until.at != nullptr && !is_no_moment_of_waits(*until.at) &&
                          (until.by == CLOCK_REALTIME || until.by == CLOCK_MONOTONIC);
    const clock_moment end = {until.by, is_timed ? until.at : nullptr};
    auto pause = std::chrono::microseconds(0);
    for (;;) {
        leave_if_canceled(*fiber_here());
        int r = real::pthread_tryjoin_np(which, left);
        // Only this call reports that a thread is joined already; a thread that ends meanwhile can
        // be joined.
        clockid_t its_clock;
        if (r == EBUSY && real::pthread_getcpuclockid(which, &its_clock) == ESRCH)
            if ((r = real::pthread_tryjoin_np(which, left)) == EBUSY) return ESRCH;
        if (r != EBUSY) return r;
        if (is_timed && left_until_moment(until) <= duration::zero()) return ETIMEDOUT;
        // What libc reports at once is left to libc; for a thread that still runs, libc does not
        // report that the thread is detached.
        pthread_attr_t about;
        if (real::pthread_getattr_np(which, &about) == 0) {
            int detached = 0;
            ::pthread_attr_getdetachstate(&about, &detached);
            ::pthread_attr_destroy(&about);
            if (detached == PTHREAD_CREATE_DETACHED) return EINVAL;
        }
        if (pause.count() == 0)
            let_others_run();
        else if (!wait_for_end(which, end))
            wait_out(after(now(), pause));
        pause =
            std::clamp(2 * pause, std::chrono::microseconds(50), std::chrono::microseconds(2000));
    }
}

}  // namespace

int pthread_join(pthread_t which, void** left) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_join", __builtin_return_address(0),
                              [=] { return real::pthread_join(which, left); });

    return join_by_asking(which, left, {CLOCK_REALTIME, nullptr});
}

int pthread_timedjoin_np(pthread_t which, void** left, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_timedjoin_np", __builtin_return_address(0),
                              [=] { return real::pthread_timedjoin_np(which, left, until); });

    return join_by_asking(which, left, {CLOCK_REALTIME, until});
}

int pthread_clockjoin_np(pthread_t which, void** left, clockid_t by, const timespec* until) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_clockjoin_np", __builtin_return_address(0),
                              [=] { return real::pthread_clockjoin_np(which, left, by, until); });

    return join_by_asking(which, left, {by, until});
}

int thrd_join(thrd_t which, int* left) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("thrd_join", __builtin_return_address(0),
                              [=] { return real::thrd_join(which, left); });

    void* value = nullptr;
    const int r = join_by_asking(which, &value, {CLOCK_REALTIME, nullptr});
    if (r == 0 && left != nullptr) *left = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
    return r == 0 ? thrd_success : thrd_error;
}

void pthread_exit(void*) { leave_fiber(*fiber_here(), stop_reason::user); }

}  // namespace weft::hook::in_fiber
