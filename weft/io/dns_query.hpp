// dns_query: one question for the addresses of a host, asked by c-ares and waited for by weft.
//
// Its one idea: c-ares knows the protocol and makes its calls when it is told that it can; which
// descriptors it waits for, and until when, stands in the waiter of one party, the one that leads
// the query. The leader may change from wait to wait, and with it the thread and the driver.
//
//      proceed() -- not over --> enlist(waiter), deadline() ... event --> withdraw(); proceed()
//
// Only who leads calls anything here. What the system is configured to (resolv.conf, hosts) is read
// when the query begins.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "weft/base/platform.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/io/ip_address.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {
struct resolver_options;
}

namespace weft::detail {

// Of a list as getaddrinfo gives it, or c-ares. False: there is no memory for all of them.
template <class Node>
[[nodiscard]] bool keep_addresses(const Node* first, std::vector<ip_address>& into) noexcept {
#if WEFT_EXCEPTIONS
    try {
#endif
        for (const Node* n = first; n != nullptr; n = n->ai_next) {
            const endpoint e = endpoint::from(n->ai_addr, n->ai_addrlen);
            if (e.is_ip()) into.push_back(e.address());
        }
        return true;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        into.clear();
        return false;
    }
#endif
}

class dns_query {
public:
    static bool is_built_in() noexcept;

    // Null: there is no memory for it, or no c-ares. It need not ask anything: it may be over.
    static std::unique_ptr<dns_query> begin(const std::string& host, const resolver_options&);
    dns_query(const dns_query&) = delete;
    ~dns_query();

    // Makes what calls can be made. True: it is over.
    bool proceed() noexcept;
    // When to proceed though nothing has come.
    time_point deadline() const noexcept;
    // Has the waiter woken when there is something to proceed with, or at once if there is.
    void enlist(waiter& w) noexcept;
    // No more of it; whether it was woken or not.
    void withdraw() noexcept;

    // Of one that is over: zero and at least one address, or a code of getaddrinfo.
    int error() const noexcept { return error_; }
    std::vector<ip_address> take_addresses() noexcept { return std::move(addresses_); }

private:
    struct channel;

    dns_query() noexcept;

    bool over_ = false;
    int error_ = 0;
    std::vector<ip_address> addresses_;
    std::unique_ptr<channel> channel_;
};

}  // namespace weft::detail
