// idle_set: which of some workers sleep, and how many look for work: who is to be woken for what
// was put where anybody may take it.
//
// Its one idea: who is going to sleep says so first, and then looks once more (an eventcount whose
// sleepers have names, as each sleeps on a thing of its own). What was put before that look, he
// sees; who puts it later sees him, and claims him. Where somebody looks for work already, nobody
// is claimed: he will find it, or say that he goes to sleep and look once more.
//
//      worker                                     whoever has work
//
//      announce(i)                                queue.push(x)
//      if nothing anywhere:  sleep                if ((i = idle.claim()) != none) wake worker i
//      retract(i)
//
//   63      40 39         28 27        14 13      0
//   +---------+-------------+------------+---------+
//   |  epoch  |  searching  |  claiming  |  idle   |     and a bit of each that may be claimed
//   +---------+-------------+------------+---------+
//
// The fence between the two steps of each is an asymmetric_fence: to have work costs nothing beside
// a load, and to go to sleep a system call more.
//
// Who is claimed counts as one who searches, until he finds something (end_search) or announces
// himself again. At most half of the workers search, or one.
//
// Limit: 15 000 threads claim at the same moment.
//
// Model: test/model/idle_set_test.cpp
#pragma once

#include <bit>
#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/asymmetric_fence.hpp"
#include "weft/base/atomic.hpp"
#include "weft/base/platform.hpp"

namespace weft {

// Invariants:
// I1  a worker's bit is set from announce() until a claim or his retract() has cleared it: one of
//     the two does
// I2  `idle` counts the bits, and is changed after them; `searching` those who were claimed or
//     began by themselves, and have not ended it
// I3  `epoch` rises, modulo 2^24, with each bit that is cleared
// I4  `claiming` counts the claims under way: a claimed worker may be awake before I2 has it so
// I5  a claim that finds no bit has been told of none since it began to look: else all could come
//     to sleep beside it, and none of them be the one that sees that all are idle
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

    // Worker i, who searched or not, goes to sleep, once he has looked everywhere after this.
    void announce(unsigned i, bool searched) noexcept {
        // Release, both: who counts all idle sees what each did before.
        bits_[i / 64].fetch_or(bit(i), std::memory_order_release);        // I1
        state_.fetch_add(searched ? one_idle - one_searching : one_idle,  // I2
                         std::memory_order_acq_rel);
        asymmetric_fence::heavy();  // pairs with the light one of a claim
    }
    // He is awake, or did not sleep. False: he was claimed, and searches now.
    [[nodiscard]] bool retract(unsigned i) noexcept {
        // Acquire: pairs with the release of a claim.
        if ((bits_[i / 64].fetch_and(~bit(i), std::memory_order_acq_rel) & bit(i)) == 0)
            return false;  // I1
        // Acquire: pairs with is_still(). It carries the releases of announce() on.
        state_.fetch_add(one_epoch - one_idle, std::memory_order_acquire);  // I2, I3
        return true;
    }

    // Whether he may search.
    [[nodiscard]] bool begin_search() noexcept {
        word now = state_.load(std::memory_order_relaxed);
        do {
            if (searching_in(now) != 0 && (searching_in(now) + 1) * 2 > worker_count_) return false;
            // Relaxed: nothing is seen through it.
        } while (!state_.compare_exchange_weak(now, now + one_searching, std::memory_order_relaxed,
                                               std::memory_order_relaxed));
        return true;
    }
    // He has found something. True: nobody searches now, so that somebody should be claimed for
    // what others have put meanwhile.
    [[nodiscard]] bool end_search() noexcept {
        // Acquire and release: what he did is before what the next one claimed does.
        return searching_in(state_.fetch_sub(one_searching, std::memory_order_acq_rel)) == 1;
    }

    // After work was put somewhere: whom to wake for it, or none. Any thread.
    [[nodiscard]] unsigned claim() noexcept {
        fence_.light();  // pairs with the heavy one of announce()
        // Relaxed: the fence is in front of it.
        const word now = state_.load(std::memory_order_relaxed);
        if (idle_in(now) == 0 || searching_in(now) != 0) [[likely]]
            return none;
        return claim_any();
    }

    // Whether all are, and nobody is about to wake one; if it is still so at a second look, they
    // were so all the time between.
    struct snapshot {
        word state;
    };
    // Acquire: pairs with the releases of announce().
    snapshot look() const noexcept { return {state_.load(std::memory_order_acquire)}; }
    bool all_idle(snapshot s) const noexcept {
        return idle_in(s.state) == worker_count_ && claiming_in(s.state) == 0;  // I4
    }
    // The second look. A read-modify-write, and no load, which could give the word of before a
    // worker woke although the caller has read what that worker wrote since. Release: pairs with
    // retract() and claim_any(): what wakes after this look writes nothing that was read before it.
    // Acquire: as look().
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
        // Acquire: pairs with is_still(), before a bit is cleared; and, here and below, with
        // announce(), whose bit is seen then.
        word now = state_.fetch_add(one_claiming, std::memory_order_acquire) + one_claiming;  // I4
        do {
            for (unsigned n = 0; n * 64 < worker_count_; ++n) {
                // Relaxed: a hint, tested below.
                for (word set; (set = bits_[n].load(std::memory_order_relaxed)) != 0;) {
                    const unsigned i = n * 64 + static_cast<unsigned>(std::countr_zero(set));
                    if (retract_for_another(i)) return i;
                }
            }
        } while (!state_.compare_exchange_weak(now, now - one_claiming,  // I5
                                               std::memory_order_acquire,
                                               std::memory_order_acquire));
        return none;
    }
    bool retract_for_another(unsigned i) noexcept {
        // Acquire and release: pairs with retract().
        if ((bits_[i / 64].fetch_and(~bit(i), std::memory_order_acq_rel) & bit(i)) == 0)
            return false;  // I1
        // Relaxed: what is handed over goes by the bit. It carries the releases of announce() on.
        state_.fetch_add(one_epoch + one_searching - one_claiming - one_idle,
                         std::memory_order_relaxed);  // I2, I3
        return true;
    }

    alignas(cache_line_bytes) atomic<word> state_{0};
    atomic<word> bits_[most / 64] = {};
    const unsigned worker_count_;
    const asymmetric_fence fence_;
};

}  // namespace weft
