// shared_seats: how many coroutines have a seat in a group of shared stacks, and where the next one
// gets its own.
//
// Its one idea: a coroutine is made on any thread and gives its seat up on the group's own, so both
// counts are one atomic word, and each change is one operation on it.
//
//      63          32 31           0
//     | seats given  | seats taken  |     4 billion at a time are more than memory has room for;
//                                         the upper half wraps around
//
// Model: test/model/shared_seats_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/atomic.hpp"

namespace weft::detail {

class shared_seats {
public:
    // Which of the stacks the new one is to share: they take turns. Relaxed: the caller holds the
    // group, and publishes the coroutine by other means.
    std::size_t take(std::size_t stack_count) noexcept {
        return (word_.fetch_add(one_given + 1, std::memory_order_relaxed) >> 32) % stack_count;
    }

    // Nothing of the group may be touched afterwards: this may be the last. Release: pairs with
    // taken(), whose caller may free what the coroutines used when it finds none.
    void give_up() noexcept { word_.fetch_sub(1, std::memory_order_release); }

    // Acquire: pairs with give_up().
    std::size_t taken() const noexcept {
        return static_cast<std::uint32_t>(word_.load(std::memory_order_acquire));
    }

private:
    static constexpr std::uint64_t one_given = std::uint64_t{1} << 32;

    atomic<std::uint64_t> word_{0};
};

}  // namespace weft::detail
