// min_of, max_of: the smaller and the larger of two values.
#include "weft/base/detail/min_max.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace {

using weft::detail::max_of;
using weft::detail::min_of;

TEST(min_max, returns_the_smaller_and_the_larger) {
    static_assert(min_of(1, 2) == 1);
    static_assert(max_of(1, 2) == 2);
    EXPECT_EQ(min_of(2, -1), -1);
    EXPECT_EQ(max_of(2, -1), 2);
    EXPECT_EQ(min_of<std::size_t>(3, sizeof(char)), 1u);
}

TEST(min_max, returns_the_first_for_an_equal_min_and_the_first_for_an_equal_max) {
    struct labelled {
        int key;
        char label;
        constexpr bool operator<(const labelled& other) const { return key < other.key; }
    };
    constexpr labelled a{1, 'a'}, b{1, 'b'};
    static_assert(min_of(a, b).label == 'a');
    static_assert(max_of(a, b).label == 'a');
}

}  // namespace
