// endpoint: the address of a socket: an IP address and a port, or a path of the file system.
//
// Design: a value in the system's form. Endpoints have a total order and a hash, so an endpoint is
// a key of std::map and std::unordered_map: by family, then by address and port, or by the bytes of
// the name. What the name of a socket does not depend on (padding, a flow label) does not count.
//
//   weft::endpoint(weft::ip_address::loopback(), 7000)
//   weft::endpoint::parse("[::1]:7000")                 // result<endpoint>; also "127.0.0.1:7000"
//   weft::endpoint::local("/run/service")               // a path; one that begins with '@' is
//                                                       // in the abstract namespace of Linux
//
// Limits: the hash has no secret. Peers can choose addresses that collide.
//
//   std::map<weft::endpoint, std::string> name_of_peer;
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.hpp"
#include "weft/io/ip_address.hpp"

namespace weft {

class endpoint {
public:
    endpoint() noexcept = default;  // no family
    endpoint(const ip_address& address, std::uint16_t port) noexcept;
    static result<endpoint> parse(std::string_view text);  // invalid_argument
    // filename_too_long; invalid_argument: empty, or a path with a zero byte in it.
    static result<endpoint> local(std::string_view path);
    static endpoint from(const ::sockaddr* address, ::socklen_t bytes) noexcept;
    // The address of a socket, and that of its peer; no family if there is none.
    static endpoint of_socket(int number) noexcept;
    static endpoint of_peer(int number) noexcept;

    bool is_ip() const noexcept { return family() == AF_INET || family() == AF_INET6; }
    bool is_local() const noexcept { return family() == AF_UNIX; }
    int family() const noexcept { return base().sa_family; }

    // Of an IP endpoint.
    ip_address address() const noexcept;
    std::uint16_t port() const noexcept;
    // Of a local endpoint; empty if it has no name.
    std::string path() const;

    // "127.0.0.1:7000", "[::1]:7000", "/run/service", "@name", "unnamed".
    std::string to_string() const;

    // In the system's form.
    const ::sockaddr* data() const noexcept { return &base(); }
    ::sockaddr* data() noexcept { return reinterpret_cast<::sockaddr*>(&storage_); }
    ::socklen_t size() const noexcept { return size_; }
    static constexpr ::socklen_t capacity = sizeof(::sockaddr_un);
    void resize(::socklen_t bytes) noexcept { size_ = bytes; }

    friend std::strong_ordering operator<=>(const endpoint& a, const endpoint& b) noexcept;
    friend bool operator==(const endpoint& a, const endpoint& b) noexcept { return a <=> b == 0; }

private:
    friend struct std::hash<endpoint>;

    const ::sockaddr& base() const noexcept {
        return reinterpret_cast<const ::sockaddr&>(storage_);
    }
    // The bytes that name a socket of another family than IP; of an abstract name with its zero.
    std::string_view name() const noexcept;

    ::sockaddr_un storage_{};  // the largest form
    ::socklen_t size_ = 0;
};

namespace detail {

// The two parts of "host:port", "1.2.3.4:80", "[::1]:80"; the host is without brackets.
struct host_and_port {
    std::string host;
    std::uint16_t port = 0;
    static result<host_and_port> parse(std::string_view text);  // invalid_argument
};

}  // namespace detail
}  // namespace weft

template <>
struct std::hash<weft::endpoint> {
    std::size_t operator()(const weft::endpoint& e) const noexcept;
};
