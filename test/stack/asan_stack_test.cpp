#include "weft/stack/asan_stack.hpp"

#include <gtest/gtest.h>

namespace weft::detail {
namespace {

alignas(64) std::byte memory[1024];
constexpr stack whole{memory, memory + sizeof memory};

[[gnu::noinline]] void touch(volatile std::byte* p) { *p = std::byte{1}; }

TEST(asan_stack, unpoisoned_memory_is_usable_again) {
    poison_stack(whole);
    unpoison_stack(whole);
    for (std::byte& b : memory) touch(&b);
}

TEST(asan_stack_death, use_of_a_poisoned_stack_is_reported) {
    if (!WEFT_ASAN) GTEST_SKIP() << "only AddressSanitizer sees it";
    poison_stack(whole);
    EXPECT_DEATH(touch(memory), "use-after-poison");
    EXPECT_DEATH(touch(memory + 1023), "use-after-poison");
    unpoison_stack(whole);
}

}  // namespace
}  // namespace weft::detail
