// child_exit_fd: a descriptor that becomes readable when a child of this process has ended, so
// that the end of a child is waited for like any other event.
//
// It is a pidfd, since Linux 5.3. If the system has none, or a sandbox refuses it, a thread of the
// library waits for the child and then closes the other end of a pipe; the thread exists as long as
// the child. Neither reaps the child.
#pragma once

#include <sys/types.h>

#include "weft/base/result.hpp"

namespace weft::detail {

// The caller owns the fd; it is closed on exec. The child must not have been reaped.
result<int> child_exit_fd(::pid_t child) noexcept;

// The same on every system. The child must not be reaped before the descriptor is readable.
result<int> exit_descriptor_by_thread(::pid_t child) noexcept;

}  // namespace weft::detail
