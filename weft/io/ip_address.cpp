#include "weft/io/ip_address.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "weft/io/detail/c_string.hpp"

namespace weft {

ip_address ip_address::v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) noexcept {
    ip_address r;
    r.bytes_ = {a, b, c, d};
    return r;
}

ip_address ip_address::v6(const std::array<std::uint8_t, 16>& bytes, std::uint32_t scope) noexcept {
    ip_address r;
    r.v6_ = true;
    r.bytes_ = bytes;
    r.scope_ = scope;
    return r;
}

ip_address ip_address::loopback_v6() noexcept {
    std::array<std::uint8_t, 16> b{};
    b[15] = 1;
    return v6(b);
}

result<ip_address> ip_address::parse(std::string_view text) {
    const failure bad(std::errc::invalid_argument);
    const std::size_t percent = text.find('%');
    const std::string_view address = text.substr(0, percent);
    char z[INET6_ADDRSTRLEN];
    if (address.empty() || address.size() >= sizeof z) return bad;
    if (!detail::is_c_string(text)) return bad;  // the system would read no further
    *std::copy(address.begin(), address.end(), z) = '\0';

    ip_address r;
    if (percent == text.npos && ::inet_pton(AF_INET, z, r.bytes_.data()) == 1) return r;
    if (::inet_pton(AF_INET6, z, r.bytes_.data()) != 1) return bad;
    r.v6_ = true;
    if (percent == text.npos) return r;

    const std::string scope(text.substr(percent + 1));
    const char* const end = scope.data() + scope.size();
    const auto number = std::from_chars(scope.data(), end, r.scope_);
    if (number.ec != std::errc() || number.ptr != end) r.scope_ = ::if_nametoindex(scope.c_str());
    if (r.scope_ == 0) return bad;
    return r;
}

bool ip_address::is_loopback() const noexcept {
    return v6_ ? bytes_ == loopback_v6().bytes_ : bytes_[0] == 127;
}

bool ip_address::is_any() const noexcept {
    return std::all_of(bytes_.begin(), bytes_.end(), [](std::uint8_t b) { return b == 0; });
}

std::string ip_address::to_string() const {
    char z[INET6_ADDRSTRLEN];
    ::inet_ntop(v6_ ? AF_INET6 : AF_INET, bytes_.data(), z, sizeof z);
    std::string r = z;
    if (scope_ != 0) r += '%' + std::to_string(scope_);
    return r;
}

}  // namespace weft

std::size_t std::hash<weft::ip_address>::operator()(const weft::ip_address& a) const noexcept {
    const std::string_view bytes(reinterpret_cast<const char*>(a.bytes().data()),
                                 a.is_v6() ? 16 : 4);
    return std::hash<std::string_view>()(bytes) + a.scope();
}
