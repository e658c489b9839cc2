// latency: percentiles of durations in fixed memory, within 3 %.
//
// A histogram whose buckets grow with their value: 32 to each power of two.
//
//   bucket of n (n >= 32):   [ power of two of n | the five bits below its leading bit ]
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace echo {

class latency {
public:
    void add(std::uint64_t ns) noexcept {
        ++counts_[bucket_of(ns)];
        ++total_;
    }

    // The least value that at least `share` (0 to 1) of all values do not exceed; 0 when empty.
    std::uint64_t percentile(double share) const noexcept {
        const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
        std::uint64_t seen = 0;
        for (std::size_t b = 0; b < counts_.size(); ++b) {
            seen += counts_[b];
            if (seen > 0 && seen >= wanted) return floor_of(b);
        }
        return 0;
    }

private:
    static std::size_t bucket_of(std::uint64_t n) noexcept {
        if (n < 32) return static_cast<std::size_t>(n);
        const auto power = static_cast<std::size_t>(std::bit_width(n)) - 5;  // at least 1
        return power * 32 + ((n >> (power - 1)) & 31);
    }
    static std::uint64_t floor_of(std::size_t b) noexcept {
        if (b < 32) return b;
        return (32 + b % 32) << (b / 32 - 1);
    }

    std::array<std::uint64_t, 60 * 32> counts_{};
    std::uint64_t total_ = 0;
};

}  // namespace echo
