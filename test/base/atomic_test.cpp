#include "weft/base/atomic.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <type_traits>

namespace {

TEST(atomic, is_the_standard_one_but_for_the_checker) {
    static_assert(std::is_same_v<weft::atomic<int>, std::atomic<int>>);
    static_assert(WEFT_MODEL == 0);
    static constinit weft::atomic<unsigned> word{1};
    EXPECT_EQ(word.fetch_or(2u), 1u);
    EXPECT_EQ(word.load(), 3u);
}

}  // namespace
