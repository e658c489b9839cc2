// slot_set: which slots of a ring are occupied; finds the next one without a walk over the ring.
//
//   summary   |1|0|1|...               bit w: word w is not zero
//              |   |
//   words     |..1.....|........|1.......|...      bit i % 64 of word i / 64: slot i
//
// A search checks one word and then the summary, which is one more word for up to 4096 slots.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::detail {

template <std::size_t SlotCount>
class slot_set {
    static_assert(SlotCount % 64 == 0 && SlotCount > 0, "slots come in words of 64");

public:
    static constexpr std::size_t none = SlotCount;

    void insert(std::size_t i) noexcept {
        words_[i / 64] |= bit(i);
        summary_[i / 4096] |= bit(i / 64);
    }

    void erase(std::size_t i) noexcept {
        words_[i / 64] &= ~bit(i);
        if (words_[i / 64] == 0) summary_[i / 4096] &= ~bit(i / 64);
    }

    bool contains(std::size_t i) const noexcept { return (words_[i / 64] & bit(i)) != 0; }

    // The first slot at or behind `from`, or none.
    std::size_t first(std::size_t from = 0) const noexcept {
        if (from >= SlotCount) return none;
        if (const std::uint64_t rest = words_[from / 64] & upwards(from); rest != 0)
            return from / 64 * 64 + low(rest);
        std::size_t word = from / 64 + 1;
        if (word == word_count) return none;
        std::uint64_t rest = summary_[word / 64] & upwards(word);
        for (word /= 64; rest == 0; rest = summary_[word])
            if (++word == summary_count) return none;
        word = word * 64 + low(rest);
        return word * 64 + low(words_[word]);
    }

private:
    static constexpr std::size_t word_count = SlotCount / 64;
    static constexpr std::size_t summary_count = (word_count + 63) / 64;

    static constexpr std::uint64_t bit(std::size_t i) noexcept {
        return std::uint64_t{1} << (i % 64);
    }
    static constexpr std::uint64_t upwards(std::size_t i) noexcept {
        return ~std::uint64_t{0} << (i % 64);
    }
    static std::size_t low(std::uint64_t word) noexcept {
        return static_cast<std::size_t>(std::countr_zero(word));
    }

    std::uint64_t words_[word_count] = {};
    std::uint64_t summary_[summary_count] = {};
};

}  // namespace weft::detail
