// wake_fd: the descriptor by which other threads end the sleep of a driver that waits for
// descriptors.
//
// Its one idea: a word says whether the driver sleeps, so that a wake of one awake is one exchange
// and no system call, and is remembered all the same.
//
// Model: test/model/wake_fd_test.cpp
#pragma once

#include "weft/base/atomic.hpp"

namespace weft::detail {

class wake_fd {
public:
    wake_fd();  // throws system_error
    wake_fd(const wake_fd&) = delete;
    ~wake_fd();

    int number() const noexcept { return number_; }

    // Any thread.
    void wake() noexcept {
        // Acquire and release: what was written before the wake, the sleeper sees after it.
        const unsigned char before = state_.exchange(woken, std::memory_order_acq_rel);
        if (before == asleep || (before == awake && always_.load(std::memory_order_relaxed)))
            tell();
    }
    // Before a sleep: false if there was a wake already, and then do not sleep.
    [[nodiscard]] bool begin_sleep() noexcept {
        return state_.exchange(asleep, std::memory_order_acq_rel) != woken;
    }
    // After it, or instead: whether there was a wake, which is forgotten.
    bool end_sleep() noexcept { return state_.exchange(awake, std::memory_order_acq_rel) == woken; }
    // Forgets what has woken it so far; the descriptor is quiet then, unless it was told meanwhile.
    // First the descriptor, and then the word: a wake in between is told in vain, and none is
    // forgotten. Where each wake is told one may be told twice, so there it is always asked.
    void forget() noexcept {
        if (always_.load(std::memory_order_relaxed) ||
            state_.load(std::memory_order_relaxed) == woken)
            forget_told();
        state_.exchange(awake, std::memory_order_acq_rel);
    }
    // The descriptor has told of a wake: it is quiet until the next.
    void drain() noexcept;
    // From now on every wake is told, as is one that came before: a foreign loop sleeps on it.
    void always_tell() noexcept;

private:
    enum : unsigned char { awake, asleep, woken };

    void tell() noexcept;
    void forget_told() noexcept;  // if it was

    const int number_;
    atomic<unsigned char> state_{awake};
    atomic<bool> always_{false};
};

}  // namespace weft::detail
