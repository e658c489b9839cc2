// accept_reserve: what a listener does when the process has no descriptors left.
//
// Its one idea: a descriptor is kept open for nothing, so that it can be given up for a moment to
// accept who waits and close that at once: the peer sees an end, and not silence until it gives up.
//
// Model: none, the lock guards all but a counter.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/base/atomic.hpp"
#include "weft/base/clock.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/io/accept_ahead.hpp"

namespace weft::detail {

class accept_reserve {
public:
    // `ahead`: of a listener that may be served by a driver which goes on by itself, or null.
    explicit accept_reserve(std::shared_ptr<accept_ahead> ahead = nullptr) noexcept;
    accept_reserve(const accept_reserve&) = delete;
    ~accept_reserve();

    // Refuses who waits to be accepted by `listener`, which does not block. How long to leave it
    // alone then: 5 ms, and twice as long each time it comes to this within a second.
    duration refuse(const descriptor_ref& listener) noexcept;

    accept_ahead* ahead() const noexcept { return ahead_.get(); }

    std::uint64_t refused_count() const noexcept {
        return refused_count_.load(std::memory_order_relaxed);  // a figure
    }

private:
    static constexpr duration shortest = std::chrono::milliseconds(5);
    static constexpr duration longest = std::chrono::seconds(1);
    static constexpr int most_at_once = 64;

    const std::shared_ptr<accept_ahead> ahead_;
    spin_lock lock_;  // guards what follows
    int spare_;
    duration pause_ = shortest;
    time_point last_{};
    atomic<std::uint64_t> refused_count_{0};
};

}  // namespace weft::detail
