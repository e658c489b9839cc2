// wheel_node: one deadline in a wheel; stored in the frame of the flow that waits for it.
//
// Design: two links and a tick, and nothing else, so that adding it writes two nodes and removing
// it writes three, without reading any but its own.
//
// Limits: a node is in one wheel at a time, and in none when it is destroyed.
//
//   struct timer : weft::wheel_node { int id = 0; };
//   timer t;
//   w.add(t, weft::tick_after(w.now(), 30'000));
//   w.remove(t);  // false if an advance has delivered it already
#pragma once

#include <cstdint>

#include "weft/base/assert.hpp"

namespace weft {

// A point of time, as a count of whatever length the user of a wheel gives it.
using tick = std::uint64_t;

// The deadline that never comes.
inline constexpr tick tick_never = ~tick{0};

// The tick `delay` after `from`; one too far to be counted is tick_never.
constexpr tick tick_after(tick from, tick delay) noexcept {
    return delay < tick_never - from ? from + delay : tick_never;
}

namespace detail {

struct wheel_links {
    wheel_links* next;  // null while in no list
    wheel_links* previous;
};

class wheel_list;
class wheel_base;

}  // namespace detail

class wheel_node : detail::wheel_links {
public:
    wheel_node() noexcept : wheel_links{nullptr, nullptr} {}
    wheel_node(const wheel_node&) = delete;  // pinned: its neighbours point here
    wheel_node& operator=(const wheel_node&) = delete;
    // Aborts if the node is in a wheel.
    ~wheel_node() {
        WEFT_ASSERT_AT(!is_linked(), "destruction of a node that is in a wheel", unknown_caller);
    }

    // Whether the node is in a wheel, which will deliver the node at some time.
    bool is_linked() const noexcept { return next != nullptr; }

    // What it was added with last.
    tick deadline() const noexcept { return deadline_; }

private:
    friend class detail::wheel_list;
    friend class detail::wheel_base;

    tick deadline_ = tick_never;
};

}  // namespace weft
