#include "weft/io/resolver.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

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

}  // namespace

const std::error_category& resolver_category() noexcept {
    static const category_of_resolver the_one;
    return the_one;
}

namespace detail {

class resolver_core {
public:
    explicit resolver_core(resolver_options o) : options_(o) {}

    // The present one of the name, or a new one, whose call is begun.
    static std::shared_ptr<lookup> find(const std::shared_ptr<resolver_core>& self,
                                        std::string_view host) {
        auto l = std::make_shared<lookup>();
        l->host = host;
        if (const auto address = ip_address::parse(host)) {
            l->addresses.push_back(*address);
            l->over = true;
            return l;
        }
        const std::lock_guard held(self->lock_);
        const auto at = self->names_.find(l->host);
        if (at != self->names_.end() && !is_stale(*at->second)) return at->second;
        self->make_room();
        self->names_.insert_or_assign(l->host, l);
        ++self->call_count_;
        blocking_pool* const pool = self->options_.pool;
        if (!(pool != nullptr ? *pool : default_blocking_pool()).post([self, l] {
                self->call(*l);
            })) {
            l->error = std::make_error_code(std::errc::resource_unavailable_try_again);
            l->over = true;
            self->names_.erase(l->host);
        }
        return l;
    }

    void forget_all() noexcept {
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
    void make_room() {
        if (names_.size() < options_.max_names) return;
        std::erase_if(names_, [](const auto& n) { return is_stale(*n.second); });
        if (names_.size() >= options_.max_names) names_.erase(names_.begin());
    }

    // On a thread for blocking calls.
    void call(lookup& l) noexcept {
        ::addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_ADDRCONFIG;
        ::addrinfo* all = nullptr;
        const int r = ::getaddrinfo(l.host.c_str(), nullptr, &hints, &all);
        std::vector<ip_address> found;
        for (const ::addrinfo* a = all; a != nullptr; a = a->ai_next) {
            const endpoint e = endpoint::from(a->ai_addr, a->ai_addrlen);
            if (e.is_ip()) found.push_back(e.address());
        }
        if (all != nullptr) ::freeaddrinfo(all);

        wait_list woken;
        {
            const std::lock_guard held(l.queue);
            if (r != 0)
                l.error = error_of(r);
            else if (found.empty())
                l.error = error_of(EAI_NONAME);
            l.addresses = std::move(found);
            l.expires = after(steady_now(), options_.keep);
            l.over = true;
            l.queue.claim_all(woken);
        }
        wait_queue::wake_all(woken);
    }

    const resolver_options options_;
    mutable std::mutex lock_;  // guards what follows
    std::map<std::string, std::shared_ptr<lookup>, std::less<>> names_;
    std::size_t call_count_ = 0;
};

}  // namespace detail

resolver& detail::default_resolver() {
    static resolver* const the_one = new resolver();
    return *the_one;
}

resolver::resolver(resolver_options o) : core_(std::make_shared<detail::resolver_core>(o)) {}
resolver::~resolver() = default;

void resolver::forget_all() noexcept { core_->forget_all(); }
std::size_t resolver::call_count() const noexcept { return core_->call_count(); }

resolver::resolving resolver::async_resolve(std::string_view host, std::uint16_t port) {
    return {detail::resolver_core::find(core_, host), port};
}

result<std::vector<endpoint>> resolver::resolve(std::string_view host, std::uint16_t port,
                                                place_t place) {
    auto op = async_resolve(host, port);
    return detail::block_for(op, place);
}

bool resolver::resolving::ready() noexcept {
    const std::lock_guard held(lookup_->queue);
    return lookup_->over;
}

bool resolver::resolving::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist("the address of a host", lookup_.get(), this, [](waiter& me) noexcept {
        auto& self = me.operation<resolving>();
        self.lookup_->queue.withdraw(self.node_);
    });
    w.await_outside();
    const std::lock_guard held(lookup_->queue);
    if (lookup_->over) return false;
    lookup_->queue.push_back(node_);
    return true;
}

result<std::vector<endpoint>> resolver::resolving::take(const waiter*, wait_status how) const {
    if (how == wait_status::timed_out) return failure(std::errc::timed_out);
    if (how == wait_status::stopped) return failure(std::errc::operation_canceled);
    const std::lock_guard held(lookup_->queue);
    if (lookup_->error) return failure(lookup_->error);
    std::vector<endpoint> all;
    all.reserve(lookup_->addresses.size());
    for (const ip_address& a : lookup_->addresses) all.emplace_back(a, port_);
    return all;
}

result<std::vector<endpoint>> resolve(std::string_view host, std::uint16_t port,
                                      std::source_location place) {
    return detail::default_resolver().resolve(host, port, place);
}

}  // namespace weft
