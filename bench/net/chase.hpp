// chase: the time of a load whose address comes from the load before.
//
// The lines are more than a core's own caches hold, and fewer than the last-level cache holds. The
// last level is shared with everything else on the machine, which a bounce between two cores does
// not show: when a chase takes longer than before, a server that touches more lines loses more.
#pragma once

#include <cstddef>

namespace bench::net {

// Nanoseconds of a load on that core, over a random cycle of so many bytes, each line of 64 once;
// negative without that core.
double chase_ns(int core, std::size_t bytes);

}  // namespace bench::net
