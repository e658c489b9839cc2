#include "weft/poll/boxed.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "weft/base/result.hpp"

namespace {

using weft::boxed;

TEST(boxed, is_one_pointer_wide_and_holds_any_type) {
    static_assert(sizeof(boxed<std::array<char, 4096>>) == sizeof(void*));
    boxed<std::string> b(std::in_place, 3U, 'x');
    EXPECT_EQ(*b, "xxx");
    b->push_back('y');
    EXPECT_EQ(*std::as_const(b), "xxxy");
    EXPECT_EQ(std::as_const(b)->size(), 4U);
}

TEST(boxed, moves_without_moving_its_value) {
    boxed<int> a(1);
    const int* const at = &*a;
    boxed<int> b = std::move(a);
    EXPECT_EQ(&*b, at);
    boxed<int> c(2);
    c = std::move(b);
    EXPECT_EQ(&*c, at);
    boxed<int>& same = c;
    c = std::move(same);
    EXPECT_EQ(*c, 1);
}

TEST(boxed, destroys_its_value_once) {
    const auto counted = std::make_shared<int>(1);
    {
        boxed<std::shared_ptr<int>> a(counted);
        boxed<std::shared_ptr<int>> b(std::move(a));
        boxed<std::shared_ptr<int>> c(counted);
        EXPECT_EQ(counted.use_count(), 3);
        c = std::move(b);
        EXPECT_EQ(counted.use_count(), 2);
        const std::shared_ptr<int> out = *std::move(c);
        EXPECT_EQ(out.use_count(), 2) << "moved out, not copied";
    }
    EXPECT_EQ(counted.use_count(), 1);
}

TEST(boxed, releases_the_memory_of_its_value) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    const auto used = weft::detail::block_cache::stats().used_bytes;
    {
        const boxed<std::array<char, 1000>> b(std::in_place);
        EXPECT_GE(weft::detail::block_cache::stats().used_bytes, used + 1000);
    }
    EXPECT_EQ(weft::detail::block_cache::stats().used_bytes, used);
}

TEST(boxed, is_aligned_for_its_value) {
    struct alignas(128) wide {
        char bytes[128] = {};
    };
    const boxed<wide> b(std::in_place);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&*b) % 128, 0U);
}

TEST(boxed, keeps_a_result_of_a_large_value_small) {
    using page = std::array<char, 4096>;
    using fetched = weft::result<boxed<page>, int>;
    static_assert(sizeof(fetched) <= 2 * sizeof(void*));
    fetched well(std::in_place, page{'a'});
    EXPECT_EQ((**well)[0], 'a');
    const fetched ill = weft::failure(404);
    EXPECT_EQ(ill.error(), 404);
}

}  // namespace
