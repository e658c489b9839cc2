// owned: an object that is deleted with its owner, once.
#include "weft/base/detail/owned.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace {

using weft::detail::make_owned;
using weft::detail::owned;

struct counted {
    explicit counted(int& n) : alive(&n) { ++*alive; }
    counted(const counted&) = delete;
    ~counted() { --*alive; }
    int* alive;
};

TEST(owned, deletes_its_object_with_itself) {
    int alive = 0;
    {
        const owned<counted> c = make_owned<counted>(alive);
        EXPECT_TRUE(c);
        EXPECT_EQ(alive, 1);
        EXPECT_EQ(c->alive, &alive);
        EXPECT_EQ((*c).alive, &alive);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(owned<counted>());
}

TEST(owned, moves_its_object_and_is_empty_afterwards) {
    int first = 0, second = 0;
    owned<counted> a = make_owned<counted>(first), b = make_owned<counted>(second);
    b = std::move(a);
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 0);
    EXPECT_EQ(a.get(), nullptr);
    owned<counted> c = std::move(b);
    EXPECT_EQ(b.get(), nullptr);
    EXPECT_EQ(first, 1);
    owned<counted>& itself = c;
    c = std::move(itself);
    EXPECT_EQ(first, 1);
    EXPECT_TRUE(c);
}

TEST(owned, releases_and_replaces_its_object) {
    int alive = 0, other = 0;
    owned<counted> c = make_owned<counted>(alive);
    c.reset(new counted(other));
    EXPECT_EQ(alive, 0);
    counted* const p = c.release();
    EXPECT_FALSE(c);
    EXPECT_EQ(other, 1);
    delete p;
    c.reset();
    static_assert(!std::is_copy_constructible_v<owned<counted>>);
    static_assert(std::is_nothrow_move_constructible_v<owned<counted>>);
}

}  // namespace
