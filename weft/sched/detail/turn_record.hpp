// turn_record: the flow that has the turn on a loop's thread, written there and read by another
// thread.
//
// Design: a serial number that is incremented at the start and at the end of each turn. A reader
// that finds the same odd number before and after its reads has read of one turn that still lasts.
// The writer never waits, and uses no locked instruction.
//
//      begins: kind, id, name, then the number      ends: the number
//      look:   the number, then kind, id, name, then the number again
//
// Invariants:
// D1  serial_ is odd while a turn lasts, and even between two and while the loop sleeps
// D2  the label of the flow was written before serial_ became odd, and stays unchanged until it is
//     even
//
// Model: test/model/turn_record_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weft/base/detail/atomic.hpp"

namespace weft::detail {

class turn_record {
public:
    struct agent {
        const char* kind = nullptr;
        std::uint64_t id = 0;
        char name[32] = {};
    };

    // Called on the loop's thread.
    void begin(const agent& p) noexcept {
        std::uint64_t words[name_words];
        std::memcpy(words, p.name, sizeof words);
        // Release, all: a reader that sees one of these stores also sees serial_ even (D2); pairs
        // with read().
        kind_.store(p.kind, std::memory_order_release);
        id_.store(p.id, std::memory_order_release);
        for (std::size_t i = 0; i != name_words; ++i)
            name_[i].store(words[i], std::memory_order_release);  // as above
        raise();
    }
    void end() noexcept { raise(); }

    // The rest is for one reader. A turn lasts while the number is odd, and is the same turn as
    // long as the number is the same.
    std::uint64_t serial() const noexcept {
        return serial_.load(std::memory_order_acquire);  // pairs with raise()
    }
    static constexpr bool lasts(std::uint64_t serial) noexcept { return serial % 2 != 0; }
    // The flow whose turn `serial` is; false: another turn has begun meanwhile, and p is invalid.
    [[nodiscard]] bool read(std::uint64_t serial, agent& p) const noexcept {
        // Acquire, all: the last load comes after them; pairs with begin().
        p.kind = kind_.load(std::memory_order_acquire);
        p.id = id_.load(std::memory_order_acquire);
        std::uint64_t words[name_words];
        for (std::size_t i = 0; i != name_words; ++i)
            words[i] = name_[i].load(std::memory_order_acquire);  // as above
        std::memcpy(p.name, words, sizeof words);
        // Relaxed: what was acquired from a later turn has brought that turn's number.
        return serial_.load(std::memory_order_relaxed) == serial;
    }

private:
    static constexpr std::size_t name_words = sizeof(agent::name) / 8;

    // Release: pairs with serial().
    void raise() noexcept {
        const std::uint64_t s = serial_.load(std::memory_order_relaxed) + 1;  // its only writer
        serial_.store(s, std::memory_order_release);
    }

    atomic<std::uint64_t> serial_{0};
    atomic<const char*> kind_{nullptr};
    atomic<std::uint64_t> id_{0};
    atomic<std::uint64_t> name_[name_words] = {};
};

}  // namespace weft::detail
