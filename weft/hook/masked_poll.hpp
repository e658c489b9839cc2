// masked_poll: a wait that is given a mask of signals. It is made by a thread of its own with that
// mask, so that a signal which it lets through ends it with EINTR, and the mask is no other
// fiber's. Signals that are pending for the caller's thread are no other thread's: the caller asks
// once, without waiting, before it waits so.
#pragma once

#include <poll.h>
#include <signal.h>

#include "weft/hook/readiness.hpp"

namespace weft::hook {

// As ppoll(2).
int masked_poll(pollfd* all, nfds_t count, time_point deadline, const sigset_t& mask);

// As pselect(2), for sets of `count` bits, in whole words of 64.
int masked_select(int count, unsigned char* const (&sets)[3], time_point deadline,
                  const sigset_t& mask);

}  // namespace weft::hook
