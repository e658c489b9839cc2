// release_unused: how an idle thread returns memory that the process keeps for later and does not
// use.
//
// Design: each keeper of memory (stacks, blocks) registers here, once, and a loop that has nothing
// to run calls all of them before it sleeps. Each returns a little of what has been unused, and
// answers when it is to be called again. So a loop knows nothing of stacks, and acquire and release
// know nothing of loops.
//
//      loop, before it sleeps ---> release_unused(now) ---> [stacks] ---> [blocks] ---> ...
//           sleeps until then <--- the earliest time point that one of them has named, or never
//
// A keeper is called often and by many threads at once, so it answers `never` without a lock when
// it has nothing to spare. It returns what its stock has not come below for a period: `unused`
// counts how much that is.
//
// Model: test/model/release_unused_test.cpp
//
//   constinit detail::memory_keeper stacks{release_unused_stacks};
//   stacks.enter();                                          // where the first stack is kept
#pragma once

#include <cstddef>

#include "weft/base/clock.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/min_max.hpp"

namespace weft::detail {

// An idle program wakes no more often than this to give back.
inline constexpr duration unused_period = std::chrono::seconds(1);

// A keeper of memory. It exists as long as the process.
class memory_keeper {
public:
    // Gives back a part of what is spare, in some hundred microseconds at most: what belongs to the
    // calling thread, and what belongs to the process. Returns the time point at which the keeper
    // is to be asked again: `now`, where more could go at once; never, where nothing is to spare.
    // Any thread.
    using function = time_point (*)(time_point now) noexcept;

    constexpr explicit memory_keeper(function f) noexcept : release_unused_(f) {}
    memory_keeper(const memory_keeper&) = delete;
    memory_keeper& operator=(const memory_keeper&) = delete;

    // Registers the keeper; only the first call has an effect. Any thread.
    void enter() noexcept;

private:
    friend class keeper_chain;

    const function release_unused_;
    atomic<bool> entered_{false};
    memory_keeper* next_ = nullptr;  // written before the keeper is in the chain
};

// The registered keepers; the process has one.
class keeper_chain {
public:
    void enter(memory_keeper&) noexcept;
    time_point release_unused(time_point now) const noexcept;

private:
    atomic<memory_keeper*> first_{nullptr};
};

// Calls every keeper, and returns the earliest time point of their answers. Any thread.
time_point release_unused(time_point now) noexcept;

// How much of a stock has not been used for a period. Guarded by what guards the stock.
//
// Invariants:
// U1  lowest_ is the least that the stock came down to since the period began
class unused {
public:
    // The stock has come down to `left`.
    void taken(std::size_t left) noexcept { lowest_ = min_of(lowest_, left); }  // U1

    // How many of the stock of `count` may go now. At the end of each period half of what was never
    // used in it may, and at least `least` if so many were unused: a burst that comes again finds
    // the rest, and nothing is kept for ever.
    std::size_t spare(time_point now, std::size_t count, std::size_t least) noexcept {
        lowest_ = min_of(lowest_, count);
        if (now >= period_end_) {
            spare_ = min_of(max_of(lowest_ / 2, least), lowest_);
            lowest_ = count;
            period_end_ = after(now, unused_period);
        }
        return spare_ = min_of(spare_, lowest_);
    }
    // So many of them have been returned.
    void given(std::size_t n) noexcept {
        spare_ -= min_of(n, spare_);
        lowest_ -= min_of(n, lowest_);
    }
    // When to call again, for a stock with something in it.
    time_point next(time_point now) const noexcept { return spare_ != 0 ? now : period_end_; }

private:
    std::size_t lowest_ = 0;
    std::size_t spare_ = 0;
    time_point period_end_ = time_point::min();
};

}  // namespace weft::detail
