// memory: the values that the loads of one execution may read, and the plain accesses that nothing
// orders.
//
// Design: each atomic stores all its values, in order. A thread's view holds, for each atomic, the
// oldest value that the thread may still read: never older than one that the thread has read,
// written or acquired. A store carries its thread's view, and passes it to a thread that acquires
// the store. So a thread that acquires nothing may read old values for ever, as on a machine with
// weak memory. If neither of two plain accesses is ordered after the other, the checker reports a
// race.
//
//   history of x     0     1     2     3  <- newest
//   A's view               ^ floor           A may read 1, 2 or 3
//   B's view                           ^     B wrote 3, and reads no other
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <vector>

#include "model/atomic.hpp"

namespace model::detail {

inline constexpr std::size_t most_parties = 8;
inline constexpr std::size_t most_atomics = 48;

using actor = std::size_t;  // 0 is the body of the test, 1 and up are its threads

// What is known: of each atomic the oldest readable value, of the body and each thread how far it
// has come.
struct view {
    std::array<std::uint32_t, most_atomics> floor{};
    std::array<std::uint32_t, most_parties> clock{};

    void join(const view& other) noexcept;
    void join_floors(const view& other) noexcept;
};

class memory {
public:
    void clear() noexcept;
    void begin(actor p) { parties_[p] = parties_[0]; }            // p sees what the body saw
    void end(actor p) { parties_[0].now.join(parties_[p].now); }  // and the body, what p knew

    // The atomic's index in this execution; its first value is the one that it holds. False when
    // there are too many.
    bool add(word initial);
    std::size_t count() const noexcept { return atomic_count_; }

    // How many values p may read, the newest among them.
    std::size_t readable(actor p, std::size_t x, memory_order) const noexcept;
    // Reads the newest but `back`.
    word read(actor p, std::size_t x, std::size_t back, memory_order) noexcept;
    void write(actor p, std::size_t x, word, memory_order);
    // Writes over the newest, which p has just read.
    void overwrite(actor p, std::size_t x, word, memory_order);
    void fence(actor p, memory_order) noexcept;
    // A seq_cst fence of p, which also orders what the others do before it and after it.
    void fence_all(actor p) noexcept;

    // Plain variables. An access that nothing orders after a former one gives that.
    struct access {
        actor who;
        std::uint32_t when;
        bool writes;
        std::source_location place;
    };
    std::size_t add_plain();
    const access* touch(actor p, std::size_t v, bool writes, std::source_location);

private:
    struct message {
        word value;
        view released;  // known to a thread that acquires it
    };
    struct knowledge {
        view now;
        view acquired;  // read by relaxed loads: known after an acquire fence
        view released;  // at the last release fence: what relaxed stores pass on
    };

    void append(actor p, std::size_t x, word, memory_order, const view* continued);

    std::vector<std::vector<message>> histories_;  // the first atomic_count_ are in use
    std::vector<std::vector<access>> plain_;       // and the first plain_count_ of these
    std::size_t atomic_count_ = 0;
    std::size_t plain_count_ = 0;
    std::array<knowledge, most_parties> parties_{};
    view total_;  // the total order of seq_cst: no such load or fence may see older
};

}  // namespace model::detail
