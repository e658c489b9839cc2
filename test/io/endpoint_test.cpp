#include "weft/io/endpoint.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using weft::endpoint;
using weft::ip_address;

TEST(endpoint, prints_what_it_parsed) {
    for (const char* text : {"127.0.0.1:7000", "0.0.0.0:0", "[::1]:65535", "[fe80::1%3]:80"})
        EXPECT_EQ(endpoint::parse(text).value().to_string(), text);
}

TEST(endpoint, refuses_what_is_none) {
    for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                             "127.0.0.1:7x", "::1:80", "[127.0.0.1]:80", "[::1]80", "localhost:80"})
        EXPECT_EQ(endpoint::parse(text).error(), std::errc::invalid_argument) << text;
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

TEST(endpoint, has_a_longest_path) {
    const std::string longest(sizeof(::sockaddr_un::sun_path) - 1, 'x');
    EXPECT_EQ(endpoint::local(longest).value().path(), longest);
    EXPECT_EQ(endpoint::local(longest + "x").error(), std::errc::filename_too_long);
    EXPECT_EQ(endpoint::local("").error(), std::errc::invalid_argument);
}

TEST(endpoint, of_nothing_says_so) { EXPECT_EQ(endpoint().to_string(), "no endpoint"); }

}  // namespace
