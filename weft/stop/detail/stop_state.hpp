// stop_state: the state word of a stop source: whether it is requested, why, and a lock.
//
//   bit   3        2 1 0
//         locked   reason, 0 while no stop is requested
//
// Design: reason and lock share a word. "Add unless requested" and "request unless requested" are
// one compare-and-swap each, and the check whether a stop was requested is one load.
//
// The lock is held for a few instructions and never while a callback runs. A thread that finds the
// lock taken spins briefly and then yields. A mutex would take forty bytes of a source that must
// fit into a cache line, and the system call of a futex would outlast the critical section.
//
// Invariants:
// I1  locked is set while one thread may touch what the lock guards; only that thread changes the
//     word then
// I2  the reason is written once and never changes again
//
// Model: test/model/stop_core_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/detail/atomic.hpp"
#include "weft/stop/stop_reason.hpp"

namespace weft::detail {

class stop_state {
public:
    // Acquire: with the release of lock_and_request, so that a thread that sees the request sees
    // what came before the request.
    stop_reason reason() const noexcept { return reason_of(word_.load(std::memory_order_acquire)); }

    // Whether the word is not locked and no stop is requested. Acquire: with the release of
    // unlock(), which is the last access of the thread that unlocks.
    bool is_untouched() const noexcept { return word_.load(std::memory_order_acquire) == 0; }

    // Takes the lock.
    void lock() noexcept { static_cast<void>(take(0, 0)); }

    // Takes the lock, or returns false if a stop is requested.
    [[nodiscard]] bool lock_unless_requested() noexcept { return take(0, reason_mask); }

    // Takes the lock and writes the reason: the caller must now call all callbacks. False if a stop
    // is requested already (I2).
    [[nodiscard]] bool lock_and_request(stop_reason reason) noexcept {
        return take(static_cast<std::uint32_t>(reason), reason_mask);
    }

    // Release: with the acquire of the next thread that takes the lock.
    void unlock() noexcept {
        word_.store(word_.load(std::memory_order_relaxed) & ~locked,  // relaxed: our own (I1)
                    std::memory_order_release);
    }

private:
    static constexpr std::uint32_t reason_mask = 7;
    static constexpr std::uint32_t locked = 8;

    static stop_reason reason_of(std::uint32_t word) noexcept {
        return static_cast<stop_reason>(word & reason_mask);
    }

    // Sets `locked` and the bits `set`, unless a bit of `refused` is set.
    bool take(std::uint32_t set, std::uint32_t refused) noexcept;

    atomic<std::uint32_t> word_{0};
};

}  // namespace weft::detail
