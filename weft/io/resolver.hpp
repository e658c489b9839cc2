// resolver: resolves the name of a host to its endpoints, without blocking the loop.
//
// Design: callers that ask for the same name at the same time wait for one answer, and the answer
// is kept for a short time. The system's resolver (getaddrinfo) finds it, on a thread for blocking
// calls; or c-ares does, without a thread, if the build has it: then one of the waiters drives the
// query for all, on its own loop. When that waiter leaves, it passes the query to another; when
// none is left, the query is dropped. The threads belong to a pool for names alone: a name server
// that does not answer holds each of its callers for seconds, and files and other calls must not
// wait for that.
//
// An address ("127.0.0.1", "::1") is its own answer at once. The system's configuration of names
// (hosts, search domains, order of addresses) holds. Errors: resolver_category(), with the codes of
// getaddrinfo.
//
// Limits: failures are not kept. The system's resolver reports no lifetime of an answer:
// resolver_options::keep is the same for all.
//
//   auto all = weft::resolve("example.org", 443);        // result<std::vector<endpoint>>
//   auto s = weft::tcp_stream::connect("example.org:443");   // the one that answers first
//
// Model: none, one lock guards all that is shared.
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

// What resolves names. In a build without c-ares, c_ares falls back to getaddrinfo, and standard
// error reports that once. getaddrinfo knows all sources of names that the system has (mDNS, LDAP);
// c-ares knows resolv.conf, hosts and DNS servers.
enum class resolver_backend : std::uint8_t {
    automatic,  // named by WEFT_RESOLVER (getaddrinfo or c_ares), or else getaddrinfo
    getaddrinfo,
    c_ares,
};

// How names are looked up.
struct resolver_options {
    blocking_pool* pool = nullptr;  // whose threads make the calls; null: that for names
    resolver_backend by = resolver_backend::automatic;
    // Three for c_ares alone; empty, no_timeout or zero tries: as the system is configured. With a
    // zero byte in it each query fails: invalid_argument.
    std::string servers{};                     // "127.0.0.1:5300,[::1]:53"
    duration timeout = no_timeout;             // until a query is sent again
    unsigned tries = 0;                        // attempts per server
    duration keep = std::chrono::seconds(5);   // of an answer; the system reports no limit itself
    std::size_t max_cache_entry_count = 1024;  // names kept; drops the least recently used
};

namespace detail {

class dns_query;

// One query, for all callers that wait for its answer.
struct lookup {
    lookup(std::shared_ptr<const resolver_options> o, std::string_view name);
    lookup(const lookup&) = delete;
    lookup& operator=(const lookup&) = delete;
    ~lookup();

    const std::shared_ptr<const resolver_options> options;
    const std::string host;
    std::unique_ptr<dns_query> query;  // with c-ares; used by the waiter that drives the query
    wait_queue queue;                  // guards what follows
    bool led = false;                  // a waiter or a thread finds the answer
    bool over = false;
    std::error_code error;
    std::vector<ip_address> addresses;
    time_point expires = never;
};

class resolver_core;

}  // namespace detail

class resolver;

namespace detail {
resolver& default_resolver();         // the process's, never destroyed
blocking_pool& name_pool() noexcept;  // the same; for the calls that ask the system for names
}  // namespace detail

class resolver {
public:
    class resolve_operation;

    explicit resolver(resolver_options o = {});
    resolver(const resolver&) = delete;
    resolver& operator=(const resolver&) = delete;
    // Releases what the resolver keeps; look-ups that have started end by themselves.
    ~resolver();

    // In the order in which to try them; at least one.
    [[nodiscard]] resolve_operation async_resolve(std::string_view host, std::uint16_t port);
    result<std::vector<endpoint>> resolve(
        std::string_view host, std::uint16_t port,
        std::source_location caller = std::source_location::current());
    void clear_cache() noexcept;  // drops the answers that are kept

    std::size_t call_count() const noexcept;  // queries so far that no kept answer could serve
    resolver_backend by() const noexcept;     // never automatic

private:
    std::shared_ptr<detail::resolver_core> core_;
};

class resolver::resolve_operation {
public:
    static constexpr bool reports_stop = true;

    resolve_operation(std::shared_ptr<detail::lookup> l, std::uint16_t port) noexcept
        : lookup_(std::move(l)), port_(port) {}
    // Before it is awaited.
    resolve_operation(resolve_operation&& other) noexcept
        : lookup_(std::move(other.lookup_)), port_(other.port_) {}
    // Passes the query to another waiter, or drops it.
    ~resolve_operation() { resign(); }

    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    bool again(waiter& w) noexcept;
    time_point deadline() const noexcept { return until_; }
    result<std::vector<endpoint>> take(const waiter* w, wait_status how);

private:
    static void cancel(waiter& w) noexcept;
    bool proceed() noexcept;
    void resign() noexcept;

    std::shared_ptr<detail::lookup> lookup_;
    std::uint16_t port_;
    bool leads_ = false;        // drives the query; set by the waiter before it, before the wake
    time_point until_ = never;  // of the present wait
    wait_node node_;
};

// By the process's resolver.
result<std::vector<endpoint>> resolve(
    std::string_view host, std::uint16_t port,
    std::source_location caller = std::source_location::current());

}  // namespace weft
