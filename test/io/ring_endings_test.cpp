#include "weft/io/detail/ring_endings.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::detail::ring_endings;

TEST(ring_endings, returns_each_key_once_and_in_order) {
    ring_endings all;
    std::uint64_t key = 0;
    EXPECT_FALSE(all.take(key));
    for (std::uint64_t k = 1; k != 100; ++k) EXPECT_TRUE(all.leave(k));
    EXPECT_EQ(all.count(), 99u);
    for (std::uint64_t k = 1; k != 100; ++k) {
        ASSERT_TRUE(all.take(key));
        EXPECT_EQ(key, k);
    }
    EXPECT_FALSE(all.take(key));
    EXPECT_TRUE(all.leave(7));
    EXPECT_TRUE(all.take(key));
    EXPECT_EQ(key, 7u);
    EXPECT_EQ(all.count(), 0u);
}

}  // namespace
