// timeout_scope: no wait of the flow lasts beyond a moment, while it stands.
//
// Its one idea: a deadline is the flow's, not an argument of each call, so that it reaches what is
// many calls down. The earlier of two nested ones counts. A wait that it ends throws
// weft::stopped{deadline}, or returns operation_canceled where it returns a result; who made the
// scope asks expired() whether that was its doing.
//
//   weft::timeout_scope limit(250ms);
//   try { return query(k); }
//   catch (const weft::stopped&) { if (!limit.expired()) throw; return errc::timed_out; }
#pragma once

#include <chrono>

#include "weft/wait/flow.hpp"

namespace weft {

class timeout_scope {
public:
    template <class Rep, class Period>
    explicit timeout_scope(std::chrono::duration<Rep, Period> d) noexcept
        : timeout_scope(after(now(), d)) {}
    // In a flow; elsewhere it does nothing.
    explicit timeout_scope(time_point deadline) noexcept
        : flow_(current_flow()), deadline_(deadline) {
        if (flow_ == nullptr) return;
        outer_ = flow_->deadline;
        if (deadline < outer_) flow_->set_deadline(deadline);
    }
    timeout_scope(const timeout_scope&) = delete;
    timeout_scope& operator=(const timeout_scope&) = delete;
    ~timeout_scope() {
        if (flow_ != nullptr) flow_->set_deadline(outer_);
    }

    time_point deadline() const noexcept { return deadline_; }
    bool expired() const noexcept { return deadline_ <= now(); }

private:
    flow* const flow_;
    const time_point deadline_;
    time_point outer_ = never;
};

}  // namespace weft
