// connect_by_name: resolves, and connects to the endpoints in order until one answers: what
// tcp_stream::connect("host:port") is.
//
// Its one idea: the operations that it consists of are awaited one after the other in one wait, by
// the same waiter; the deadline is of all of them together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/io/connect.hpp"
#include "weft/io/resolver.hpp"

namespace weft::detail {

template <class Stream>
class connecting_by_name {
public:
    static constexpr bool reports_stop = true;

    connecting_by_name(std::string_view where, duration timeout)
        : where_(host_and_port::parse(where)), timeout_(timeout) {}
    connecting_by_name(connecting_by_name&& other)  // before it is awaited
        : where_(std::move(other.where_)), timeout_(other.timeout_) {}

    bool ready() {
        if (!where_) return fail(where_.error());
        resolving_.emplace(default_resolver().async_resolve(where_->host, where_->port));
        return resolving_->ready() && resolved(nullptr, wait_status::woken);
    }

    bool start(waiter& w) {
        if (timeout_ != duration::max()) deadline_ = after(now(), timeout_);
        if (!connecting_) {
            resolving_->end_by(deadline_);
            if (resolving_->start(w)) return true;
            if (resolved(&w, wait_status::woken)) return false;
        }
        return go_on(w);
    }

    bool again(waiter& w) {
        if (connecting_) {
            if (!connecting_->again(w)) return false;
            if (connected(&w, w.status())) return true;
        } else {
            if (!resolving_->again(w)) return false;
            if (resolved(&w, w.status())) return true;
            w.drop_deadline();  // of a question that was answered
        }
        if (!w.renew(deadline_, reports_stop)) return true;
        if (go_on(w)) return false;
        static_cast<void>(w.claim());  // renew has made it pending, and nobody else sees it
        return true;
    }

    time_point deadline() const noexcept {
        return connecting_ || !resolving_ ? deadline_ : resolving_->deadline();
    }

    result<Stream> take(const waiter* w, wait_status how) {
        if (over_) return std::move(*over_);
        if (connecting_) return connecting_->take(w, how);
        if (how == wait_status::timed_out) return failure(std::errc::timed_out);
        return failure(std::errc::operation_canceled);
    }

private:
    template <class E>
    bool fail(E e) {
        over_.emplace(failure(e));
        return true;
    }

    // True: there is an outcome. False: there is an endpoint to connect to, not ready yet.
    bool resolved(const waiter* w, wait_status how) {
        auto all = resolving_->take(w, how);
        if (!all) return fail(all.error());
        endpoints_ = *std::move(all);
        return next();
    }
    bool connected(const waiter* w, wait_status how) {
        result<Stream> s = connecting_->take(w, how);
        const bool last = next_ == endpoints_.size() || s.error() == std::errc::timed_out ||
                          s.error() == std::errc::operation_canceled;
        if (s || last) {
            over_.emplace(std::move(s));
            return true;
        }
        return next();
    }
    bool next() {
        connecting_.emplace(endpoints_[next_++], duration::max());
        return connecting_->ready() && connected(nullptr, wait_status::woken);
    }
    // The waiter waits for the present endpoint, or one after it. False: there is an outcome.
    bool go_on(waiter& w) {
        while (!connecting_->start(w))
            if (connected(&w, wait_status::woken)) return false;
        return true;
    }

    result<host_and_port> where_;
    duration timeout_;
    time_point deadline_ = never;
    std::optional<resolver::resolving> resolving_;
    std::vector<endpoint> endpoints_;
    std::size_t next_ = 0;
    std::optional<connecting<Stream>> connecting_;
    std::optional<result<Stream>> over_;
};

}  // namespace weft::detail
