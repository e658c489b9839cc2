// bounce: how long a cache line takes from one core to the other and back.
//
// Where a hypervisor moves the cores apart, that time, and with it the cost of every wake-up, is
// several times what it was: figures are comparable only between runs with near readings.
#pragma once

namespace bench::net {

// Nanoseconds of a round trip, the median of many short batches; below 0 if a core cannot be had.
double bounce_ns(int one_core, int other_core);

}  // namespace bench::net
