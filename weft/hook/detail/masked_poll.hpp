// masked_poll: a wait that is given a mask of signals. A thread of its own with that mask makes the
// wait, so that a signal which the mask lets through ends the wait with EINTR, and no other fiber
// has the mask. Signals that are pending for the caller's thread reach no other thread, so the
// caller queries once, without a wait, before it waits.
#pragma once

#include <poll.h>
#include <signal.h>

#include "weft/hook/detail/readiness.hpp"

namespace weft::hook {

// As ppoll(2). `around`: of a call that makes several.
int masked_poll(pollfd* all, nfds_t count, time_point deadline, const sigset_t& mask);
int masked_poll(pollfd* all, nfds_t count, time_point deadline, const sigset_t& mask,
                const interruptible& around);

// As pselect(2), for sets of `count` bits, in whole words of 64.
int masked_select(int count, unsigned char* const (&sets)[3], time_point deadline,
                  const sigset_t& mask);

}  // namespace weft::hook
