#include "weft/io/resolver.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "weft/base/detail/line.hpp"
#include "weft/base/detail/system_mutex.hpp"
#include "weft/io/detail/c_string.hpp"
#include "weft/io/detail/dns_query.hpp"

namespace weft {
namespace {

class category_of_resolver final : public std::error_category {
    const char* name() const noexcept override { return "resolver"; }
    std::string message(int value) const override { return ::gai_strerror(value); }
};

std::error_code error_of(int value) noexcept {
    if (value == EAI_SYSTEM) return {errno, std::system_category()};
    return {value, resolver_category()};
}

// What WEFT_RESOLVER names; ends the program if the name is unknown.
resolver_backend by_environment() noexcept {
    const char* text = std::getenv("WEFT_RESOLVER");
    if (text == nullptr || *text == '\0' || std::strcmp(text, "getaddrinfo") == 0)
        return resolver_backend::getaddrinfo;
    if (std::strcmp(text, "c_ares") == 0) return resolver_backend::c_ares;
    detail::line line;
    line.text("weft: WEFT_RESOLVER is \"").text(text);
    line.text("\"; it can be getaddrinfo or c_ares\n").write(2);
    std::_Exit(2);
}

resolver_backend choose(resolver_backend wanted) noexcept {
    if (wanted == resolver_backend::automatic) wanted = by_environment();
    if (wanted != resolver_backend::c_ares || detail::dns_query::is_built_in()) return wanted;
    // Relaxed: all that matters is that one caller reports it.
    static constinit atomic<bool> said{false};
    if (!said.exchange(true, std::memory_order_relaxed)) {
        detail::line line;
        line.text("weft: c-ares is not built in; names are resolved by getaddrinfo\n").write(2);
    }
    return resolver_backend::getaddrinfo;
}

std::shared_ptr<const resolver_options> settled(resolver_options o) {
    o.by = choose(o.by);
    return std::make_shared<const resolver_options>(std::move(o));
}

}  // namespace

const std::error_category& resolver_category() noexcept {
    static const category_of_resolver the_one;
    return the_one;
}

namespace detail {

lookup::lookup(std::shared_ptr<const resolver_options> o, std::string_view name)
    : options(std::move(o)), host(name) {}
lookup::~lookup() = default;

// Stores the answer and wakes all waiters. Not under the lock.
static void publish(lookup& l, std::error_code error, std::vector<ip_address> found) noexcept {
    wait_list woken;
    {
        const std::lock_guard held(l.queue);
        l.error = error;
        l.addresses = std::move(found);
        l.expires = after(steady_now(), l.options->keep);
        l.over = true;
        l.queue.claim_all(woken);
    }
    wait_queue::wake_all(woken);
}

class resolver_core {
public:
    explicit resolver_core(resolver_options o) : options_(settled(std::move(o))) {}

    resolver_backend by() const noexcept { return options_->by; }

    // The present lookup of the name, or a new one, whose call is started.
    static std::shared_ptr<lookup> find(const std::shared_ptr<resolver_core>& self,
                                        std::string_view host) {
        auto l = std::make_shared<lookup>(self->options_, host);
        if (const auto address = ip_address::parse(host)) {
            l->addresses.push_back(*address);
            l->over = true;
            return l;
        }
        if (!is_c_string(host)) {  // the system would ask for another name
            l->error = error_of(EAI_NONAME);
            l->over = true;
            return l;
        }
        if (!is_c_string(self->options_->servers)) {
            l->error = std::make_error_code(std::errc::invalid_argument);
            l->over = true;
            return l;
        }
        const std::lock_guard held(self->lock_);
        const auto at = self->names_.find(host);
        if (at != self->names_.end() && !is_stale(*at->second.question)) {
            at->second.used = ++self->uses_;
            return at->second.question;
        }
        if (self->make_room()) self->names_.insert_or_assign(l->host, kept{l, ++self->uses_});
        ++self->call_count_;
        if (self->options_->by == resolver_backend::c_ares) return l;  // its waiters make the calls
        l->led = true;
        blocking_pool* const pool = self->options_->pool;
        if (!(pool != nullptr ? *pool : name_pool()).post([l] { call(*l); })) {
            l->error = std::make_error_code(std::errc::resource_unavailable_try_again);
            l->over = true;
            self->names_.erase(l->host);
        }
        return l;
    }

    void clear_cache() noexcept {
        const std::lock_guard held(lock_);
        names_.clear();
    }
    std::size_t call_count() const noexcept {
        const std::lock_guard held(lock_);
        return call_count_;
    }

private:
    static bool is_stale(lookup& l) noexcept {
        const std::lock_guard held(l.queue);
        return l.over && (l.error || l.expires <= steady_now());
    }
    // Whether a caller waits for the answer, or a thread is to find it. Under the lock no other
    // caller gets a reference to a lookup that has only this one.
    static bool is_under_way(const std::shared_ptr<lookup>& l) noexcept {
        const std::lock_guard held(l->queue);
        return !l->over && l.use_count() != 1;
    }
    // Removes the answers that have expired, or else the one that was not used for longest; never a
    // lookup under way, which other callers may join. False: there is no room.
    bool make_room() {
        if (names_.size() < options_->max_cache_entry_count) return true;
        std::erase_if(names_, [](const auto& n) { return is_stale(*n.second.question); });
        if (names_.size() < options_->max_cache_entry_count) return true;
        auto oldest = names_.end();
        for (auto n = names_.begin(); n != names_.end(); ++n)
            if ((oldest == names_.end() || n->second.used < oldest->second.used) &&
                !is_under_way(n->second.question))
                oldest = n;
        if (oldest == names_.end()) return false;
        names_.erase(oldest);
        return true;
    }

    // On a thread for blocking calls.
    static void call(lookup& l) noexcept {
        ::addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_ADDRCONFIG;
        ::addrinfo* all = nullptr;
        const int r = ::getaddrinfo(l.host.c_str(), nullptr, &hints, &all);
        std::vector<ip_address> found;
        std::error_code error;
        if (r != 0)
            error = error_of(r);
        else if (!keep_addresses(all, found))
            error = error_of(EAI_MEMORY);
        else if (found.empty())
            error = error_of(EAI_NONAME);
        if (all != nullptr) ::freeaddrinfo(all);
        publish(l, error, std::move(found));
    }

    const std::shared_ptr<const resolver_options> options_;
    mutable system_mutex lock_;  // guards what follows
    struct kept {
        std::shared_ptr<lookup> question;
        std::uint64_t used;  // the count of uses_ at the last use
    };
    std::map<std::string, kept, std::less<>> names_;
    std::uint64_t uses_ = 0;
    std::size_t call_count_ = 0;
};

}  // namespace detail

resolver& detail::default_resolver() {
    static resolver* const the_one = new resolver();
    return *the_one;
}

blocking_pool& detail::name_pool() noexcept {
    alignas(blocking_pool) static std::byte storage[sizeof(blocking_pool)];
    static blocking_pool& the_one = *::new (storage) blocking_pool;
    return the_one;
}

resolver::resolver(resolver_options o)
    : core_(std::make_shared<detail::resolver_core>(std::move(o))) {}
resolver::~resolver() = default;

void resolver::clear_cache() noexcept { core_->clear_cache(); }
std::size_t resolver::call_count() const noexcept { return core_->call_count(); }
resolver_backend resolver::by() const noexcept { return core_->by(); }

resolver::resolve_operation resolver::async_resolve(std::string_view host, std::uint16_t port) {
    return {detail::resolver_core::find(core_, host), port};
}

result<std::vector<endpoint>> resolver::resolve(std::string_view host, std::uint16_t port,
                                                std::source_location caller) {
    auto op = async_resolve(host, port);
    return detail::block_for(op, caller);
}

bool resolver::resolve_operation::ready() noexcept {
    const std::lock_guard held(lookup_->queue);
    return lookup_->over;
}

bool resolver::resolve_operation::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist("the address of a host", lookup_.get(), this, cancel);
    w.mark_external();
    {
        const std::lock_guard held(lookup_->queue);
        if (lookup_->over) return false;
        if (std::exchange(lookup_->led, true)) {
            lookup_->queue.push_back(node_);
            return true;
        }
    }
    leads_ = true;
    if (proceed()) return false;
    lookup_->query->enlist(w);
    return true;
}

// Called by the waiter that drives the query: makes the calls that can be made. True: there is an
// answer.
bool resolver::resolve_operation::proceed() noexcept {
    detail::lookup& l = *lookup_;
    if (l.query == nullptr) l.query = detail::dns_query::begin(l.host, *l.options);
    if (l.query != nullptr && !l.query->proceed()) {
        until_ = l.query->deadline();
        return false;
    }
    const auto query = std::move(l.query);
    leads_ = false;  // nor does a later waiter
    const int error = query != nullptr ? query->error() : EAI_MEMORY;
    detail::publish(l, error_of(error),
                    query != nullptr ? query->take_addresses() : std::vector<ip_address>());
    return true;
}

// A waiter to which the query was passed goes on from its present state.
bool resolver::resolve_operation::again(waiter& w) noexcept {
    if (!leads_) return true;
    if (lookup_->query != nullptr) lookup_->query->cancel();
    if (proceed() || !w.rearm(until_, reports_stop)) return true;
    lookup_->query->enlist(w);
    return false;
}

void resolver::resolve_operation::cancel(waiter& w) noexcept {
    auto& self = w.operation<resolve_operation>();
    if (self.leads_ && self.lookup_->query != nullptr) self.lookup_->query->cancel();
    self.lookup_->queue.cancel(self.node_);
}

// The waiter that drives the query stops waiting: the next waiter drives it; without one, no answer
// is needed.
void resolver::resolve_operation::resign() noexcept {
    if (!std::exchange(leads_, false)) return;
    detail::lookup& l = *lookup_;
    std::unique_ptr<detail::dns_query> dropped;
    wait_node* next;
    {
        const std::lock_guard held(l.queue);
        next = l.queue.claim_first();
        if (next != nullptr) {
            next->owner->operation<resolve_operation>().leads_ = true;
        } else {
            dropped = std::move(l.query);
            l.led = false;
        }
    }
    if (next != nullptr) next->owner->wake();
}

result<std::vector<endpoint>> resolver::resolve_operation::take(const waiter*, wait_status how) {
    resign();
    const std::lock_guard held(lookup_->queue);
    if (!lookup_->over)
        return failure(how == wait_status::timed_out ? std::errc::timed_out
                                                     : std::errc::operation_canceled);
    if (lookup_->error) return failure(lookup_->error);
    std::vector<endpoint> all;
    all.reserve(lookup_->addresses.size());
    for (const ip_address& a : lookup_->addresses) all.emplace_back(a, port_);
    return all;
}

result<std::vector<endpoint>> resolve(std::string_view host, std::uint16_t port,
                                      std::source_location caller) {
    return detail::default_resolver().resolve(host, port, caller);
}

}  // namespace weft
