// device: a call on a descriptor for which the system has none that does not wait: it is asked
// first whether it is ready, under a lock, so that of two fibers of one program the second does not
// find taken what both have seen. Another program may still take it in between; then the thread
// waits.
//
// Model: none, its locks are spin_locks, and guard all that is shared.
#pragma once

#include <sys/types.h>

#include "weft/base/spin_lock.hpp"
#include "weft/hook/calls.hpp"

namespace weft::hook {

// One for all descriptors with the same end of their number.
spin_lock& lock_of(int fd) noexcept;

// Whether a call would find something, be it an error. Keeps nothing waiting.
bool is_ready(int fd, short events) noexcept;

// Whether an error stands at the socket that a call which has moved a part leaves for the next one.
// A local socket leaves none: there the system's own call takes it and says nothing.
bool keeps_error(int fd, bool reads) noexcept;

// The family of a socket: AF_INET and so on.
int family_of(int fd) noexcept;

// What follows a receive that may have opened descriptors (SCM_RIGHTS): they are new here.
void opened_by(const msghdr& m) noexcept;

}  // namespace weft::hook
