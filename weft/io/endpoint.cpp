#include "weft/io/endpoint.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "weft/io/detail/c_string.hpp"

namespace weft {

static_assert(sizeof(::sockaddr_un) >= sizeof(::sockaddr_in6));

endpoint::endpoint(const ip_address& address, std::uint16_t port) noexcept {
    if (address.is_v6()) {
        ::sockaddr_in6 a{};
        a.sin6_family = AF_INET6;
        a.sin6_port = htons(port);
        a.sin6_scope_id = address.scope();
        std::memcpy(&a.sin6_addr, address.bytes().data(), 16);
        std::memcpy(&storage_, &a, size_ = sizeof a);
    } else {
        ::sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_port = htons(port);
        std::memcpy(&a.sin_addr, address.bytes().data(), 4);
        std::memcpy(&storage_, &a, size_ = sizeof a);
    }
}

endpoint endpoint::from(const ::sockaddr* address, ::socklen_t bytes) noexcept {
    endpoint e;
    e.size_ = std::min(bytes, capacity);
    std::memcpy(&e.storage_, address, e.size_);
    return e;
}

namespace {

endpoint asked(int number, int (*call)(int, ::sockaddr*, ::socklen_t*)) noexcept {
    endpoint e;
    ::socklen_t bytes = endpoint::capacity;
    if (call(number, e.data(), &bytes) != 0) return {};
    e.resize(std::min(bytes, endpoint::capacity));
    return e;
}

}  // namespace

endpoint endpoint::of_socket(int number) noexcept { return asked(number, ::getsockname); }
endpoint endpoint::of_peer(int number) noexcept { return asked(number, ::getpeername); }

result<detail::host_and_port> detail::host_and_port::parse(std::string_view text) {
    const failure bad(std::errc::invalid_argument);
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos) return bad;
    std::string_view host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    host_and_port r;
    const char* const end = digits.data() + digits.size();
    const auto number = std::from_chars(digits.data(), end, r.port);
    if (digits.empty() || number.ec != std::errc() || number.ptr != end) return bad;
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != host.npos)
        return bad;
    if (host.empty() || host.find_first_of({"[]\0", 3}) != host.npos) return bad;
    r.host = host;
    return r;
}

result<endpoint> endpoint::parse(std::string_view text) {
    const failure bad(std::errc::invalid_argument);
    const auto parts = detail::host_and_port::parse(text);
    if (!parts) return bad;
    auto address = ip_address::parse(parts->host);
    if (!address || address->is_v6() != (text.front() == '[')) return bad;
    return endpoint(*address, parts->port);
}

result<endpoint> endpoint::local(std::string_view path) {
    ::sockaddr_un a{};
    a.sun_family = AF_UNIX;
    const bool abstract = !path.empty() && path.front() == '@';
    // A path ends with a zero byte; a name of the abstract namespace begins with one, and may
    // contain more.
    if (path.empty() || (!abstract && !detail::is_c_string(path)))
        return failure(std::errc::invalid_argument);
    if (path.size() + !abstract > sizeof a.sun_path) return failure(std::errc::filename_too_long);
    std::copy(path.begin(), path.end(), a.sun_path);
    if (abstract) a.sun_path[0] = '\0';
    const auto size = offsetof(::sockaddr_un, sun_path) + path.size() + !abstract;
    return from(reinterpret_cast<const ::sockaddr*>(&a), static_cast<::socklen_t>(size));
}

ip_address endpoint::address() const noexcept {
    if (family() == AF_INET6) {
        ::sockaddr_in6 a;
        std::memcpy(&a, &storage_, sizeof a);
        std::array<std::uint8_t, 16> bytes;
        std::memcpy(bytes.data(), &a.sin6_addr, 16);
        return ip_address::v6(bytes, a.sin6_scope_id);
    }
    if (family() != AF_INET) return {};
    ::sockaddr_in a;
    std::memcpy(&a, &storage_, sizeof a);
    std::array<std::uint8_t, 4> b;
    std::memcpy(b.data(), &a.sin_addr, 4);
    return ip_address::v4(b[0], b[1], b[2], b[3]);
}

std::uint16_t endpoint::port() const noexcept {
    // At the same offset in both.
    static_assert(offsetof(::sockaddr_in, sin_port) == offsetof(::sockaddr_in6, sin6_port));
    if (!is_ip()) return 0;
    ::sockaddr_in a;
    std::memcpy(&a, &storage_, sizeof a);
    return ntohs(a.sin_port);
}

std::string_view endpoint::name() const noexcept {
    constexpr std::size_t head = offsetof(::sockaddr_un, sun_path);
    if (is_ip() || size_ <= head) return {};
    const std::size_t bytes = size_ - head;
    const bool is_path = is_local() && storage_.sun_path[0] != '\0';
    return {storage_.sun_path, is_path ? ::strnlen(storage_.sun_path, bytes) : bytes};
}

std::string endpoint::path() const {
    const std::string_view n = is_local() ? name() : std::string_view();
    return !n.empty() && n[0] == '\0' ? '@' + std::string(n.substr(1)) : std::string(n);
}

std::string endpoint::to_string() const {
    if (is_local()) {
        const std::string p = path();
        return p.empty() ? "unnamed" : p;
    }
    if (!is_ip()) return "no endpoint";
    const std::string a = address().to_string();
    return (family() == AF_INET6 ? '[' + a + ']' : a) + ':' + std::to_string(port());
}

std::strong_ordering operator<=>(const endpoint& a, const endpoint& b) noexcept {
    if (const auto by_family = a.family() <=> b.family(); by_family != 0) return by_family;
    if (!a.is_ip()) return a.name() <=> b.name();
    if (const auto by_address = a.address() <=> b.address(); by_address != 0) return by_address;
    return a.port() <=> b.port();
}

}  // namespace weft

std::size_t std::hash<weft::endpoint>::operator()(const weft::endpoint& e) const noexcept {
    if (!e.is_ip()) return std::hash<std::string_view>()(e.name());
    // The multiplier spreads the port over all bits (2^64 over the golden ratio).
    return std::hash<weft::ip_address>()(e.address()) ^
           static_cast<std::size_t>(e.port() * 0x9e3779b97f4a7c15u);
}
