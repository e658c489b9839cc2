// wait_status: which of event, deadline and stop ended a wait. An operation's take() reads it.
#pragma once

#include <cstdint>

namespace weft {

// How a wait ended.
enum class wait_status : std::uint8_t {
    woken = 1,  // the event has come
    timed_out,  // the deadline of this wait came first
    stopped,    // a stop was requested, or the deadline of a scope around it came
};

}  // namespace weft
