// home_lock: a spin lock that costs nothing while all its callers run on one executor.
//
// Design: an executor that takes the lock many times in a row becomes its owner. The owner locks by
// a plain store, and a check that it is still the owner. Any other thread ends the ownership first,
// and pays for the fence between that store and that check (asymmetric_fence.hpp). So the lock is
// for objects that live long and are mostly used on one thread, such as a channel or a table.
//
//      the owner                                 any other thread
//
//      inside = 1                                takes the spin lock
//      light fence                               owner = none
//      still the owner: locked                   heavy fence
//      else inside = 0, and as any other         waits until inside = 0: locked
//
// Only the executor that owned it first can own it again, each time after a longer streak: so an
// object that other threads take now and then does not pay for a fence each time.
//
// Limits: four words. Where the kernel has no membarrier, and under ThreadSanitizer, it is only a
// spin lock. As with a spin lock, the locked section does not wait, allocate or run foreign code.
//
//   weft::detail::home_lock lock;
//   const std::lock_guard held(lock);
//
// Invariants:
// H1  the owner is changed under the spin lock: to the executor that has it, or to none
// H2  `inside` is only ever written by one executor (`home`, fixed when it first owned the lock),
//     which runs on one thread at a time
// H3  a thread that has the spin lock, and after the heavy fence saw `inside` unset, is alone: the
//     executor sees that it is no longer the owner before it is inside again
// H4  `slow` is set while the lock is locked by a thread that has taken the spin lock
//
// Model: test/model/home_lock_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/detail/asymmetric_fence.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

class home_lock {
public:
    // Locks by one executor in a row before it owns the lock. They cost about as much as the fence.
    static constexpr std::uint32_t first_streak = WEFT_MODEL ? 1 : 256;
    static constexpr std::uint32_t streak_growth = WEFT_MODEL ? 1 : 16;

    home_lock() noexcept = default;
    home_lock(const home_lock&) = delete;
    home_lock& operator=(const home_lock&) = delete;

    WEFT_ALWAYS_INLINE void lock() noexcept {
        const void* const here = current_executor();
        // Relaxed: the owner wrote it itself; a thread that takes the ownership away waits. H3
        if (owner_.load(std::memory_order_relaxed) == here) {
            WEFT_DEBUG_ASSERT(!inside_.load(std::memory_order_relaxed),
                              "a lock is taken by what holds it");
            inside_.store(true, std::memory_order_relaxed);  // the light fence orders it
            fence_.light();
            // Relaxed: the fence is in front of it, and pairs with that of disown().
            if (owner_.load(std::memory_order_relaxed) == here) [[likely]]
                return;
            inside_.store(false, std::memory_order_release);  // as in unlock()
        }
        lock_slowly(here);
    }
    WEFT_ALWAYS_INLINE void unlock() noexcept {
        if (!slow_) [[likely]] {
            // Release: pairs with disown, which waits until `inside` is unset.
            inside_.store(false, std::memory_order_release);
        } else {
            slow_ = false;  // H4
            lock_.unlock();
        }
    }

    // A hint: whether locking costs the caller nothing now.
    bool is_owned_here() const noexcept {
        return owner_.load(std::memory_order_relaxed) == current_executor();
    }

private:
    const void* nobody() const noexcept { return this; }  // the address of no executor

    WEFT_NOINLINE void lock_slowly(const void* here) noexcept {
        lock_.lock();
        // Relaxed: it is written under the spin lock alone.
        if (owner_.load(std::memory_order_relaxed) != nobody()) [[unlikely]]
            disown();
        slow_ = true;  // H4: not before the owner is out
        if (home_ != here) {
            count_ = 0;
            if (!owned_before_) home_ = here;  // H2
        } else if (here != nullptr && ++count_ >= streak_ && fence_.is_free()) [[unlikely]] {
            count_ = 0;
            owned_before_ = true;
            owner_.store(here, std::memory_order_relaxed);  // H1
        }
    }
    WEFT_COLD void disown() noexcept {
        owner_.store(nobody(), std::memory_order_relaxed);  // the heavy fence orders it
        asymmetric_fence::heavy();
        // Acquire: pairs with unlock. H3
        for (spin_wait w; inside_.load(std::memory_order_acquire);) w.once();
        count_ = 0;
        if (streak_ <= UINT32_MAX / streak_growth) streak_ *= streak_growth;
    }

    atomic<const void*> owner_{this};
    const void* home_ = nullptr;  // H2; this and the next three are guarded by the spin lock
    std::uint32_t count_ = 0;     // locks by `home_` in a row
    std::uint32_t streak_ = first_streak;
    bool owned_before_ = false;   // `home` no longer changes
    bool slow_ = false;           // H4; guarded by this lock itself
    atomic<bool> inside_{false};  // H2
    const asymmetric_fence fence_;
    spin_lock lock_;
};

}  // namespace weft::detail
