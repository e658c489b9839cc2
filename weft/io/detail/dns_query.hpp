// dns_query: one query for the addresses of a host; c-ares asks, weft waits.
//
// Design: c-ares knows the protocol and makes its calls when weft reports that a descriptor is
// ready. One flow drives the query: its waiter is queued at the descriptors, until the deadline.
// Another flow may drive the next wait, on another thread and with another driver.
//
//      proceed() -- not done --> enlist(waiter), deadline() ... event --> cancel(); proceed()
//
// Only the flow that drives the query calls these functions. The system's configuration
// (resolv.conf, hosts) is read when the query begins.
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

// Takes a list as getaddrinfo() or c-ares returns it. False: there is no memory for all of it.
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

    // Null: there is no memory, or no c-ares. The query may be done already, without having sent
    // anything.
    static std::unique_ptr<dns_query> begin(const std::string& host, const resolver_options&);
    dns_query(const dns_query&) = delete;
    ~dns_query();

    // Makes the calls that can be made. True: the query is done.
    bool proceed() noexcept;
    // When to call proceed() though no event has come.
    time_point deadline() const noexcept;
    // Has the waiter woken when proceed() has work, or at once if it has work already.
    void enlist(waiter& w) noexcept;
    // Ends what enlist() began; whether the waiter was woken or not.
    void cancel() noexcept;

    // When the query is done: zero and at least one address, or an error code of getaddrinfo().
    int error() const noexcept { return error_; }
    std::vector<ip_address> take_addresses() noexcept { return std::move(addresses_); }

private:
    struct channel;

    dns_query() noexcept;

    [[maybe_unused]] bool over_ = false;
    int error_ = 0;
    std::vector<ip_address> addresses_;
    std::unique_ptr<channel> channel_;
};

}  // namespace weft::detail
