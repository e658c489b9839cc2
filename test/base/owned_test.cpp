// owned: an object that is deleted with its owner, once.
#include "weft/base/detail/owned.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace {

using weft::detail::make_owned;
using weft::detail::owned;

struct life {
    explicit life(int& n) : alive(&n) { ++*alive; }
    life(const life&) = delete;
    ~life() { --*alive; }
    int* alive;
};

TEST(owned, deletes_its_object_with_itself) {
    int alive = 0;
    {
        const owned<life> c = make_owned<life>(alive);
        EXPECT_TRUE(c);
        EXPECT_EQ(alive, 1);
        EXPECT_EQ(c->alive, &alive);
        EXPECT_EQ((*c).alive, &alive);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(owned<life>());
}

TEST(owned, moves_its_object_and_is_empty_afterwards) {
    int first = 0, second = 0;
    owned<life> a = make_owned<life>(first), b = make_owned<life>(second);
    b = std::move(a);
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 0);
    EXPECT_EQ(a.get(), nullptr);
    owned<life> c = std::move(b);
    EXPECT_EQ(b.get(), nullptr);
    EXPECT_EQ(first, 1);
    owned<life>& itself = c;
    c = std::move(itself);
    EXPECT_EQ(first, 1);
    EXPECT_TRUE(c);
}

TEST(owned, releases_and_replaces_its_object) {
    int alive = 0, other = 0;
    owned<life> c = make_owned<life>(alive);
    c.reset(new life(other));
    EXPECT_EQ(alive, 0);
    life* const p = c.release();
    EXPECT_FALSE(c);
    EXPECT_EQ(other, 1);
    delete p;
    c.reset();
    static_assert(!std::is_copy_constructible_v<owned<life>>);
    static_assert(std::is_nothrow_move_constructible_v<owned<life>>);
}

}  // namespace
