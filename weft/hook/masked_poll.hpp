// masked_poll: a wait that is given a mask of signals. It is made by a thread of its own with that
// mask, so that a signal which it lets through ends it with EINTR, and the mask is no other
// fiber's.
#pragma once

#include <poll.h>
#include <signal.h>

#include <span>

#include "weft/hook/readiness.hpp"
#include "weft/hook/several.hpp"

namespace weft::hook {

// As ppoll(2).
int masked_poll(pollfd* all, nfds_t count, time_point deadline, const sigset_t& mask);

// Until one of them may be ready: 0, timed_out, or a number of errno.
int masked_wait(std::span<const wanted> all, time_point deadline, const sigset_t& mask);

}  // namespace weft::hook
