// fibonacci_hash: places of a table, and how evenly keys are spread over them.
#include "weft/base/detail/fibonacci_hash.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using weft::detail::fibonacci_hash;

TEST(fibonacci_hash, gives_a_place_of_the_table) {
    for (unsigned bits = 1; bits < 20; ++bits)
        for (std::uintptr_t key = 1; key != 0; key <<= 1)
            EXPECT_LT(fibonacci_hash(key, bits), std::size_t{1} << bits) << key << ' ' << bits;
    EXPECT_EQ(fibonacci_hash(std::uintptr_t{0}, 8), 0u);
    static_assert(fibonacci_hash(std::uintptr_t{1}, 1) == 1);  // 2^64 over the golden ratio
}

TEST(fibonacci_hash, is_the_same_for_an_address_as_for_its_number) {
    const int there = 0;
    EXPECT_EQ(fibonacci_hash(&there, 16),
              fibonacci_hash(reinterpret_cast<std::uintptr_t>(&there), 16));
}

// Addresses of objects in an array, of each usual size, 256 of them in 256 places.
TEST(fibonacci_hash, spreads_addresses_of_equal_distances) {
    for (std::uintptr_t distance = 8; distance <= std::uintptr_t{1} << 16; distance *= 2) {
        std::array<int, 256> there{};
        for (std::uintptr_t i = 0; i < 256; ++i)
            ++there[fibonacci_hash(0x1000'0000 + i * distance, 8)];
        EXPECT_LE(*std::max_element(there.begin(), there.end()), 5) << distance;
    }
}

}  // namespace
