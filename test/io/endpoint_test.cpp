#include "weft/io/endpoint.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>
#include <string_view>

namespace {

using weft::endpoint;
using weft::ip_address;

TEST(endpoint, prints_what_it_parsed) {
    for (const char* text : {"127.0.0.1:7000", "0.0.0.0:0", "[::1]:65535", "[fe80::1%3]:80"})
        EXPECT_EQ(endpoint::parse(text).value().to_string(), text);
}

TEST(endpoint, refuses_text_that_is_no_endpoint) {
    for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                             "127.0.0.1:7x", "::1:80", "[127.0.0.1]:80", "[::1]80", "localhost:80"})
        EXPECT_EQ(endpoint::parse(text).error(), std::errc::invalid_argument) << text;
}

TEST(endpoint, does_not_end_at_an_embedded_zero) {
    using namespace std::string_view_literals;
    for (const std::string_view text : {"127.0.0.1\0:80"sv, "127.0.0.1:80\0"sv, "[::1\0]:80"sv})
        EXPECT_EQ(endpoint::parse(text).error(), std::errc::invalid_argument) << text.size();
    EXPECT_FALSE(weft::detail::host_and_port::parse("localhost\0.evil:80"sv));
    EXPECT_EQ(endpoint::local("/run/a\0b"sv).error(), std::errc::invalid_argument);
    EXPECT_EQ(endpoint::local("@a\0b"sv).value().path(), "@a\0b"sv);  // counted, and not ended
}

TEST(endpoint, refuses_a_bracket_in_its_host) {
    using weft::detail::host_and_port;
    for (const char* text : {"[[::1]]:80", "[]]:80", "[:80"})
        EXPECT_EQ(host_and_port::parse(text).error(), std::errc::invalid_argument) << text;
    EXPECT_EQ(host_and_port::parse("[::1]:80").value().host, "::1");
}

TEST(endpoint, has_an_address_and_a_port) {
    const endpoint e(ip_address::v4(10, 1, 2, 3), 8080);
    EXPECT_TRUE(e.is_ip());
    EXPECT_EQ(e.address(), ip_address::v4(10, 1, 2, 3));
    EXPECT_EQ(e.port(), 8080);
    EXPECT_EQ(e.path(), "");
    EXPECT_EQ(endpoint::from(e.data(), e.size()), e);
}

TEST(endpoint, may_be_a_path) {
    const endpoint e = endpoint::local("/run/some.socket").value();
    EXPECT_TRUE(e.is_local());
    EXPECT_EQ(e.path(), "/run/some.socket");
    EXPECT_EQ(e.to_string(), "/run/some.socket");
    EXPECT_EQ(endpoint::from(e.data(), e.size()), e);
}

TEST(endpoint, may_be_an_abstract_name) {
    const endpoint e = endpoint::local("@name").value();
    EXPECT_EQ(e.path(), "@name");
    EXPECT_NE(e, endpoint::local("name").value());
}

TEST(endpoint, limits_the_length_of_its_path) {
    const std::string longest(sizeof(::sockaddr_un::sun_path) - 1, 'x');
    EXPECT_EQ(endpoint::local(longest).value().path(), longest);
    EXPECT_EQ(endpoint::local(longest + "x").error(), std::errc::filename_too_long);
    EXPECT_EQ(endpoint::local("").error(), std::errc::invalid_argument);
}

TEST(endpoint, parses_an_address_and_a_port_and_nothing_else) {
    constexpr std::string_view alphabet("0123456789:.[]%af \0+-", 21);
    const std::string seeds[] = {"127.0.0.1:7000", "[::1]:65535", "[::ffff:10.0.0.1]:80"};
    std::minstd_rand lot(1);
    const auto random = [&](std::size_t below) { return (lot() >> 8) % below; };
    int taken = 0;
    for (int i = 0; i < 200'000; ++i) {
        std::string text = seeds[random(std::size(seeds))];
        for (std::size_t n = random(3); n != 0; --n) {
            const std::size_t at = random(text.size());
            text[at] = alphabet[random(alphabet.size())];
        }
        const auto e = endpoint::parse(text);
        if (!e) continue;
        ++taken;
        ASSERT_EQ(endpoint::parse(e->to_string()).value(), *e) << text;
        const std::size_t colon = text.rfind(':');
        ASSERT_EQ(std::stoi(text.substr(colon + 1)), e->port()) << text;
        std::string host = text.substr(0, colon);
        if (host.front() == '[') host = host.substr(1, host.size() - 2);
        ASSERT_EQ(ip_address::parse(host).value(), e->address()) << text;
    }
    EXPECT_GT(taken, 20'000);
}

TEST(endpoint, prints_no_endpoint_when_empty) { EXPECT_EQ(endpoint().to_string(), "no endpoint"); }

}  // namespace
