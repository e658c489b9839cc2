// resolver: from the name of a host to its endpoints, without keeping the loop waiting.
//
// Its one idea: who asks for a name that is being asked for waits for the same answer, and for a
// short time the answer is kept. It is found by the system's resolver (getaddrinfo), on a thread
// for blocking calls; or by c-ares, without a thread, if the build has it: then one of those who
// wait makes the calls for all, in his own loop, and if he goes another does; when nobody waits any
// more the question is dropped. The threads are of a pool for names alone: a server of names that
// is silent holds each of its callers for seconds, and files and other calls must not wait for
// that.
//
//   auto all = weft::resolve("example.org", 443);        // result<std::vector<endpoint>>
//   auto s = weft::tcp_stream::connect("example.org:443");   // the one that answers first
//
// An address ("127.0.0.1", "::1") is its own answer at once. What the system's configuration says
// about names (hosts, search domains, order of addresses) holds. Errors: resolver_category(),
// with the codes of getaddrinfo; failures are not kept.
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

// By what. c_ares where it is not built in: getaddrinfo; that is said once on standard error.
// getaddrinfo knows all sources of names that the system has (mDNS, LDAP); c-ares knows
// resolv.conf, hosts and servers of DNS.
enum class resolve_by : std::uint8_t {
    automatic,  // as WEFT_RESOLVER says (getaddrinfo or c_ares), or else getaddrinfo
    getaddrinfo,
    c_ares,
};

struct resolver_options {
    duration keep = std::chrono::seconds(5);  // an answer; the system does not tell its own limit
    std::size_t max_names = 1024;             // kept at once, those that were used last
    blocking_pool* pool = nullptr;            // whose threads call the system; null: the names' own
    resolve_by by = resolve_by::automatic;
    // Of c_ares alone; empty or zero: as the system is configured. With a zero byte among them
    // each question fails: invalid_argument.
    std::string servers{};                // "127.0.0.1:5300,[::1]:53"
    duration timeout = duration::zero();  // until a question is asked again
    unsigned tries = 0;                   // of each server
};

namespace detail {

class dns_query;

// One question, for all that wait for its answer.
struct lookup {
    lookup(std::shared_ptr<const resolver_options> o, std::string_view name);
    lookup(const lookup&) = delete;
    ~lookup();

    const std::shared_ptr<const resolver_options> options;
    const std::string host;
    std::unique_ptr<dns_query> query;  // of the leader, if it is by c-ares
    wait_queue queue;                  // guards what follows
    bool led = false;                  // a party sees to the answer
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
blocking_pool& name_pool() noexcept;  // the same; of what asks the system for names
}  // namespace detail

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

    std::size_t call_count() const noexcept;  // questions so far that no answer was kept of
    resolve_by by() const noexcept;           // never automatic

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
    ~resolving() { resign(); }

    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    bool again(waiter& w) noexcept;
    time_point deadline() const noexcept { return until_; }
    result<std::vector<endpoint>> take(const waiter* w, wait_status how);

private:
    static void withdraw(waiter& w) noexcept;
    bool proceed() noexcept;
    void resign() noexcept;

    std::shared_ptr<detail::lookup> lookup_;
    std::uint16_t port_;
    bool leads_ = false;        // set by the leader before it, before the wake
    time_point until_ = never;  // of the present wait
    wait_node node_;
};

// By the process's resolver.
result<std::vector<endpoint>> resolve(std::string_view host, std::uint16_t port,
                                      std::source_location place = std::source_location::current());

}  // namespace weft
