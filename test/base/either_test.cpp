// either: one of two, with the special members that the two allow.
#include "weft/base/detail/either.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace {

using std::in_place_index;
using weft::detail::either;

TEST(either, is_trivial_where_both_types_are) {
    using plain = either<int, std::error_code>;
    static_assert(std::is_trivially_copyable_v<plain>);
    static_assert(std::is_trivially_destructible_v<plain>);
    static_assert(std::is_trivially_copy_constructible_v<plain>);
    static_assert(std::is_trivially_move_assignable_v<plain>);
    static_assert(sizeof(plain) == sizeof(std::error_code) + alignof(std::error_code));
    using text = either<std::string, int>;
    static_assert(!std::is_trivially_destructible_v<text>);
    static_assert(!std::is_trivially_copyable_v<text>);
    static_assert(std::is_nothrow_move_constructible_v<text>);
    static_assert(std::is_nothrow_move_assignable_v<text>);
}

struct pinned {
    pinned() = default;
    pinned(const pinned&) = delete;
    pinned& operator=(const pinned&) = delete;
};

TEST(either, is_copyable_and_movable_only_where_both_types_are) {
    using owner = either<std::unique_ptr<int>, int>;
    static_assert(!std::is_copy_constructible_v<owner> && !std::is_copy_assignable_v<owner>);
    static_assert(std::is_move_constructible_v<owner> && std::is_move_assignable_v<owner>);
    using fixed = either<pinned, int>;
    static_assert(!std::is_move_constructible_v<fixed> && !std::is_move_assignable_v<fixed>);
    const fixed f(in_place_index<0>);
    EXPECT_TRUE(f.is_first());
    using unassignable = either<const std::string, int>;
    static_assert(std::is_copy_constructible_v<unassignable>);
    static_assert(!std::is_copy_assignable_v<unassignable>);
    const unassignable u(in_place_index<0>, "text");
    EXPECT_EQ(unassignable(u).first(), "text");
}

// Throws when it is copied while `fails` is set; moving throws if Moves is false.
template <bool Moves>
struct fragile {
    explicit fragile(int n) : number(n) { ++alive; }
    fragile(const fragile& other) : number(other.number) {
        if (fails) throw 1;
        ++alive;
    }
    fragile(fragile&& other) noexcept(Moves) : number(other.number) {
        if constexpr (!Moves)
            if (fails) throw 1;
        ++alive;
    }
    fragile& operator=(const fragile&) = default;
    fragile& operator=(fragile&&) = default;
    ~fragile() { --alive; }

    int number;
    static inline bool fails = false;
    static inline int alive = 0;
};

template <bool Moves>
void keeps_its_value() {
    using thing = fragile<Moves>;
    using mixed = either<thing, std::string>;
    {
        const mixed from(in_place_index<0>, 7);
        mixed to(in_place_index<1>, "text that is too long to lie within");
        thing::fails = true;
        EXPECT_THROW(to = from, int);
        thing::fails = false;
        EXPECT_FALSE(to.is_first());
        EXPECT_EQ(to.second(), "text that is too long to lie within");
        to = from;
        ASSERT_TRUE(to.is_first());
        EXPECT_EQ(to.first().number, 7);
        to = mixed(in_place_index<1>, "short");
        EXPECT_EQ(to.second(), "short");
        thing::fails = true;
        EXPECT_THROW(static_cast<void>(mixed(from)), int);
        thing::fails = false;
    }
    EXPECT_EQ(thing::alive, 0);
}

TEST(either, keeps_what_it_has_when_an_assignment_throws) {
    keeps_its_value<true>();
    keeps_its_value<false>();
}

TEST(either, assigns_between_like_and_unlike_and_to_itself) {
    using text = either<std::string, std::unique_ptr<int>>;
    text a(in_place_index<0>, "one"), b(in_place_index<1>, std::make_unique<int>(2));
    a = std::move(b);
    EXPECT_EQ(*a.second(), 2);
    b = text(in_place_index<1>, std::make_unique<int>(3));
    a = std::move(b);
    EXPECT_EQ(*a.second(), 3);
    text& itself = a;
    a = std::move(itself);
    EXPECT_FALSE(a.is_first());
    a = text(in_place_index<0>, "four");
    EXPECT_EQ(a.first(), "four");
    std::swap(a, b);
    EXPECT_EQ(b.first(), "four");
}

}  // namespace
