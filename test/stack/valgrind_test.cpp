// Under Valgrind, the CTest test valgrind.lives does the check.
#include "weft/stack/detail/valgrind.hpp"

#include <gtest/gtest.h>

namespace weft::detail {
namespace {

TEST(valgrind_stack, is_enabled_only_in_debug_builds) { EXPECT_TRUE(WEFT_DEBUG || !WEFT_VALGRIND); }

TEST(valgrind_stack, registers_and_deregisters_with_and_without_valgrind) {
    alignas(64) std::byte memory[1024] = {};
    const stack s = {memory, memory + sizeof memory};
    valgrind_stack::end(s);  // did not begin
    for (int i = 0; i < 2; ++i) {
        valgrind_stack::begin(s);
        valgrind_stack::end(s);
    }
    for (const std::byte b : memory) ASSERT_EQ(b, memory[0]) << "nothing is kept on the stack";
}

}  // namespace
}  // namespace weft::detail
