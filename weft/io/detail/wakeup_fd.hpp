// wakeup_fd: the descriptor by which other threads end the sleep of a driver that waits for
// descriptors.
//
// Design: a word says whether the driver sleeps, so that a wake of a driver that is awake is one
// exchange and no system call, and is still remembered.
//
// Model: test/model/wakeup_fd_test.cpp
#pragma once

#include "weft/base/detail/atomic.hpp"

namespace weft::detail {

class wakeup_fd {
public:
    wakeup_fd();  // throws system_error
    wakeup_fd(const wakeup_fd&) = delete;
    ~wakeup_fd();

    int number() const noexcept { return number_; }

    // Any thread.
    void wake() noexcept {
        // Acquire and release: what was written before the wake, the sleeper sees after it.
        const unsigned char before = state_.exchange(woken, std::memory_order_acq_rel);
        // Relaxed: the exchange is in front of it, see always_tell().
        if (before == asleep || (before == awake && always_.load(std::memory_order_relaxed)))
            tell();
    }
    // Before a sleep: false if there was a wake already, and then do not sleep. Acquire and
    // release, here and below: pairs with wake().
    [[nodiscard]] bool begin_sleep() noexcept {
        return state_.exchange(asleep, std::memory_order_acq_rel) != woken;
    }
    // After it, or instead: whether there was a wake, which is then cleared.
    bool end_sleep() noexcept { return state_.exchange(awake, std::memory_order_acq_rel) == woken; }
    // Clears the wakes so far; the descriptor is then not readable, unless it was signalled
    // meanwhile. First the descriptor, and then the word: a wake in between signals the descriptor
    // without need, and none is lost. If each wake signals, one may be signalled twice, so then the
    // descriptor is always read.
    void clear() noexcept {
        // Relaxed, both: `always_` is the caller's own, and a wake that is missed signals the
        // descriptor without need.
        if (always_.load(std::memory_order_relaxed) ||
            state_.load(std::memory_order_relaxed) == woken)
            clear_fd();
        state_.exchange(awake, std::memory_order_acq_rel);  // pairs with wake()
    }
    // The descriptor was readable: clears it until the next wake.
    void drain() noexcept;
    // From now on every wake signals the descriptor, also one that came before: a foreign loop
    // sleeps on it.
    void always_tell() noexcept;

private:
    enum : unsigned char { awake, asleep, woken };

    void tell() noexcept;
    void clear_fd() noexcept;  // if it was signalled

    const int number_;
    atomic<unsigned char> state_{awake};
    atomic<bool> always_{false};
};

}  // namespace weft::detail
