#include "weft/io/endpoint.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <compare>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>

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

TEST(endpoint, has_a_total_order) {
    using namespace std::string_view_literals;
    const endpoint in_order[] = {
        endpoint(),
        endpoint::local("@name").value(),
        endpoint::local("@name\0"sv).value(),
        endpoint::local("/run/a").value(),
        endpoint::local("/run/a/b").value(),
        endpoint::local("/run/\xff").value(),
        endpoint(ip_address::v4(10, 0, 0, 1), 255),
        endpoint(ip_address::v4(10, 0, 0, 1), 256),
        endpoint(ip_address::v4(10, 0, 0, 2), 1),
        endpoint(ip_address::loopback_v6(), 1),
        endpoint::parse("[fe80::1%1]:80").value(),
        endpoint::parse("[fe80::1%2]:80").value(),
    };
    for (std::size_t i = 0; i != std::size(in_order); ++i)
        for (std::size_t k = 0; k != std::size(in_order); ++k) {
            EXPECT_EQ(in_order[i] <=> in_order[k], i <=> k) << i << ' ' << k;
            EXPECT_EQ(in_order[i] == in_order[k], i == k) << i << ' ' << k;
        }
}

TEST(endpoint, is_a_key_of_maps) {
    std::unordered_map<endpoint, int> of_peer;
    std::map<endpoint, int> in_order;
    for (std::uint16_t port = 1; port <= 1000; ++port) {
        const endpoint e(ip_address::loopback(), port);
        of_peer[e] = in_order[e] = port;
    }
    EXPECT_EQ(of_peer.size(), 1000u);
    EXPECT_EQ(of_peer.at(endpoint::parse("127.0.0.1:700").value()), 700);
    EXPECT_EQ(in_order.begin()->second, 1);
    EXPECT_EQ(in_order.rbegin()->second, 1000);
}

TEST(endpoint, is_the_same_key_however_the_system_spells_it) {
    // The system may count the zero at the end of a path, and may fill what follows the port.
    const endpoint path = endpoint::local("/run/a").value();
    endpoint without_zero = path;
    without_zero.resize(path.size() - 1);
    EXPECT_EQ(path, without_zero);
    EXPECT_EQ(std::hash<endpoint>()(path), std::hash<endpoint>()(without_zero));

    const endpoint ip(ip_address::loopback(), 80);
    ::sockaddr_in filled;
    std::memcpy(&filled, ip.data(), sizeof filled);
    std::memset(filled.sin_zero, 1, sizeof filled.sin_zero);
    const endpoint other =
        endpoint::from(reinterpret_cast<const ::sockaddr*>(&filled), sizeof filled);
    EXPECT_EQ(ip, other);
    EXPECT_EQ(std::hash<endpoint>()(ip), std::hash<endpoint>()(other));
}

TEST(endpoint, differs_by_its_bytes_in_another_family) {
    ::sockaddr a{};
    a.sa_family = AF_PACKET;
    const endpoint first = endpoint::from(&a, sizeof a);
    a.sa_data[3] = 1;
    const endpoint second = endpoint::from(&a, sizeof a);
    EXPECT_NE(first, second);
    EXPECT_LT(first, second);
    EXPECT_EQ(second.path(), "");
}

TEST(endpoint, prints_no_endpoint_when_empty) { EXPECT_EQ(endpoint().to_string(), "no endpoint"); }

}  // namespace
