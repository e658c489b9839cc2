#include "weft/io/ip_address.hpp"

#include <gtest/gtest.h>

namespace {

using weft::ip_address;

TEST(ip_address, prints_what_it_parsed) {
    for (const char* text : {"0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%7",
                             "2001:db8::8:800:200c:417a", "::ffff:10.0.0.1"})
        EXPECT_EQ(ip_address::parse(text).value().to_string(), text);
}

TEST(ip_address, is_written_shortest) {
    EXPECT_EQ(ip_address::parse("2001:0DB8:0:0:0:0:0:1").value().to_string(), "2001:db8::1");
}

TEST(ip_address, refuses_what_is_none) {
    for (const char* text : {"", "localhost", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.4 ",
                             ":::", "::1%", "::1%nosuchif", "1.2.3.4%1", "[::1]", "12345::"})
        EXPECT_EQ(ip_address::parse(text).error(), std::errc::invalid_argument) << text;
    EXPECT_FALSE(ip_address::parse(std::string(1000, '1')));
}

TEST(ip_address, knows_its_kind) {
    EXPECT_TRUE(ip_address::loopback().is_loopback());
    EXPECT_TRUE(ip_address::v4(127, 8, 8, 8).is_loopback());
    EXPECT_TRUE(ip_address::loopback_v6().is_loopback());
    EXPECT_TRUE(ip_address::loopback_v6().is_v6());
    EXPECT_TRUE(ip_address::any().is_any());
    EXPECT_TRUE(ip_address::any_v6().is_any());
    EXPECT_FALSE(ip_address::v4(10, 0, 0, 1).is_loopback());
    EXPECT_FALSE(ip_address::v4(10, 0, 0, 1).is_v6());
    EXPECT_FALSE(ip_address::loopback().is_any());
}

TEST(ip_address, compares_as_a_value) {
    EXPECT_EQ(ip_address::parse("127.0.0.1").value(), ip_address::loopback());
    EXPECT_NE(ip_address::any(), ip_address::any_v6());
    EXPECT_LT(ip_address::v4(1, 2, 3, 4), ip_address::v4(1, 2, 4, 0));
}

}  // namespace
