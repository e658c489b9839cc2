// addresses: what ip_address, host_and_port and endpoint take as text.
//
// Laws: an address is one to inet_pton too, and the same; what was taken is printed, and what is
// printed is taken as the same; no part of the text is left out, so no zero is in a host or a path.

#include <arpa/inet.h>

#include <array>

#include "test/fuzz/fuzz.hpp"
#include "weft/io/endpoint.hpp"

namespace {

using weft::endpoint;
using weft::ip_address;
using weft::detail::host_and_port;

template <class Value>
bool is(const weft::result<Value>& r, const Value& v) {
    return r && *r == v;
}

void look_at_address(const std::string& text) {
    const auto a = ip_address::parse(text);
    std::array<std::uint8_t, 16> bytes{};
    const bool whole = text.find('\0') == text.npos;
    const bool v4 = whole && ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1;
    const bool v6 = whole && ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
    if (text.find('%') == text.npos) {
        FUZZ_CHECK(a.has_value() == (v4 || v6));
        FUZZ_CHECK(!a || (a->is_v6() == v6 && a->bytes() == bytes));
    }
    FUZZ_CHECK(!a || (whole && is(ip_address::parse(a->to_string()), *a)));
}

void look_at_host_and_port(const std::string& text) {
    const auto p = host_and_port::parse(text);
    if (!p) return;
    FUZZ_CHECK(!p->host.empty() && p->host.find('\0') == text.npos);
    const bool bracketed = p->host.find(':') != text.npos;
    const std::string printed =
        (bracketed ? '[' + p->host + ']' : p->host) + ':' + std::to_string(p->port);
    const auto again = host_and_port::parse(printed);
    FUZZ_CHECK(again && again->host == p->host && again->port == p->port);
}

void look_at_endpoint(const std::string& text) {
    const auto e = endpoint::parse(text);
    FUZZ_CHECK(!e || host_and_port::parse(text)->port == e->port());
    FUZZ_CHECK(!e || is(endpoint::parse(e->to_string()), *e));
    const auto l = endpoint::local(text);
    FUZZ_CHECK(!l || (l->path() == text && endpoint::from(l->data(), l->size()) == *l));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(weft::testing::fuzz::input(data, size).rest());
    look_at_address(text);
    look_at_host_and_port(text);
    look_at_endpoint(text);
    return 0;
}
