#include "weft/stack/detail/asan_stack.hpp"

#include <gtest/gtest.h>

#include "test/support/touch.hpp"

namespace weft::detail {
namespace {

alignas(64) std::byte whole_memory[1024];
constexpr stack whole{whole_memory, whole_memory + sizeof whole_memory};

using testing::touch;

TEST(asan_stack, unpoisoned_memory_is_usable_again) {
    poison_stack(whole);
    unpoison_stack(whole);
    for (std::byte& b : whole_memory) touch(&b);
}

TEST(asan_stack_death, use_of_a_poisoned_stack_is_reported) {
    if (!WEFT_ASAN) GTEST_SKIP() << "only AddressSanitizer sees it";
    poison_stack(whole);
    EXPECT_DEATH(touch(whole_memory), "use-after-poison");
    EXPECT_DEATH(touch(whole_memory + 1023), "use-after-poison");
    unpoison_stack(whole);
}

}  // namespace
}  // namespace weft::detail
