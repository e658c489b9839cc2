#include "weft/io/ip_address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <compare>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <unordered_set>

namespace {

using weft::ip_address;

TEST(ip_address, prints_what_it_parsed) {
    for (const char* text : {"0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%7",
                             "2001:db8::8:800:200c:417a", "::ffff:10.0.0.1"})
        EXPECT_EQ(ip_address::parse(text).value().to_string(), text);
}

TEST(ip_address, prints_in_the_shortest_form) {
    EXPECT_EQ(ip_address::parse("2001:0DB8:0:0:0:0:0:1").value().to_string(), "2001:db8::1");
}

TEST(ip_address, refuses_text_that_is_no_address) {
    for (const char* text : {"", "localhost", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.4 ",
                             ":::", "::1%", "::1%nosuchif", "1.2.3.4%1", "[::1]", "12345::"})
        EXPECT_EQ(ip_address::parse(text).error(), std::errc::invalid_argument) << text;
    EXPECT_FALSE(ip_address::parse(std::string(1000, '1')));
}

TEST(ip_address, does_not_end_at_an_embedded_zero) {
    using namespace std::string_view_literals;
    for (const std::string_view text :
         {"127.0.0.1\0.evil"sv, "127.0.0.1\0"sv, "::1\0"sv, "::1%1\0"sv, "::1%lo\0x"sv, "\0"sv})
        EXPECT_EQ(ip_address::parse(text).error(), std::errc::invalid_argument) << text.size();
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

TEST(ip_address, has_a_total_order) {
    const ip_address in_order[] = {
        ip_address::any(),
        ip_address::v4(9, 255, 255, 255),
        ip_address::v4(10, 0, 0, 0),
        ip_address::v4(200, 0, 0, 1),
        ip_address::any_v6(),
        ip_address::loopback_v6(),
        ip_address::parse("fe80::1%1").value(),
        ip_address::parse("fe80::1%2").value(),
        ip_address::parse("fe80::2%1").value(),
    };
    for (std::size_t i = 0; i != std::size(in_order); ++i)
        for (std::size_t k = 0; k != std::size(in_order); ++k)
            EXPECT_EQ(in_order[i] <=> in_order[k], i <=> k) << i << ' ' << k;
}

TEST(ip_address, is_a_key_of_an_unordered_set) {
    std::unordered_set<ip_address> seen;
    for (int i = 0; i != 256 * 4; ++i)
        seen.insert(ip_address::v4(10, 0, static_cast<std::uint8_t>(i / 256),
                                   static_cast<std::uint8_t>(i % 256)));
    EXPECT_EQ(seen.size(), 1024u);
    EXPECT_TRUE(seen.contains(ip_address::parse("10.0.3.255").value()));
    EXPECT_FALSE(seen.contains(ip_address::v4(10, 0, 4, 0)));
    const std::hash<ip_address> h;
    EXPECT_EQ(h(ip_address::parse("::1").value()), h(ip_address::loopback_v6()));
    EXPECT_NE(h(ip_address::any()), h(ip_address::any_v6()));
}

// What is nearly an address: from those that are, with characters changed, put in and taken out.
TEST(ip_address, parses_and_prints_exactly_as_the_system_does) {
    constexpr std::string_view alphabet("0123456789abcdefABCDEFx:.::.. /[]\0g", 35);
    const std::string seeds[] = {
        "127.0.0.1",      "::1", "2001:db8::8:800:200c:417a", "::ffff:10.0.0.1", "1:2:3:4:5:6:7:8",
        "255.255.255.255"};
    std::minstd_rand lot(1);
    const auto random = [&](std::size_t below) { return (lot() >> 8) % below; };
    int taken = 0;
    for (int i = 0; i < 200'000; ++i) {
        std::string text = seeds[random(std::size(seeds))];
        for (std::size_t n = random(4); n != 0; --n) {
            const std::size_t at = random(text.size() + 1);
            const char c = alphabet[random(alphabet.size())];
            if (const auto what = random(3); what == 0)
                text.insert(at, 1, c);
            else if (at != text.size())
                what == 1 ? void(text[at] = c) : void(text.erase(at, 1));
        }
        const auto parsed = ip_address::parse(text);
        unsigned char bytes[16];
        const bool whole = text.find('\0') == text.npos;
        const bool v4 = whole && ::inet_pton(AF_INET, text.c_str(), bytes) == 1;
        const bool v6 = whole && !v4 && ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
        ASSERT_EQ(parsed.has_value(), v4 || v6) << text;
        if (!parsed) continue;
        ++taken;
        ASSERT_EQ(parsed->is_v6(), v6) << text;
        ASSERT_EQ(std::memcmp(parsed->bytes().data(), bytes, v6 ? 16 : 4), 0) << text;
        ASSERT_EQ(ip_address::parse(parsed->to_string()).value(), *parsed) << text;
    }
    EXPECT_GT(taken, 20'000);
}

TEST(ip_address, takes_an_interface_by_name_or_index) {
    const unsigned lo = ::if_nametoindex("lo");
    if (lo == 0) GTEST_SKIP() << "there is no lo";
    EXPECT_EQ(ip_address::parse("fe80::1%lo").value().scope(), lo);
    EXPECT_EQ(ip_address::parse("fe80::1%" + std::to_string(lo)).value(),
              ip_address::parse("fe80::1%lo").value());
    for (const char* text : {"fe80::1%lo%lo", "fe80::1%0", "fe80::1%4294967296", "fe80::1%-1"})
        EXPECT_FALSE(ip_address::parse(text)) << text;
}

}  // namespace
