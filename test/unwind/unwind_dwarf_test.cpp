#include "weft/unwind/detail/unwind_dwarf.hpp"

#include <gtest/gtest.h>

#include <cstring>

using weft::detail::dwarf_bases;
using weft::detail::dwarf_cursor;

TEST(dwarf_cursor, reads_leb128_values) {
    const unsigned char bytes[] = {0x02, 0x7f, 0x80, 0x01, 0xe5, 0x8e, 0x26,
                                   0x02, 0x7e, 0xff, 0x00, 0x81, 0x7f};
    dwarf_cursor c(bytes);
    EXPECT_EQ(c.uleb(), 2u);
    EXPECT_EQ(c.uleb(), 127u);
    EXPECT_EQ(c.uleb(), 128u);
    EXPECT_EQ(c.uleb(), 624485u);
    EXPECT_EQ(c.sleb(), 2);
    EXPECT_EQ(c.sleb(), -2);
    EXPECT_EQ(c.sleb(), 127);
    EXPECT_EQ(c.sleb(), -127);
    EXPECT_EQ(c.at(), bytes + sizeof bytes);
}

TEST(dwarf_cursor, reads_the_widest_leb128_values) {
    const unsigned char most[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    EXPECT_EQ(dwarf_cursor(most).uleb(), ~std::uint64_t{0});
    const unsigned char least[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f};
    EXPECT_EQ(dwarf_cursor(least).sleb(), INT64_MIN);
}

TEST(dwarf_cursor, adds_the_base_to_an_encoded_pointer) {
    unsigned char bytes[4];
    const std::int32_t minus_six = -6;
    std::memcpy(bytes, &minus_six, 4);
    unsigned char two_bytes[2];
    const std::int16_t short_minus_six = -6;
    std::memcpy(two_bytes, &short_minus_six, 2);
    dwarf_bases bases;
    bases.text = 1'000;
    bases.data = 2'000;
    bases.function = 3'000;
    bool known = true;
    const auto at = [&](unsigned char encoding) {
        return dwarf_cursor(bytes).pointer(encoding, bases, known);
    };
    EXPECT_EQ(at(0x0b), static_cast<std::uintptr_t>(-6));
    EXPECT_EQ(at(0x1b), reinterpret_cast<std::uintptr_t>(bytes) - 6);
    EXPECT_EQ(at(0x2b), 994u);
    EXPECT_EQ(at(0x3b), 1'994u);
    EXPECT_EQ(at(0x4b), 2'994u);
    EXPECT_EQ(at(0x03), 0xfffffffau);
    EXPECT_EQ(dwarf_cursor(two_bytes).pointer(0x0a, bases, known), static_cast<std::uintptr_t>(-6));
    EXPECT_EQ(dwarf_cursor(two_bytes).pointer(0x02, bases, known), 0xfffau);
    EXPECT_TRUE(known);
}

TEST(dwarf_cursor, follows_an_indirect_pointer) {
    const std::uintptr_t value = 77;
    const auto address = reinterpret_cast<std::uintptr_t>(&value);
    bool known = true;
    EXPECT_EQ(dwarf_cursor(&address).pointer(0x80, {}, known), 77u);
    EXPECT_TRUE(known);
}

TEST(dwarf_cursor, reads_null_without_adding_a_base) {
    const std::uint32_t zero = 0;
    bool known = true;
    EXPECT_EQ(dwarf_cursor(&zero).pointer(0x9b, {}, known), 0u);
    EXPECT_TRUE(known);
}

TEST(dwarf_cursor, reports_unknown_encodings) {
    const std::uint64_t bytes = 1;
    constexpr unsigned char encodings[] = {0x05, 0x0d, 0x50, 0x60};
    for (const unsigned char encoding : encodings) {
        bool known = true;
        dwarf_cursor(&bytes).pointer(encoding, {}, known);
        EXPECT_FALSE(known) << int{encoding};
    }
}
