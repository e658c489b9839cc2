// bounce: how long a cache line takes from one core to the other and back.
//
// If a hypervisor moves the cores apart, that time, and with it the cost of every wake-up, grows
// several times: figures are comparable only between runs with similar readings.
#pragma once

namespace bench::net {

// Pins the calling thread; false if the thread cannot have that core.
bool pin_to_core(int core);

// Nanoseconds of a round trip, the median of many short batches; negative without the two cores.
double bounce_ns(int one_core, int other_core);

}  // namespace bench::net
