// poll_many: poll(2) for a fiber, which it suspends alone.
//
// Design: query first, and wait only if nothing is ready. One descriptor and one direction is a
// wait by weft's own driver. Several, or both directions, are put into a set of the system's
// (epoll), and the set is the awaited object: a set is readable when any of its own is ready. After
// the wait, poll(2) itself is queried, so that every report is as there.
//
//   int n = weft::detail::poll_many(fds, count, deadline);      // -1 and errno: as poll
//
// Throws stopped. Limits: a descriptor that is closed during a wait for it is not noticed, as in
// poll(2), unless it was closed by weft.
#pragma once

#include <poll.h>

#include "weft/base/clock.hpp"

namespace weft::detail {

// In a fiber.
int poll_many(pollfd* fds, nfds_t count, time_point until);

// The deadline that a timeout of poll(2) means.
time_point poll_deadline(int timeout_ms) noexcept;

}  // namespace weft::detail
