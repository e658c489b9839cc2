// system_mutex, system_condition: what blocks a whole thread, by the system call itself.
//
// Design: weft's own locks stay below everything that may replace functions of libc. Where the
// mutexes of pthreads are hooked (weft/hook), a fiber that finds one taken is suspended; weft's own
// are locked where no flow can be suspended: in a wake, in the middle of a suspension, in the
// allocator of stacks. They are held for a few instructions, and the thread waits.
//
//      0  free  --lock-->  1  held  --another comes-->  2  held, and threads may sleep
//      ^------------------ unlock; from 2 it wakes one -----------------'
//
// The interface is that of std's own, as far as weft needs it, but that a wait with a time returns
// a bool: <condition_variable> is not read. Neither has a constructor that runs or a destructor
// that does anything, so that both serve while statics are made and destroyed.
//
//   weft::detail::system_mutex lock;
//   weft::detail::system_condition changed;
//   bool is_there = false;
//   std::unique_lock held(lock);
//   while (!is_there) changed.wait(held);
//
// Limits: one process; not recursive. A thread that may end a condition after the notification
// notifies it under the lock.
//
// Both are templates of the atomic that they are made of, for the checker alone: what it walks has
// its own mutexes (thread_mutex.hpp), and the code around a system_mutex never waits there.
//
// Model: test/model/system_mutex_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "weft/base/clock.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/futex.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

inline bool sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                     time_point until = never) noexcept {
    return futex_wait_at(&word, expected, until);
}
#if WEFT_MODEL
inline bool sleep_on(weft::atomic<std::uint32_t>& word, std::uint32_t expected,
                     time_point until = never) noexcept {
    return futex_wait(word, expected, until);
}
#endif

template <template <class> class Atomic>
class mutex_of_system {
public:
    constexpr mutex_of_system() noexcept = default;
    mutex_of_system(const mutex_of_system&) = delete;
    mutex_of_system& operator=(const mutex_of_system&) = delete;

    void lock() noexcept {
        if (!try_lock()) [[unlikely]]
            lock_slowly();
    }
    [[nodiscard]] bool try_lock() noexcept {
        std::uint32_t expected = 0;
        // Acquire: pairs with unlock(). Relaxed on failure: nothing is read.
        return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    // Release: pairs with lock(). The mutex may be gone when the sleeper is woken: its address is
    // all that this takes.
    void unlock() noexcept {
        if (word_.exchange(0, std::memory_order_release) == 2) [[unlikely]]
            futex_wake(&word_);
    }

private:
    WEFT_COLD void lock_slowly() noexcept {
        // The owner mostly unlocks before a sleep would have begun.
        constexpr int most_looks = WEFT_MODEL ? 1 : 64;
        for (int looks = 0; looks < most_looks; ++looks) {
            // Relaxed: only a hint when to try the exchange.
            if (word_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
            cpu_pause();
        }
        // Acquire: pairs with unlock().
        while (word_.exchange(2, std::memory_order_acquire) != 0) sleep_on(word_, 2);
    }

    Atomic<std::uint32_t> word_{0};
};

template <template <class> class Atomic>
class condition_of_system {
    using mutex = mutex_of_system<Atomic>;

public:
    constexpr condition_of_system() noexcept = default;
    condition_of_system(const condition_of_system&) = delete;
    condition_of_system& operator=(const condition_of_system&) = delete;

    void wait(std::unique_lock<mutex>& held) noexcept { wait_until(held, never); }
    // Whether it was notified, or woke for no reason, before the time.
    bool wait_until(std::unique_lock<mutex>& held, time_point until) noexcept {
        // Relaxed, both: the awaited condition is changed under the lock, which the caller has.
        sleepers_.fetch_add(1, std::memory_order_relaxed);
        const std::uint32_t seen = turn_.load(std::memory_order_relaxed);
        held.unlock();
        const bool in_time = sleep_on(turn_, seen, until);
        held.lock();
        sleepers_.fetch_sub(1, std::memory_order_relaxed);  // at worst a wake too many
        return in_time;
    }
    void notify_one() noexcept { notify(1); }
    void notify_all() noexcept { notify(1 << 30); }

private:
    void notify(int most) noexcept {
        // Relaxed: the futex compares `turn_` with what the sleeper has read under the lock.
        turn_.fetch_add(1, std::memory_order_relaxed);
        // A sleeper that is not counted yet comes after the change, under the lock, and sees it.
        if (sleepers_.load(std::memory_order_relaxed) != 0) futex_wake(&turn_, most);
    }

    Atomic<std::uint32_t> turn_{0};  // how many notifications there were
    Atomic<std::uint32_t> sleepers_{0};
};

using system_mutex = mutex_of_system<std::atomic>;
using system_condition = condition_of_system<std::atomic>;

}  // namespace weft::detail
