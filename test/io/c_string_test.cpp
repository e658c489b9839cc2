#include "weft/io/detail/c_string.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::literals;
using weft::detail::are_c_strings;
using weft::detail::is_c_string;

TEST(a_c_string, has_no_embedded_zero) {
    EXPECT_TRUE(is_c_string(""));
    EXPECT_TRUE(is_c_string("a b"));
    for (const std::string_view text : {"\0"sv, "\0a"sv, "a\0"sv, "a\0b"sv})
        EXPECT_FALSE(is_c_string(text));
}

TEST(a_c_string, is_checked_for_each_of_several) {
    EXPECT_TRUE(are_c_strings(std::vector<std::string>()));
    EXPECT_TRUE(are_c_strings({"a"sv, "b"sv}));
    EXPECT_FALSE(are_c_strings({"a\0"sv, "b"sv}));
    EXPECT_TRUE(are_c_strings(std::vector{"a"s, ""s}));
    EXPECT_FALSE(are_c_strings(std::vector{"a"s, "b\0"s}));
}

}  // namespace
