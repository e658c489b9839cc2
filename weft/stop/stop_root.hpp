// stop_root: a stop_source without a parent, at half the size.
//
// Design: for objects of which there are many, such as fibers, and which are stopped individually,
// never through a parent. All that stop_source.hpp says of requests, tokens and callbacks holds.
//
// Limits: it is pinned, and outlives its tokens and callbacks. A callback neither throws nor
// suspends.
//
//   weft::stop_root r;
//   weft::stop_callback note(r.get_token(), [](weft::stop_reason) { ... });
//   r.request_stop();
#pragma once

#include "weft/stop/stop_token.hpp"

namespace weft {

class stop_root : detail::stop_core {
public:
    stop_root() noexcept = default;
    stop_root(const stop_root&) = delete;  // pinned: tokens and callbacks point here
    stop_root& operator=(const stop_root&) = delete;

    // Returns whether this was the first request. Only the first request's reason counts, and only
    // the first request calls the callbacks; a later request may return before the callbacks have.
    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return stop_core::request_stop(reason);
    }

    bool stop_requested() const noexcept { return reason() != stop_reason::none; }
    using stop_core::check;
    using stop_core::reason;

    stop_token get_token() noexcept { return stop_token(*this); }

private:
    friend class detail::stop_core;
};

}  // namespace weft
