// shared_seats: counts the coroutines that have a seat in a group of shared stacks, and assigns the
// stack of the next one.
//
// Design: a coroutine may be made on any thread and may release its seat on any, but mostly both
// happen on the thread that made the group. That thread has a word of its own, which no other
// thread writes, and changes it without a locked instruction; all other threads share a second
// word. The count is the sum of both: a seat taken in one word may be released in the other.
//
//      63          32 31           0
//     | seats given  | seats taken  |     each "taken" starts at half of its range, so that neither
//                                         overflows; the upper half wraps around
//
// Invariants:
// E1  a word does not return to an earlier value during a read: each seat that is taken changes its
//     upper half, and until then the lower half only decreases
//
// Model: test/model/shared_seats_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/detail/atomic.hpp"

namespace weft::detail {

class shared_seats {
    using word = std::uint64_t;

public:
    // A thread is identified by an address that no other live thread has.
    shared_seats(std::size_t stack_count, const void* maker) noexcept
        : stack_count_(static_cast<std::uint32_t>(stack_count)), maker_(maker) {}

    // Returns the index of the stack that the new coroutine shares: the maker's seats go round the
    // stacks, and so do the others'. The maker's store is a release, as the one of give_up(),
    // because it may be read in place of that one: pairs with taken(). The addition need not be a
    // release: it continues the release sequence of the give_up() before it.
    std::size_t take(const void* thread) noexcept {
        word before;
        if (thread == maker_) {
            // Relaxed: only the maker writes it. Release: pairs with taken(), as said above.
            before = makers_.load(std::memory_order_relaxed);
            makers_.store(before + one_given + 1, std::memory_order_release);
        } else {
            // Relaxed: as said above.
            before = others_.fetch_add(one_given + 1, std::memory_order_relaxed);
        }
        return static_cast<std::uint32_t>(before >> 32) % stack_count_;
    }

    // The caller may not access the group afterwards: this may be the last seat. Release: pairs
    // with taken(), whose caller may free the coroutines' memory once it reads 0.
    void give_up(const void* thread) noexcept {
        if (thread == maker_)
            makers_.store(makers_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
        else
            others_.fetch_sub(1, std::memory_order_release);
    }

    // A consistent snapshot of both words. Acquire: pairs with give_up(); and if a seat was
    // released in one word, its taking in the other word is seen.
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
