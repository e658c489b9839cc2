// reserve_fd: what a listener does when the process has no descriptors left.
//
// Design: one descriptor is kept open in reserve. It is closed for a short time, so that a waiting
// connection can be accepted and closed at once. The peer sees an end, and not silence until it
// gives up.
//
// Model: none, the lock guards all but a counter.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/base/clock.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/io/detail/prefetched_accepts.hpp"

namespace weft::detail {

class reserve_fd {
public:
    // `ahead`: of a listener that may be served by a driver with an armed accept, or null.
    explicit reserve_fd(std::shared_ptr<prefetched_accepts> ahead = nullptr) noexcept;
    reserve_fd(const reserve_fd&) = delete;
    ~reserve_fd();

    // Accepts and closes the connections that are queued at `listener`, which is nonblocking; 64 at
    // most. Returns how long to leave the listener alone: 5 ms, or, if the last call is less than 2
    // s ago, twice the previous pause, at most 1 s.
    duration refuse(const descriptor_ref& listener) noexcept;

    prefetched_accepts* ahead() const noexcept { return ahead_.get(); }

    std::uint64_t refused_count() const noexcept {
        return refused_count_.load(std::memory_order_relaxed);  // a figure
    }

private:
    static constexpr duration shortest = std::chrono::milliseconds(5);
    static constexpr duration longest = std::chrono::seconds(1);
    static constexpr int most_at_once = 64;

    const std::shared_ptr<prefetched_accepts> ahead_;
    spin_lock lock_;  // guards what follows
    int spare_;
    duration pause_ = shortest;
    time_point last_{};
    atomic<std::uint64_t> refused_count_{0};
};

}  // namespace weft::detail
