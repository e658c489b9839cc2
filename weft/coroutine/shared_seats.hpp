// shared_seats: how many coroutines have a seat in a group of shared stacks, and where the next one
// gets its own.
//
// Its one idea: a coroutine is made on any thread and gives its seat up on any, but mostly both on
// the thread that made the group. That thread has a word to itself, which no other thread
// writes, and changes it without a locked instruction; all others share a second one. What is
// counted is the sum: what was taken in the one word may be given up in the other.
//
//      63          32 31           0
//     | seats given  | seats taken  |     each begins at half of what it can count, so that neither
//                                         overflows; the upper half wraps around
//
// Invariants:
// E1  a word never has the same value again while it is looked at: each seat changes its upper
//     half, and until then the lower one only falls
//
// Model: test/model/shared_seats_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/atomic.hpp"

namespace weft::detail {

class shared_seats {
    using word = std::uint64_t;

public:
    // A thread is named by an address that no other living thread has.
    shared_seats(std::size_t stack_count, const void* maker) noexcept
        : stack_count_(static_cast<std::uint32_t>(stack_count)), maker_(maker) {}

    // Which of the stacks the new one is to share: those of the maker take turns, and the others'
    // do. The maker's store is a release as that of give_up() is, in whose place it may be seen:
    // pairs with taken(). An addition need not be one, it goes on with the give_up() before it.
    std::size_t take(const void* thread) noexcept {
        word before;
        if (thread == maker_) {
            before = makers_.load(std::memory_order_relaxed);
            makers_.store(before + one_given + 1, std::memory_order_release);
        } else {
            before = others_.fetch_add(one_given + 1, std::memory_order_relaxed);
        }
        return static_cast<std::uint32_t>(before >> 32) % stack_count_;
    }

    // Nothing of the group may be touched afterwards: this may be the last. Release: pairs with
    // taken(), whose caller may free what the coroutines used when it finds none.
    void give_up(const void* thread) noexcept {
        if (thread == maker_)
            makers_.store(makers_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
        else
            others_.fetch_sub(1, std::memory_order_release);
    }

    // As they were at one moment. Acquire: pairs with give_up(); and of a seat that was given up in
    // the one word it is seen that it was taken in the other.
    std::size_t taken() const noexcept {
        for (word makers = makers_.load(std::memory_order_acquire);;) {
            const word others = others_.load(std::memory_order_acquire);
            const word again = makers_.load(std::memory_order_acquire);
            if (again == makers) return static_cast<std::uint32_t>(makers + others);  // E1
            makers = again;
        }
    }

private:
    static constexpr word one_given = word{1} << 32;
    static constexpr word none = word{1} << 31;

    const std::uint32_t stack_count_;
    const void* const maker_;
    atomic<word> makers_{none};
    atomic<word> others_{none};
};

}  // namespace weft::detail
