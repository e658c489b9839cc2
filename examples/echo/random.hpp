// Reproducible randomness: the same seed, the same run of the client.
//
//   dice        draws numbers
//   byte_stream endless bytes that depend on the seed and the position alone, so that what was sent
//               can be verified when it comes back without having been kept
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace echo {

// A bijection of 64 bits whose every output bit depends on every input bit (SplitMix64's finish).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

inline constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd

class dice {
public:
    explicit dice(std::uint64_t seed) noexcept : state_(mix(seed + golden)) {}

    std::uint64_t next() noexcept { return mix(state_ += golden); }
    std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }
    bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

private:
    std::uint64_t state_;
};

class byte_stream {
public:
    explicit byte_stream(std::uint64_t seed) noexcept : seed_(mix(seed)) {}

    // Writes the next `count` bytes without moving on ...
    void peek(char* out, std::size_t count) const noexcept {
        std::uint64_t at = position_;
        while (count > 0) {
            const std::uint64_t word = mix(seed_ + golden * (at / 8));
            const std::size_t within = at % 8;
            const std::size_t part = std::min(8 - within, count);
            std::memcpy(out, reinterpret_cast<const char*>(&word) + within, part);
            out += part, at += part, count -= part;
        }
    }
    // ... and moves on.
    void skip(std::size_t count) noexcept { position_ += count; }

private:
    std::uint64_t seed_;
    std::uint64_t position_ = 0;
};

}  // namespace echo
