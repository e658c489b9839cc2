// timeout_scope: while it exists, no wait of the flow lasts beyond a deadline.
//
// Design: the deadline belongs to the flow and is not an argument of each call, so it reaches waits
// that are many calls down. Of two nested deadlines, the earlier counts. A wait that is ended
// throws weft::stopped{deadline}, or returns operation_canceled where it returns a result; the
// owner of the scope asks has_expired() whether its own deadline was the cause.
//
// Limits: on a plain thread it bounds the thread's own waits. Code that an executor runs outside
// any flow has no waits that could be bounded: a scope that is made there ends the program.
//
//   weft::timeout_scope limit(250ms);
//   try { return query(k); }
//   catch (const weft::stopped&) { if (!limit.has_expired()) throw; }
//   return weft::failure(std::errc::timed_out);
#pragma once

#include <source_location>

#include "weft/wait/detail/thread_executor.hpp"
#include "weft/wait/stopped.hpp"

namespace weft {

class timeout_scope {
public:
    // A duration begins here.
    explicit timeout_scope(time_limit limit,
                           std::source_location caller = std::source_location::current()) noexcept
        : flow_(bounded_flow(caller)),
          deadline_(detail::deadline_of(limit)),
          outer_(flow_.deadline),
          counts_(deadline_ <= outer_) {
        if (counts_) flow_.set_deadline(deadline_);
    }
    timeout_scope(const timeout_scope&) = delete;
    timeout_scope& operator=(const timeout_scope&) = delete;
    // The deadline is that of the scope around this one.
    ~timeout_scope() { flow_.set_deadline(outer_); }

    time_point deadline() const noexcept { return deadline_; }
    // Whether this scope is the one that ends waits: its deadline has come, no scope around it has
    // an earlier one, and no stop was requested.
    bool has_expired() const noexcept {
        return counts_ && !flow_.stop.stop_requested() && deadline_ <= flow_.home->now();
    }

private:
    static flow& bounded_flow(std::source_location caller) noexcept {
        flow* const f = detail::flow_here();
        WEFT_ASSERT_AT(f != nullptr, "a timeout_scope outside any flow", caller);
        return *f;
    }

    flow& flow_;
    const time_point deadline_;
    const time_point outer_;
    const bool counts_;
};

}  // namespace weft
