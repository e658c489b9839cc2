#include "weft/poll/poll.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <type_traits>

namespace {

TEST(poll, is_pending_until_it_has_a_value) {
    weft::poll<int> p;
    EXPECT_TRUE(p.is_pending());
    EXPECT_FALSE(p.is_ready());
    p = 7;
    EXPECT_TRUE(p.is_ready());
    EXPECT_EQ(*p, 7);
    p = weft::pending;
    EXPECT_TRUE(p.is_pending());
}

TEST(poll, holds_move_only_values) {
    weft::poll<std::unique_ptr<int>> p = std::make_unique<int>(7);
    weft::poll<std::unique_ptr<int>> moved = std::move(p);
    const std::unique_ptr<int> taken = *std::move(moved);
    EXPECT_EQ(*taken, 7);
}

TEST(poll, constructs_its_value_directly) {
    weft::poll<std::string> p(std::in_place, 3U, 'x');
    EXPECT_EQ(p->size(), 3U);
    EXPECT_EQ(*p, "xxx");
    p.emplace("y");
    EXPECT_EQ(*p, "y");
}

TEST(poll, of_a_reference_refers_to_the_object) {
    int n = 1;
    weft::poll<int&> p(n);
    ++*p;
    EXPECT_EQ(n, 2);
    EXPECT_EQ(&*std::as_const(p), &n);
    static_assert(std::is_same_v<decltype(*std::move(p)), int&>);
}

TEST(poll, destroys_its_value_on_reset) {
    static int alive;
    struct counted {
        counted() { ++alive; }
        counted(const counted&) = delete;
        ~counted() { --alive; }
    };
    weft::poll<counted> p(std::in_place);
    EXPECT_EQ(alive, 1);
    p.reset();
    EXPECT_TRUE(p.is_pending());
    EXPECT_EQ(alive, 0);
}

TEST(poll, of_void_is_ready_or_pending) {
    weft::poll<> p;
    EXPECT_TRUE(p.is_pending());
    p.emplace();
    EXPECT_TRUE(p.is_ready());
    EXPECT_TRUE(weft::poll<>(std::in_place).is_ready());
    p.reset();
    EXPECT_TRUE(p.is_pending());
}

// Large, over-aligned, without default constructor: all are stored within.
TEST(poll, stores_its_value_inside_itself) {
    struct alignas(64) wide {
        explicit wide(int n) { all.fill(n); }
        std::array<int, 256> all;
    };
    weft::poll<wide> p(std::in_place, 5);
    const auto at = reinterpret_cast<std::uintptr_t>(&*p);
    const auto begin = reinterpret_cast<std::uintptr_t>(&p);
    EXPECT_EQ(at % 64, 0U);
    EXPECT_TRUE(at >= begin && at + sizeof(wide) <= begin + sizeof p);
    EXPECT_EQ(p->all[255], 5);
}

TEST(poll, of_a_trivial_type_is_trivial) {
    static_assert(std::is_trivially_copyable_v<weft::poll<int>>);
    static_assert(std::is_trivially_destructible_v<weft::poll<double>>);
    static_assert(!std::is_copy_constructible_v<weft::poll<std::unique_ptr<int>>>);
    static_assert(sizeof(weft::poll<int>) == 2 * sizeof(int));
}

}  // namespace
