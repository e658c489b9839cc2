// stream_options: how long an operation of a stream may take, and how slow a peer may be.
//
// Design: an aggregate of limits. Each is of one operation, and none is set unless it is named.
//
// Limits: the options count for operations that start after they are set.
//
//   s.set_options({.read_timeout = 30s, .min_read_bytes_per_second = 1000});
#pragma once

#include <cstdint>

#include "weft/base/clock.hpp"

namespace weft {

struct stream_options {
    duration read_timeout = no_timeout;   // of one operation
    duration write_timeout = no_timeout;  // the same
    // Bytes per second; zero: none. Needs a read_timeout, which is then how long a peer may be
    // behind, in read_exact and read_until: each byte that comes while they wait moves their
    // deadline on by 1/min_read_bytes_per_second s, but to no later than read_timeout from then. So
    // a peer that sends a byte now and then is timed_out, and one that is slow and steady is
    // served, however long it takes.
    std::uint32_t min_read_bytes_per_second = 0;
};

}  // namespace weft
