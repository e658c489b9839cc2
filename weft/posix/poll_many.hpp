// poll_many: poll(2) for a fiber, which it suspends alone.
//
// Its one idea: ask first, and wait only where nothing is ready. One descriptor and one direction
// is a wait by weft's own driver; several, or both directions, are put into a set of the system's
// (epoll), and that is what is waited for: a set is readable when any of its own is ready. What
// came is asked of poll(2) itself, so that all that it says is as there.
//
//   int n = weft::detail::poll_many(fds, count, deadline);      // -1 and errno: as poll
//
// Throws stopped. Limits: a descriptor that is closed while somebody waits for it is not noticed,
// as in poll(2), unless it was closed by weft.
#pragma once

#include <poll.h>

#include "weft/base/clock.hpp"

namespace weft::detail {

// In a fiber.
int poll_many(pollfd* fds, nfds_t count, time_point until);

// The moment that a timeout of poll(2) means.
time_point poll_deadline(int timeout_ms) noexcept;

}  // namespace weft::detail
