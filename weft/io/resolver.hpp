// resolver: from the name of a host to its endpoints, without keeping the loop waiting.
//
// Its one idea: the system's resolver (getaddrinfo) runs on a thread for blocking calls; who asks
// for the same name meanwhile waits for the same call, and for a short time the answer is kept.
//
//   auto all = weft::resolve("example.org", 443);        // result<std::vector<endpoint>>
//   auto s = weft::tcp_stream::connect("example.org:443");   // tries them in order
//
// An address ("127.0.0.1", "::1") is its own answer at once. What the system's configuration says
// about names (hosts, search domains, order of addresses) holds. Errors: resolver_category(),
// with the codes of getaddrinfo; failures are not kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weft/io/endpoint.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

const std::error_category& resolver_category() noexcept;

struct resolver_options {
    duration keep = std::chrono::seconds(5);  // an answer; the system does not tell its own limit
    std::size_t max_names = 1024;             // kept at once
    blocking_pool* pool = nullptr;            // whose threads call the system; null: the default
};

namespace detail {

// One call of the system, for all who wait for its answer.
struct lookup {
    std::string host;
    wait_queue queue;  // guards what follows
    bool over = false;
    std::error_code error;
    std::vector<ip_address> addresses;
    time_point expires = never;
};

class resolver_core;

}  // namespace detail

class resolver;

namespace detail {
resolver& default_resolver();  // the process's, never destroyed
}

class resolver {
    using place_t = std::source_location;

public:
    class resolving;

    explicit resolver(resolver_options o = {});
    resolver(const resolver&) = delete;
    ~resolver();

    // In the order in which they are to be tried; at least one.
    [[nodiscard]] resolving async_resolve(std::string_view host, std::uint16_t port);
    result<std::vector<endpoint>> resolve(std::string_view host, std::uint16_t port,
                                          place_t place = place_t::current());
    void forget_all() noexcept;  // answers that are kept

    std::size_t call_count() const noexcept;  // of the system so far

private:
    std::shared_ptr<detail::resolver_core> core_;
};

class resolver::resolving {
public:
    static constexpr bool reports_stop = true;

    resolving(std::shared_ptr<detail::lookup> l, std::uint16_t port) noexcept
        : lookup_(std::move(l)), port_(port) {}
    // Before it is awaited.
    resolving(resolving&& other) noexcept : lookup_(std::move(other.lookup_)), port_(other.port_) {}

    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    result<std::vector<endpoint>> take(const waiter* w, wait_status how) const;

private:
    std::shared_ptr<detail::lookup> lookup_;
    std::uint16_t port_;
    wait_node node_;
};

// By the process's resolver.
result<std::vector<endpoint>> resolve(std::string_view host, std::uint16_t port,
                                      std::source_location place = std::source_location::current());

}  // namespace weft
