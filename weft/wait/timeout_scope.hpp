// timeout_scope: no wait of the flow lasts beyond a moment, while it stands.
//
// Its one idea: a deadline is the flow's, not an argument of each call, so that it reaches what is
// many calls down. The earlier of two nested ones counts. A wait that it ends throws
// weft::stopped{deadline}, or returns operation_canceled where it returns a result; who made the
// scope asks expired() whether that was its doing.
//
//   weft::timeout_scope limit(250ms);
//   try { return query(k); }
//   catch (const weft::stopped&) { if (!limit.expired()) throw; }
//   return weft::failure(std::errc::timed_out);
//
// On a plain thread it is the thread's own waits that it holds for. What an executor runs in no
// flow has none that could be bounded: one that is made there ends the program.
#pragma once

#include <chrono>
#include <source_location>

#include "weft/wait/thread_host.hpp"

namespace weft {

class timeout_scope {
public:
    template <class Rep, class Period>
    explicit timeout_scope(std::chrono::duration<Rep, Period> d,
                           std::source_location place = std::source_location::current()) noexcept
        : timeout_scope(after(now(), d), place) {}
    explicit timeout_scope(time_point deadline,
                           std::source_location place = std::source_location::current()) noexcept
        : flow_(bounded_flow(place)),
          deadline_(deadline),
          outer_(flow_.deadline),
          counts_(deadline <= outer_) {
        if (counts_) flow_.set_deadline(deadline);
    }
    timeout_scope(const timeout_scope&) = delete;
    timeout_scope& operator=(const timeout_scope&) = delete;
    ~timeout_scope() { flow_.set_deadline(outer_); }

    time_point deadline() const noexcept { return deadline_; }
    // Whether it is this one that ends waits: its moment has come, there is none before it further
    // out, and no stop was requested.
    bool expired() const noexcept {
        return counts_ && !flow_.stop.stop_requested() && deadline_ <= flow_.home->now();
    }

private:
    static flow& bounded_flow(std::source_location place) noexcept {
        flow* const f = detail::flow_here();
        WEFT_ASSERT_AT(f != nullptr, "a timeout_scope in what runs in no flow", place);
        return *f;
    }

    flow& flow_;
    const time_point deadline_;
    const time_point outer_;
    const bool counts_;
};

}  // namespace weft
