// construct_at, destroy_at, address_of: as std's own of these names.
#include "weft/base/detail/lifetime.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace {

using weft::detail::address_of;

struct counted {
    explicit counted(int& n) : alive(&n) { ++*alive; }
    counted(const counted&) = delete;
    ~counted() { --*alive; }
    counted* operator&() { return nullptr; }
    int* alive;
};

TEST(lifetime, constructs_in_place_and_destroys) {
    int alive = 0;
    alignas(counted) unsigned char room[sizeof(counted)];
    counted* const where = reinterpret_cast<counted*>(room);
    counted* const c = weft::detail::construct_at(where, alive);
    EXPECT_EQ(c, where);
    EXPECT_EQ(alive, 1);
    weft::detail::destroy_at(c);
    EXPECT_EQ(alive, 0);
}

TEST(lifetime, address_of_ignores_an_operator_of_the_type) {
    int alive = 0;
    counted c(alive);
    EXPECT_EQ(&c, nullptr);
    EXPECT_EQ(static_cast<void*>(address_of(c)), static_cast<void*>(&c.alive));
    static_assert(
        std::is_same_v<decltype(address_of(std::declval<const counted&>())), const counted*>);
}

}  // namespace
