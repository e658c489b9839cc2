// ip_address: an address of IPv4 or IPv6, as a value: parsed, printed, compared.
//
// Design: addresses have a total order, IPv4 before IPv6 and each in numerical order, and a hash
// (without a secret: see endpoint.hpp).
//
// Limits: parse() resolves no names of hosts: resolver.hpp does.
//
//   auto a = weft::ip_address::parse("::1");            // result<ip_address>
//   a->to_string();                                     // "::1"
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.hpp"

namespace weft {

class ip_address {
public:
    ip_address() noexcept = default;  // 0.0.0.0
    static ip_address v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) noexcept;
    // In network byte order; `scope` is the index of an interface, for link-local addresses.
    static ip_address v6(const std::array<std::uint8_t, 16>& bytes,
                         std::uint32_t scope = 0) noexcept;
    static ip_address any() noexcept { return {}; }
    static ip_address loopback() noexcept { return v4(127, 0, 0, 1); }
    static ip_address any_v6() noexcept { return v6({}); }
    static ip_address loopback_v6() noexcept;

    // "127.0.0.1", "::1", "fe80::1%eth0" or "fe80::1%2"; no host names. invalid_argument.
    static result<ip_address> parse(std::string_view text);

    bool is_v6() const noexcept { return v6_; }
    bool is_loopback() const noexcept;
    bool is_any() const noexcept;
    // For IPv4 the first four bytes.
    const std::array<std::uint8_t, 16>& bytes() const noexcept { return bytes_; }
    std::uint32_t scope() const noexcept { return scope_; }

    // In the form of RFC 5952.
    std::string to_string() const;

    friend auto operator<=>(const ip_address&, const ip_address&) noexcept = default;

private:
    bool v6_ = false;
    std::array<std::uint8_t, 16> bytes_{};
    std::uint32_t scope_ = 0;
};

}  // namespace weft

template <>
struct std::hash<weft::ip_address> {
    std::size_t operator()(const weft::ip_address& a) const noexcept;
};
