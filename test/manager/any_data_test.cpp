#include "weft/manager/any_data.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "test/support/counted.hpp"

namespace {

using weft::any_data;

TEST(any_data, returns_its_object_only_for_the_exact_type) {
    const any_data d = std::string("text");
    ASSERT_NE(d.get<std::string>(), nullptr);
    EXPECT_EQ(*d.get<std::string>(), "text");
    EXPECT_EQ(d.get<int>(), nullptr);
    EXPECT_EQ(d.get<const char*>(), nullptr);
    EXPECT_TRUE(d.has_value());
}

TEST(any_data, is_empty_by_default_and_after_a_move) {
    any_data d;
    EXPECT_FALSE(d.has_value());
    EXPECT_EQ(d.get<int>(), nullptr);
    d = std::make_unique<int>(7);
    any_data other = std::move(d);
    EXPECT_FALSE(d.has_value());
    EXPECT_EQ(d.get<std::unique_ptr<int>>(), nullptr);
    EXPECT_EQ(**other.get<std::unique_ptr<int>>(), 7);
    other = std::move(other);
    EXPECT_TRUE(other.has_value());
}

TEST(any_data, destroys_its_object_once) {
    int gone = 0;
    {
        struct boxed {
            std::unique_ptr<weft::testing::counted> c;
        };
        any_data a =
            boxed{std::unique_ptr<weft::testing::counted>(new weft::testing::counted{gone})};
        any_data b = std::move(a);
        a = std::move(b);
        EXPECT_EQ(gone, 0);
        a = any_data();
        EXPECT_EQ(gone, 1);
    }
    EXPECT_EQ(gone, 1);
}

}  // namespace
