// idle_set: which of some workers sleep, and how many search for work; selects the worker to wake
// for work that any worker may take.
//
// Design: a worker announces that it is about to sleep and then checks all queues once more (an
// eventcount whose sleepers have names, because each sleeps on an object of its own). The worker
// sees work that was put before that check; a producer that puts work later sees the worker, and
// claims it. While a worker searches already, no worker is claimed: the searching worker will find
// the work, or will announce itself and check once more.
//
//      worker                                     producer of work
//
//      announce(i)                                queue.push(x)
//      if nothing anywhere:  sleep                if ((i = idle.claim()) != none) wake worker i
//      retract(i)
//
//   63      40 39         28 27        14 13      0
//   +---------+-------------+------------+---------+
//   |  epoch  |  searching  |  claiming  |  idle   |     and a bit for each worker: may be claimed
//   +---------+-------------+------------+---------+
//
// The fence between the two steps of each side is an asymmetric_fence: a producer pays nothing
// beside a load, and a worker that goes to sleep pays one more system call.
//
// A claimed worker counts as searching until it finds work (end_search) or announces itself again.
// At most half of the workers search, or one.
//
// Limit: 15 000 threads claim at the same time.
//
// Model: test/model/idle_set_test.cpp
#pragma once

#include <bit>
#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/detail/asymmetric_fence.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/platform.hpp"

namespace weft::detail {

// Invariants:
// I1  a worker's bit is set from announce() until a claim or the worker's retract() has cleared
//     it: exactly one of the two does
// I2  `idle` counts the bits, and is changed after them; `searching` counts the workers that were
//     claimed or began a search by themselves, and have not ended it
// I3  `epoch` rises, modulo 2^24, with each bit that is cleared
// I4  `claiming` counts the claims in progress: a claimed worker may be awake before the counters
//     of I2 show it
// I5  a claim returns none only if state_ has not changed since its scan began: otherwise all
//     workers could go to sleep during the claim, and none of them would see that all are idle
class idle_set {
    using word = std::uint64_t;

public:
    static constexpr unsigned most = 1024;  // workers
    static constexpr unsigned none = ~0u;

    explicit idle_set(unsigned worker_count, asymmetric_fence fence = {}) noexcept
        : worker_count_(worker_count), fence_(fence) {
        WEFT_ASSERT(worker_count <= most, "idle_set: too many workers");
    }
    idle_set(const idle_set&) = delete;
    idle_set& operator=(const idle_set&) = delete;

    // Worker i, which `searched` or not, goes to sleep after it has checked all queues once more.
    void announce(unsigned i, bool searched) noexcept {
        // Release, both: a thread that counts all workers idle sees what each did before.
        bits_[i / 64].fetch_or(bit(i), std::memory_order_release);        // I1
        state_.fetch_add(searched ? one_idle - one_searching : one_idle,  // I2
                         std::memory_order_acq_rel);
        asymmetric_fence::heavy();  // pairs with the light one of a claim
    }
    // Worker i is awake, or did not sleep. False: the worker was claimed, and searches now.
    [[nodiscard]] bool retract(unsigned i) noexcept {
        // Acquire: pairs with the release of a claim.
        if ((bits_[i / 64].fetch_and(~bit(i), std::memory_order_acq_rel) & bit(i)) == 0)
            return false;  // I1
        // Acquire: pairs with is_still(). The read-modify-write continues the releases of
        // announce().
        state_.fetch_add(one_epoch - one_idle, std::memory_order_acquire);  // I2, I3
        return true;
    }

    // Whether a worker may begin to search.
    [[nodiscard]] bool begin_search() noexcept {
        word now = state_.load(std::memory_order_relaxed);  // tested by the exchange
        do {
            if (searching_in(now) != 0 && (searching_in(now) + 1) * 2 > worker_count_) return false;
            // Relaxed: nothing is seen through it.
        } while (!state_.compare_exchange_weak(now, now + one_searching, std::memory_order_relaxed,
                                               std::memory_order_relaxed));
        return true;
    }
    // A searching worker has found work. True: no worker searches now, so a worker should be
    // claimed for the work that others have put meanwhile.
    [[nodiscard]] bool end_search() noexcept {
        // Acquire and release: what this worker did is before what the next claimed worker does.
        return searching_in(state_.fetch_sub(one_searching, std::memory_order_acq_rel)) == 1;
    }

    // Called after work was put: returns the worker to wake for the work, or none. Any thread.
    [[nodiscard]] unsigned claim() noexcept {
        fence_.light();  // pairs with the heavy one of announce()
        // Relaxed: the fence is in front of it.
        const word now = state_.load(std::memory_order_relaxed);
        if (idle_in(now) == 0 || searching_in(now) != 0) [[likely]]
            return none;
        return claim_any();
    }

    // Shows whether all workers are idle and no claim is in progress. If is_still() confirms the
    // snapshot later, all were idle the whole time between.
    struct snapshot {
        word state;
    };
    // Acquire: pairs with the releases of announce().
    snapshot look() const noexcept { return {state_.load(std::memory_order_acquire)}; }
    bool all_idle(snapshot s) const noexcept {
        return idle_in(s.state) == worker_count_ && claiming_in(s.state) == 0;  // I4
    }
    // Confirms a snapshot. A read-modify-write and not a load: a load could return the word from
    // before a worker woke, although the caller has read what that worker wrote since. Release:
    // pairs with retract() and claim_any(): a worker that wakes after this check writes nothing
    // that was read before the check. Acquire: as look().
    [[nodiscard]] bool is_still(snapshot s) noexcept {
        return state_.fetch_add(0, std::memory_order_acq_rel) == s.state;
    }

    unsigned searching_count() const noexcept { return searching_in(look().state); }
    unsigned idle_count() const noexcept { return idle_in(look().state); }

private:
    static constexpr word one_idle = 1;
    static constexpr word one_claiming = word{1} << 14;
    static constexpr word one_searching = word{1} << 28;
    static constexpr word one_epoch = word{1} << 40;

    static unsigned idle_in(word w) noexcept { return static_cast<unsigned>(w & 0x3fff); }
    static unsigned claiming_in(word w) noexcept { return static_cast<unsigned>(w >> 14 & 0x3fff); }
    static unsigned searching_in(word w) noexcept { return static_cast<unsigned>(w >> 28 & 0xfff); }
    static word bit(unsigned i) noexcept { return word{1} << i % 64; }

    WEFT_NOINLINE unsigned claim_any() noexcept {
        // Acquire: pairs with is_still(), before a bit is cleared; here and below, pairs with
        // announce() too, so that its bit is seen.
        word now = state_.fetch_add(one_claiming, std::memory_order_acquire) + one_claiming;  // I4
        do {
            for (unsigned n = 0; n * 64 < worker_count_; ++n) {
                // Relaxed: a hint, tested below.
                for (word set; (set = bits_[n].load(std::memory_order_relaxed)) != 0;) {
                    const unsigned i = n * 64 + static_cast<unsigned>(std::countr_zero(set));
                    if (retract_for_another(i)) return i;
                }
            }
            // Acquire, both: pairs with announce(), as said above.
        } while (!state_.compare_exchange_weak(now, now - one_claiming,  // I5
                                               std::memory_order_acquire,
                                               std::memory_order_acquire));
        return none;
    }
    bool retract_for_another(unsigned i) noexcept {
        // Acquire and release: pairs with retract().
        if ((bits_[i / 64].fetch_and(~bit(i), std::memory_order_acq_rel) & bit(i)) == 0)
            return false;  // I1
        // Relaxed: the bit orders what is passed to the worker. The read-modify-write continues the
        // releases of announce().
        state_.fetch_add(one_epoch + one_searching - one_claiming - one_idle,
                         std::memory_order_relaxed);  // I2, I3
        return true;
    }

    alignas(cache_line_bytes) atomic<word> state_{0};
    atomic<word> bits_[most / 64] = {};
    const unsigned worker_count_;
    const asymmetric_fence fence_;
};

}  // namespace weft::detail
