// home_lock: a spin lock that costs nothing while all that take it run on one executor.
//
// Its one idea: an executor that has taken it so often in a row owns it. The owner takes it by a
// plain store, and a look whether it is the owner still. Any other ends the ownership first, and
// pays for the fence between that store and that look (asymmetric_fence.hpp): so it is for what
// lives long and is mostly used on one thread, such as a channel or a table.
//
//      the owner                                 any other
//
//      inside = 1                                takes the spin lock
//      light fence                               owner = nobody
//      owner is still this one: it has it        heavy fence
//      else inside = 0, and as any other         waits until inside = 0: it has it
//
// Only the executor that was the first to own it owns it again, and then after a streak that is
// longer each time: what others take now and then does not pay for a fence each time.
//
// Limits: three words. Where the kernel has no membarrier, and under ThreadSanitizer, it is a spin
// lock and nothing else. As in one, no holder waits, allocates or runs another's code.
//
//   weft::home_lock lock;
//   const std::lock_guard held(lock);
//
// Invariants:
// H1  the owner is changed under the spin lock: to its holder, or to nobody
// H2  `inside` is written by one executor for ever (`home`, from when it first owned it), which
//     runs on one thread at a time
// H3  a holder of the spin lock that saw, after the heavy fence, nobody inside is alone: the
//     executor sees that it is not the owner, before it is inside again
// H4  `slow` is set while the lock is held by a thread that has taken the spin lock
//
// Model: test/model/home_lock_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/asymmetric_fence.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/base/spin_wait.hpp"
#include "weft/wait/flow.hpp"

namespace weft {

class home_lock {
public:
    // Of locks of one executor in a row, before it owns it. The fence is about as much.
    static constexpr std::uint32_t first_streak = WEFT_MODEL ? 1 : 256;
    static constexpr std::uint32_t streak_growth = WEFT_MODEL ? 1 : 16;

    home_lock() noexcept = default;
    home_lock(const home_lock&) = delete;
    home_lock& operator=(const home_lock&) = delete;

    WEFT_ALWAYS_INLINE void lock() noexcept {
        const void* const here = current_executor();
        // Relaxed: the owner has written it itself; another that takes it away waits. H3
        if (owner_.load(std::memory_order_relaxed) == here) {
            WEFT_DEBUG_ASSERT(!inside_.load(std::memory_order_relaxed),
                              "a lock is taken by what holds it");
            inside_.store(true, std::memory_order_relaxed);  // the light fence orders it
            fence_.light();
            if (owner_.load(std::memory_order_relaxed) == here) [[likely]]
                return;
            inside_.store(false, std::memory_order_release);
        }
        lock_slowly(here);
    }
    WEFT_ALWAYS_INLINE void unlock() noexcept {
        if (!slow_) [[likely]] {
            // Release: pairs with disown, which waits until nobody is inside.
            inside_.store(false, std::memory_order_release);
        } else {
            slow_ = false;  // H4
            lock_.unlock();
        }
    }

    // A glance: whether it costs the caller nothing now.
    bool is_owned_here() const noexcept {
        return owner_.load(std::memory_order_relaxed) == current_executor();
    }

private:
    const void* nobody() const noexcept { return this; }  // which is no executor

    WEFT_NOINLINE void lock_slowly(const void* here) noexcept {
        lock_.lock();
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
        for (detail::spin_wait w; inside_.load(std::memory_order_acquire);) w.once();
        count_ = 0;
        if (streak_ <= UINT32_MAX / streak_growth) streak_ *= streak_growth;
    }

    atomic<const void*> owner_{this};
    const void* home_ = nullptr;  // H2; this and the next three: of the spin lock's holder
    std::uint32_t count_ = 0;     // so many in a row of `home_`
    std::uint32_t streak_ = first_streak;
    bool owned_before_ = false;   // `home` does not change any more
    bool slow_ = false;           // H4; of the holder
    atomic<bool> inside_{false};  // H2
    const asymmetric_fence fence_;
    spin_lock lock_;
};

}  // namespace weft
