// turn_record: whose turn a loop's thread is in, as it writes it down and another thread reads it.
//
// Its one idea: a number that is raised at the beginning and at the end of each turn. The reader
// that finds the same odd number before and after what it reads has read of one turn that lasts;
// the writer never waits, and uses no instruction that locks.
//
//      begins: kind, id, name, then the number      ends: the number
//      look:   the number, then kind, id, name, then the number again
//
// Invariants:
// D1  serial_ is odd while a turn lasts, and even between two and while the loop sleeps
// D2  the party was written before serial_ became odd, and is not touched until it is even
//
// Model: test/model/turn_record_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weft/base/atomic.hpp"

namespace weft::detail {

class turn_record {
public:
    struct party {
        const char* kind = nullptr;
        std::uint64_t id = 0;
        char name[32] = {};
    };

    // The loop's thread.
    void begin(const party& p) noexcept {
        std::uint64_t words[name_words];
        std::memcpy(words, p.name, sizeof words);
        // Release, all: a reader that sees one of them sees that serial_ is even (D2); pairs with
        // read().
        kind_.store(p.kind, std::memory_order_release);
        id_.store(p.id, std::memory_order_release);
        for (std::size_t i = 0; i != name_words; ++i)
            name_[i].store(words[i], std::memory_order_release);
        raise();
    }
    void end() noexcept { raise(); }

    // The rest is for one reader. A turn lasts if the number is odd, and it is the same turn as
    // long as the number is the same.
    std::uint64_t serial() const noexcept {
        return serial_.load(std::memory_order_acquire);  // pairs with raise()
    }
    static constexpr bool lasts(std::uint64_t serial) noexcept { return serial % 2 != 0; }
    // Whose turn `serial` is; false: another has begun meanwhile, and p is of no use.
    [[nodiscard]] bool read(std::uint64_t serial, party& p) const noexcept {
        // Acquire, all: what follows comes after them; pairs with begin().
        p.kind = kind_.load(std::memory_order_acquire);
        p.id = id_.load(std::memory_order_acquire);
        std::uint64_t words[name_words];
        for (std::size_t i = 0; i != name_words; ++i)
            words[i] = name_[i].load(std::memory_order_acquire);
        std::memcpy(p.name, words, sizeof words);
        return serial_.load(std::memory_order_relaxed) == serial;
    }

private:
    static constexpr std::size_t name_words = sizeof(party::name) / 8;

    // Release: pairs with serial().
    void raise() noexcept {
        const std::uint64_t s = serial_.load(std::memory_order_relaxed) + 1;  // its own
        serial_.store(s, std::memory_order_release);
    }

    atomic<std::uint64_t> serial_{0};
    atomic<const char*> kind_{nullptr};
    atomic<std::uint64_t> id_{0};
    atomic<std::uint64_t> name_[name_words] = {};
};

}  // namespace weft::detail
