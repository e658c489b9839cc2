// stop_state: the state word of a stop source: whether it is requested, why, and a lock.
//
//   bit   3        2 1 0
//         locked   reason, 0 while nobody has requested a stop
//
// Its one idea: reason and lock share a word, so that "add unless requested" and "request if nobody
// has" are one compare-and-swap each, and asking whether a stop was requested is one load.
//
// The lock is held for a few instructions and never while a callback runs. Who finds it taken reads
// a few times more and then yields: a mutex would be forty bytes in a source that is to fit into a
// cache line, and a futex a system call for something that is over before it begins.
//
// Invariants:
// I1  locked is set while one thread may touch what the lock guards; only that thread changes the
//     word then
// I2  the reason is written once and never changes again
//
// Model: test/model/stop_core_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/atomic.hpp"

namespace weft {

// Why a stop was requested.
enum class stop_reason : unsigned char {
    none,            // it was not
    user,            // somebody asked for it
    deadline,        // the time is up
    sibling_failed,  // another party of the same scope ended with an error
    shutdown,        // the program ends
};

namespace detail {

class stop_state {
public:
    // Acquire: with the release of lock_and_request, so that who sees the request sees what came
    // before it.
    stop_reason reason() const noexcept { return reason_of(word_.load(std::memory_order_acquire)); }

    // Takes the lock.
    void lock() noexcept { static_cast<void>(take(0, 0)); }

    // Takes the lock, or returns false if a stop is requested.
    [[nodiscard]] bool lock_unless_requested() noexcept { return take(0, reason_mask); }

    // Takes the lock and writes the reason: the caller now owes the calling of all callbacks. False
    // if somebody was first (I2).
    [[nodiscard]] bool lock_and_request(stop_reason reason) noexcept {
        return take(static_cast<std::uint32_t>(reason), reason_mask);
    }

    // Release: with the acquire of the next one to take the lock.
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

}  // namespace detail
}  // namespace weft
