#include "weft/stack/valgrind.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace weft::detail {
namespace {

TEST(valgrind_stack, is_empty_where_it_is_not_wanted) {
    EXPECT_EQ(std::is_empty_v<valgrind_stack>, WEFT_VALGRIND == 0);
    EXPECT_TRUE(WEFT_DEBUG || !WEFT_VALGRIND);
}

TEST(valgrind_stack, begins_and_ends_with_and_without_valgrind) {
    alignas(64) std::byte memory[1024];
    valgrind_stack seen;
    seen.begin({memory, memory + sizeof memory});
    seen.end();
    seen.begin({memory, memory + sizeof memory});
    seen.end();
}

}  // namespace
}  // namespace weft::detail
